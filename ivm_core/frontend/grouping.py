"""GROUP BY and aggregates: what is projected below the aggregate, and what stands above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.operators.sql import column as column_tree
from ivm_core.operators.sql import scalar_of
from ivm_core.plan.nodes import PRESENT, Aggregate, AggregateCall, Node, Project

if TYPE_CHECKING:
    from collections.abc import Callable

    from ivm_core.plan.scalar import Scalar

AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Count: "COUNT",
    exp.Sum: "SUM",
    exp.Avg: "AVG",
    exp.Min: "MIN",
    exp.Max: "MAX",
}


def aggregate_calls(trees: list[exp.Expr]) -> list[exp.Expr]:
    """The aggregates in expressions, each with its FILTER clause, equal ones once."""
    found: dict[str, exp.Expr] = {}
    for tree in trees:
        for node in tree.walk():
            filtered = isinstance(node, exp.Filter) and isinstance(node.this, tuple(AGGREGATES))
            bare = isinstance(node, tuple(AGGREGATES)) and not isinstance(node.parent, exp.Filter)
            if filtered or bare:
                found.setdefault(_text(node), node)
    return list(found.values())


def aggregated(
    node: Node, keys: list[exp.Expr], calls: list[exp.Expr]
) -> tuple[Node, Callable[[exp.Expr], exp.Expr]]:
    """Aggregate over projected keys and arguments, and how expressions above refer to it."""
    outputs: dict[str, Scalar] = {}
    placed: dict[str, str] = {}

    def place(tree: exp.Expr, name: str) -> str:
        scalar = scalar_of(tree)
        name = scalar.column if scalar.is_column else placed.setdefault(scalar.sql, name)
        outputs.setdefault(name, scalar)
        return name

    replacements: dict[str, str] = {}
    key_names: dict[str, None] = {}
    for number, key in enumerate(keys, 1):
        name = place(key.unnest(), f"key_{number}")
        key_names[name] = None
        if not isinstance(key.unnest(), exp.Literal | exp.Null | exp.Boolean):
            replacements.setdefault(_text(key.unnest()), name)
    aggregate_calls = []
    for number, call in enumerate(calls, 1):
        function, argument = _call_parts(call)
        column = None if argument is None else place(argument, f"argument_{number}")
        aggregate_calls.append(AggregateCall(f"aggregate_{number}", function, column))
        replacements[_text(call)] = f"aggregate_{number}"
    if not outputs:
        outputs[PRESENT] = scalar_of(exp.true())
    projected = Project(node, tuple(outputs.items()))
    aggregate = Aggregate(projected, tuple((n, n) for n in key_names), tuple(aggregate_calls))

    def replace(tree: exp.Expr) -> exp.Expr:
        def one(part: exp.Expr) -> exp.Expr:
            name = replacements.get(_text(part))
            return part if name is None else column_tree(name)

        return tree.transform(one)

    return aggregate, replace


def _text(tree: exp.Expr) -> str:
    return tree.sql(dialect="spark", comments=False)


def _call_parts(call: exp.Expr) -> tuple[str, exp.Expr | None]:
    """Function and argument; a FILTER clause becomes a CASE around the argument."""
    where = None
    if isinstance(call, exp.Filter):
        where = call.expression.this
        call = call.this
    function = AGGREGATES[type(call)]
    argument: exp.Expr | None = call.this
    if function == "COUNT":
        argument = _counted(call)
    if where is not None:
        argument = exp.case().when(where, exp.Literal.number(1) if argument is None else argument)
    if argument is None:
        return "COUNT_STAR", None
    return function, argument


def _counted(call: exp.Expr) -> exp.Expr | None:
    """What COUNT counts unless it is NULL; None for every row."""
    parts: list[exp.Expr] = [call.this, *(call.args.get("expressions") or ())]
    if isinstance(call.this, exp.Star) or all(isinstance(p, exp.Literal) for p in parts):
        return None
    if len(parts) == 1 and not isinstance(call.this, exp.Null):
        return parts[0]
    present = exp.and_(*[part.is_(exp.null()).not_() for part in parts])
    return exp.case().when(present, exp.Literal.number(1))
