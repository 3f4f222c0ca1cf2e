"""Factor disjunctions: `(a AND b) OR (a AND c)` becomes `a AND (b OR c)`.

An equality that every alternative has is then one that joins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.operators.sql import scalar_of, tree_of
from ivm_core.plan.nodes import Filter, Match, Node
from ivm_core.plan.rewriting import rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.model.schema import Schema
    from ivm_core.plan.scalar import Scalar


def factor_disjunctions(plan: Node, catalog: Mapping[str, Schema]) -> Node:
    """Take what all alternatives of a condition share out of them."""

    def rule(node: Node) -> Node:
        if isinstance(node, Filter):
            return replace(node, predicate=_factored(node.predicate))
        if isinstance(node, Match):
            return replace(node, conditions=tuple(_factored(each) for each in node.conditions))
        return node

    return rewrite(plan, rule)


def _factored(scalar: Scalar) -> Scalar:
    tree = tree_of(scalar).unnest()
    if not isinstance(tree, exp.Or | exp.And):
        return scalar
    made = _of_tree(tree)
    return scalar if made is None else scalar_of(made)


def _of_tree(tree: exp.Expr) -> exp.Expr | None:
    """The tree with its disjunctions factored; None where there is nothing to take out."""
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        parts = [(each, _of_tree(each)) for each in tree.flatten()]
        if not any(made for _, made in parts):
            return None
        return exp.and_(*[each if made is None else made for each, made in parts])
    if not isinstance(tree, exp.Or):
        return None
    branches = [_conjuncts(each) for each in tree.flatten()]
    shared = [text for text in branches[0] if all(text in each for each in branches[1:])]
    if not shared:
        return None
    common = [branches[0][text] for text in shared]
    rest = [[part for text, part in each.items() if text not in shared] for each in branches]
    if not all(rest):
        # one alternative asks for nothing more
        return exp.and_(*common)
    return exp.and_(*common, exp.or_(*[exp.and_(*each) for each in rest]))


def _conjuncts(tree: exp.Expr) -> dict[str, exp.Expr]:
    tree = tree.unnest()
    parts = tree.flatten() if isinstance(tree, exp.And) else [tree]
    found: dict[str, exp.Expr] = {}
    for part in parts:
        bare = part.unnest()
        if isinstance(bare, exp.And):
            found |= _conjuncts(bare)
        else:
            found[bare.sql(dialect="spark")] = bare
    return found
