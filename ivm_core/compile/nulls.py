"""Which columns can't be NULL, as far as the text of rules tells: no source is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.operators.sql import tree_of
from ivm_core.plan.nodes import Filter, Join, Match, Node, Project, Scan, UnionAll
from ivm_core.plan.recursion import MAX, MIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ivm_core.plan.recursion import Rules


def always_valued(component: Mapping[str, Rules]) -> frozenset[str]:
    """The views of a recursion whose extreme is never NULL.

    Most at first are thought to be; one that a rule gives a NULL is not, and then perhaps not those
    that read it.
    """
    valued = {name for name, rules in component.items() if rules.fold in (MIN, MAX)}
    known = -1
    while known != len(valued):
        known = len(valued)
        extremes = {name: component[name].value for name in valued}
        valued = {
            name
            for name in valued
            if all(
                component[name].value in _valued(branch, extremes)
                for branch in component[name].branches
            )
        }
    return frozenset(valued)


def required(tree: exp.Expr) -> Iterator[str]:
    """Columns that have a value wherever a condition holds."""
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        yield from required(tree.left)
        yield from required(tree.right)
    elif (asked := asked_for_value(tree)) is not None:
        yield from _needed(asked)
    elif isinstance(tree, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        yield from _needed(tree.left)
        yield from _needed(tree.right)


def asked_for_value(tree: exp.Expr) -> exp.Expr | None:
    """What IS NOT NULL asks about; None for any other condition."""
    is_ = tree.this.unnest() if isinstance(tree, exp.Not) else None
    if isinstance(is_, exp.Is) and isinstance(is_.expression, exp.Null):
        asked: exp.Expr = is_.this
        return asked
    return None


def chosen_from(tree: exp.Expr, name: str) -> list[exp.Expr]:
    """What a call of `least` or `greatest` chooses from; nothing for any other expression."""
    kinds = {"least": exp.Least, "greatest": exp.Greatest}
    if isinstance(tree, kinds[name]):
        return [tree.this, *tree.expressions]
    if isinstance(tree, exp.Anonymous) and tree.name.lower() == name:
        return list(tree.expressions)
    return []


def unwrapped(tree: exp.Expr) -> exp.Expr:
    """Without what changes no value: parentheses, + 0, and an error in place of NaN."""
    while True:
        inner = _inner(tree)
        if inner is None:
            return tree
        tree = inner


def _inner(tree: exp.Expr) -> exp.Expr | None:
    if isinstance(tree, exp.Paren):
        inner: exp.Expr = tree.this
        return inner
    if isinstance(tree, exp.Add):
        step = tree.right.unnest()
        step = step.this if isinstance(step, exp.Cast) else step
        return tree.left if isinstance(step, exp.Literal) and step.name == "0" else None
    if isinstance(tree, exp.Anonymous) and tree.name.lower() == "nanvl":
        value, instead = tree.expressions
        raised = {each.name.lower() for each in instead.find_all(exp.Anonymous)}
        return value if raised == {"raise_error"} else None
    return None


def _valued(node: Node, extremes: Mapping[str, str]) -> set[str]:
    """The columns of a node that are never NULL."""
    if isinstance(node, Scan):
        value = extremes.get(node.relation)
        names = zip(node.columns, node.fields, strict=True)
        return {column for column, field in names if field == value}
    if isinstance(node, UnionAll):
        found = [_valued(branch, extremes) for branch in node.branches]
        return {
            name
            for place, name in enumerate(node.columns)
            if all(
                branch.columns[place] in of for branch, of in zip(node.branches, found, strict=True)
            )
        }
    below = set().union(*(_valued(each, extremes) for each in node.inputs))
    if isinstance(node, Project):
        return {name for name, scalar in node.outputs if _has_value(tree_of(scalar), below)}
    if isinstance(node, Filter):
        below |= set(required(tree_of(node.predicate)))
    elif isinstance(node, Join) or (isinstance(node, Match) and node.kind == "SEMI"):
        below |= {name for each in node.conditions for name in required(tree_of(each))}
    return below & set(node.columns)


def _has_value(tree: exp.Expr, valued: set[str]) -> bool:
    tree = unwrapped(tree)
    if isinstance(tree, exp.Column):
        return tree.name in valued
    if isinstance(tree, exp.Literal):
        return True
    if isinstance(tree, exp.Add | exp.Sub):
        return _has_value(tree.left, valued) and _has_value(tree.right, valued)
    if isinstance(tree, exp.Neg | exp.Abs) or _is_cast(tree):
        return _has_value(tree.this, valued)
    parts = chosen_from(tree, "least") or chosen_from(tree, "greatest")
    return any(_has_value(part, valued) for part in parts)


def _needed(tree: exp.Expr) -> Iterator[str]:
    """Columns without which an expression is NULL."""
    tree = unwrapped(tree)
    if isinstance(tree, exp.Column):
        yield tree.name
    elif isinstance(tree, exp.Add | exp.Sub):
        yield from _needed(tree.left)
        yield from _needed(tree.right)
    elif isinstance(tree, exp.Neg | exp.Cast):
        yield from _needed(tree.this)


def _is_cast(tree: exp.Expr) -> bool:
    """Whether it is a CAST, which gives a value or an error, and no TRY_CAST."""
    return isinstance(tree, exp.Cast) and not tree.args.get("safe")
