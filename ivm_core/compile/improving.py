"""Whether a rule can derive a better extreme than the ones that it is derived from.

Labels that are passed on, a bottleneck (LEAST under a MAX, GREATEST under a MIN), a step of a cost
that is not negative: what is derived is never better than what it stands on. Then an extreme stands
on extremes only, and only those that have lost what they stand on have to go when something is
deleted. Where a rule can improve on what it reads, as `d + w` can with a negative `w`, an extreme
may have been found from a value that is not there any more; then all groups that are derived from
a changed one are looked at again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.compile.nulls import chosen_from, unwrapped
from ivm_core.operators.sql import tree_of
from ivm_core.plan.nodes import Filter, Join, Match, Node, Project, Scan
from ivm_core.plan.recursion import MAX, MIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.plan.recursion import Rules


def can_improve(component: Mapping[str, Rules]) -> bool:
    """Whether any rule of a component can; always where a view of it folds nothing."""
    if len({rules.fold for rules in component.values()}) > 1:
        return True
    return any(
        _improves(branch, component, rules)
        for rules in component.values()
        for branch in rules.branches
    )


def _improves(branch: Node, component: Mapping[str, Rules], rules: Rules) -> bool:
    reads = [n for n in branch.walk() if isinstance(n, Scan) and n.relation in component]
    if not reads:
        return False
    if len(reads) > 1 or rules.fold not in (MIN, MAX):
        return True
    return not _is_no_better(branch, rules.value, component, rules.fold)


def _is_no_better(node: Node, column: str, component: Mapping[str, Rules], fold: str) -> bool:
    """Whether a column is no better than the extreme that it is made of."""
    if isinstance(node, Scan):
        rules = component.get(node.relation)
        return rules is not None and node.field_of(column) == rules.value
    if isinstance(node, Project):
        tree = tree_of(dict(node.outputs)[column])
        return _no_better(tree, node.input, component, fold)
    if isinstance(node, Filter):
        return _is_no_better(node.input, column, component, fold)
    if isinstance(node, Join):
        return _is_no_better(node.parts[node.part_of(column)], column, component, fold)
    if isinstance(node, Match) and column in node.left.columns:
        return _is_no_better(node.left, column, component, fold)
    return False


def _no_better(tree: exp.Expr, node: Node, component: Mapping[str, Rules], fold: str) -> bool:
    tree = unwrapped(tree)
    if isinstance(tree, exp.Column):
        return _is_no_better(node, tree.name, component, fold)
    parts = chosen_from(tree, "greatest" if fold == MIN else "least")
    if parts:
        return any(_no_better(part, node, component, fold) for part in parts)
    step = exp.Add if fold == MIN else exp.Sub
    if isinstance(tree, step):
        sides = [(tree.left, tree.right)]
        sides += [(tree.right, tree.left)] if fold == MIN else []
        return any(
            _no_better(ours, node, component, fold) and _is_not_negative(theirs)
            for ours, theirs in sides
        )
    return False


def _is_not_negative(tree: exp.Expr) -> bool:
    """A literal, an absolute value, or the greatest of several with such a one."""
    tree = tree.unnest()
    if isinstance(tree, exp.Literal):
        return not tree.is_string
    if isinstance(tree, exp.Cast):
        return _is_not_negative(tree.this)
    parts = chosen_from(tree, "greatest")
    if parts:
        return any(_is_not_negative(part) for part in parts)
    is_abs = isinstance(tree, exp.Anonymous) and tree.name.lower() == "abs"
    return is_abs or isinstance(tree, exp.Abs)
