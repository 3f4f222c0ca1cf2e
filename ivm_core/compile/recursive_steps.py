"""What the fixpoint of a component reads in a tick, and how it is maintained, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.compile.reach import ReachFinder
from ivm_core.compile.verdicts import AFFECTED, Verdict
from ivm_core.operators.sql import unchanged
from ivm_core.plan.nodes import Join, Match, Node, Project
from ivm_core.plan.recursion import AGAINST, BAG, SET, changed_name
from ivm_core.plan.rewriting import rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.compile.reach import Reach
    from ivm_core.model.schema import Schema
    from ivm_core.plan.recursion import Rules

DERIVED_AGAIN = "where a derivation is lost"


def as_joins(plan: Node) -> Node:
    """The plan with joins in place of matches: what a match can look at, a join can."""

    def rule(node: Node) -> Node:
        if isinstance(node, Match):
            joined = Join((node.left, node.right), node.conditions)
            return Project(joined, unchanged(node.columns))
        return node

    return rewrite(plan, rule)


def reaches(rules: Rules, catalog: Mapping[str, Schema]) -> tuple[Reach, Reach]:
    """What the terms of the rules reach, and what deriving lost rows again does."""
    known = dict(catalog)
    for name in rules.relations:
        if name in catalog:
            known |= {changed_name(name): catalog[name], f"{name}{AGAINST}": catalog[name]}
    changed = frozenset(term.changed for term in rules.terms)
    terms, again = ReachFinder(known, changed), ReachFinder(known, frozenset())
    for term in rules.terms:
        terms.of_delta(as_joins(term.plan))
    if rules.fold != BAG:
        keys = rules.columns if rules.fold == SET else rules.keys
        for branch in rules.branches:
            again.of_keys(as_joins(branch), keys)
    return terms.reach, again.reach


def verdict_of_rules(rules: Rules) -> Verdict:
    """How a view of a component is maintained."""
    if rules.fold == BAG:
        reason = "linear: what the change derives, iteration by iteration, with its weight"
    elif rules.fold == SET:
        reason = (
            "new rows derive new rows, iteration by iteration; rows that may stand on what goes "
            "are deleted, and derived again where they still can be"
        )
    else:
        reason = (
            f"better values of {rules.value} replace worse ones, iteration by iteration; groups "
            "that may stand on what goes are derived again"
        )
    return Verdict(AFFECTED, reason)


def label_of_rules(rules: Rules) -> str:
    """A component's view in one line."""
    how = {SET: "each row once", BAG: "rows as often as they are derived"}
    kept = how.get(rules.fold, f"{rules.fold} of {rules.value} by {', '.join(rules.keys)}")
    names = ", ".join(rules.component)
    return f"fixpoint of {names}, {len(rules.branches)} rules: {kept}"
