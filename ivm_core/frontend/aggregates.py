"""Aggregate calls in expressions: which they are, and in how few kinds they come.

COUNT, SUM, AVG, MIN and MAX are folded. What is one of them under another name becomes it:

    count_if(p)             COUNT(CASE WHEN p THEN 1 END)
    regr_count(y, x)        COUNT(CASE WHEN both are there THEN 1 END)
    bool_and(p), every(p)   MIN(p)
    bool_or(p), some(p)     MAX(p)
    any_value(x)            MIN(x): any value will do, and this one is the same every time

All others stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend import functions
from ivm_core.frontend.spelling import folded
from ivm_core.operators.calls import WRAPPERS, core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDED: dict[type[exp.Expr], str] = {
    exp.Count: "COUNT",
    exp.Sum: "SUM",
    exp.Avg: "AVG",
    exp.Min: "MIN",
    exp.Max: "MAX",
}
ANOTHER_NAME: dict[str, type[exp.Expr]] = {
    "count_if": exp.Count,
    "regr_count": exp.Count,
    "bool_and": exp.Min,
    "every": exp.Min,
    "bool_or": exp.Max,
    "some": exp.Max,
    "any": exp.Max,
    "any_value": exp.Min,
}
OF_NO_ROWS = {
    "approx_count_distinct": "0",
    "array_agg": "ARRAY()",
    "collect_list": "ARRAY()",
    "collect_set": "ARRAY()",
    "count_if": "0",
}
"""Aggregates that are not NULL over no rows."""


def is_aggregate(tree: exp.Expr) -> bool:
    """Whether an expression is a call of an aggregate."""
    bare = core(tree)
    if isinstance(bare, tuple(FOLDED)):
        return True
    if not isinstance(bare, exp.Anonymous) or folded(bare.name) in functions.GROUPING:
        return False
    return folded(bare.name) in functions.OTHER_AGGREGATES


def aggregate_calls(trees: list[exp.Expr]) -> list[exp.Expr]:
    """The aggregates over groups in expressions, each with its clauses, equal ones once.

    The function of a window is none of them, but its arguments may have some.
    """
    found: dict[str, exp.Expr] = {}
    for tree in trees:
        for call in _calls(tree):
            found.setdefault(text(call), call)
    return list(found.values())


def _calls(tree: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(tree, exp.Window):
        bare = core(tree.this)
        for child in bare.iter_expressions():
            yield from _calls(child)
        for child in tree.iter_expressions():
            if child is not tree.this:
                yield from _calls(child)
    elif is_aggregate(tree):
        yield tree
    else:
        for child in tree.iter_expressions():
            yield from _calls(child)


def simplified(tree: exp.Expr) -> exp.Expr:
    """The expression with aggregates that are another name of a folded one as that one."""

    def one(node: exp.Expr) -> exp.Expr:
        name = folded(node.name) if isinstance(node, exp.Anonymous) else ""
        kind = ANOTHER_NAME.get(name)
        if kind is None or not node.expressions:
            return node
        argument = node.expressions[0]
        if isinstance(argument, exp.Distinct):
            return node
        if isinstance(argument, exp.IgnoreNulls | exp.RespectNulls):
            argument = argument.this
        if name == "count_if":
            argument = exp.case().when(argument, exp.Literal.number(1))
        if name == "regr_count":
            there = [each.copy().is_(exp.null()).not_() for each in node.expressions]
            argument = exp.case().when(exp.and_(*there), exp.Literal.number(1))
        return kind(this=argument)

    return tree.transform(one).transform(_without_nulls_clause)


def _without_nulls_clause(node: exp.Expr) -> exp.Expr:
    """MIN and MAX ignore NULLs anyway."""
    is_clause = isinstance(node, exp.IgnoreNulls | exp.RespectNulls)
    return node.this if is_clause and isinstance(node.this, exp.Min | exp.Max) else node


def with_placed(call: exp.Expr, place: Callable[[exp.Expr], str]) -> exp.Expr:
    """The call over columns: every argument that computes something is placed below it."""
    call = call.copy()
    for argument in list(arguments(call)):
        bare = argument.unnest()
        if bare.find(exp.Column) and not isinstance(bare, exp.Column):
            argument.replace(exp.column(exp.to_identifier(place(bare), quoted=True)))
    return call


def arguments(call: exp.Expr) -> Iterator[exp.Expr]:
    """What a call reads: its arguments, its order, its filter."""
    while isinstance(call, WRAPPERS):
        clause = call.args.get("expression")
        if isinstance(clause, exp.Where):
            yield clause.this
        elif isinstance(clause, exp.Order):
            yield from (each.this for each in clause.expressions)
        call = call.this
    for child in call.iter_expressions():
        if isinstance(child, exp.Distinct):
            yield from child.expressions
        elif isinstance(child, exp.IgnoreNulls | exp.RespectNulls):
            yield child.this
        elif isinstance(child, exp.Kwarg):
            yield child.expression
        elif not isinstance(child, exp.Identifier | exp.Star):
            yield child


def text(tree: exp.Expr) -> str:
    """The text by which equal expressions are known."""
    return tree.sql(dialect="spark", comments=False)
