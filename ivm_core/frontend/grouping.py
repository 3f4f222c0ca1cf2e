"""GROUP BY and aggregates: what is projected below the aggregate, and what stands above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.operators.sql import column as column_tree
from ivm_core.operators.sql import column_scalar, scalar_of, unchanged
from ivm_core.plan.nodes import (
    PRESENT,
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
    Join,
    Node,
    Project,
)

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
    sets: dict[str | None, list[AggregateCall]] = {}
    for number, call in enumerate(calls, 1):
        function, argument, is_distinct = _call_parts(call)
        column = None if argument is None else place(argument, f"argument_{number}")
        made = AggregateCall(f"aggregate_{number}", function, column)
        sets.setdefault(column if is_distinct else None, []).append(made)
        replacements[_text(call)] = f"aggregate_{number}"
    if not outputs:
        outputs[PRESENT] = scalar_of(exp.true())
    projected = Project(node, tuple(outputs.items()))
    aggregate = _joined_sets(projected, list(key_names), sets or {None: []})

    def replace(tree: exp.Expr) -> exp.Expr:
        def one(part: exp.Expr) -> exp.Expr:
            name = replacements.get(_text(part))
            return part if name is None else column_tree(name)

        return tree.transform(one)

    return aggregate, replace


def _text(tree: exp.Expr) -> str:
    return tree.sql(dialect="spark", comments=False)


def _joined_sets(node: Node, keys: list[str], sets: dict[str | None, list[AggregateCall]]) -> Node:
    """One aggregate over all rows, one for each argument that counts once, joined by the keys."""
    parts: list[Node] = []
    for column, calls in sets.items():
        source: Node = node
        if column is not None:
            wanted = dict.fromkeys([*keys, column])
            distinct = Project(node, unchanged(wanted))
            source = Distinct(distinct)
        parts.append(Aggregate(source, tuple((name, name) for name in keys), tuple(calls)))
    if len(parts) == 1:
        return parts[0]
    columns = [column for part in parts for column in part.columns if column not in keys]
    renamed: list[Node] = [parts[0]]
    conditions = []
    for number, part in enumerate(parts[1:], 2):
        names = {key: f"?{number}.{key}" for key in keys}
        outputs = [(names.get(name, name), column_scalar(name)) for name in part.columns]
        renamed.append(Project(part, tuple(outputs)))
        conditions += [
            exp.NullSafeEQ(this=column_tree(key), expression=column_tree(names[key]))
            for key in keys
        ]
    joined: Node = Join(tuple(renamed), ())
    for condition in conditions:
        joined = Filter(joined, scalar_of(condition))
    return Project(joined, unchanged([*keys, *columns]))


def _call_parts(call: exp.Expr) -> tuple[str, exp.Expr | None, bool]:
    """Function, argument, DISTINCT; a FILTER clause becomes a CASE around the argument."""
    where = None
    if isinstance(call, exp.Filter):
        where = call.expression.this
        call = call.this
    function = AGGREGATES[type(call)]
    argument: exp.Expr | None = call.this
    is_distinct = isinstance(call.this, exp.Distinct)
    if isinstance(call.this, exp.Distinct):
        argument = _once(call.this.expressions)
        is_distinct = function not in ("MIN", "MAX")
    elif function == "COUNT":
        argument = _counted(call)
    if where is not None:
        argument = exp.case().when(where, exp.Literal.number(1) if argument is None else argument)
    if argument is None:
        return "COUNT_STAR", None, False
    return function, argument, is_distinct


def _once(parts: list[exp.Expr]) -> exp.Expr:
    """What COUNT(DISTINCT a, b) counts: pairs without a NULL."""
    if len(parts) == 1:
        return parts[0]
    fields = [exp.alias_(part.copy(), f"c{i}") for i, part in enumerate(parts)]
    present = exp.and_(*[part.copy().is_(exp.null()).not_() for part in parts])
    return exp.case().when(present, exp.Anonymous(this="STRUCT", expressions=fields))


def _counted(call: exp.Expr) -> exp.Expr | None:
    """What COUNT counts unless it is NULL; None for every row."""
    parts: list[exp.Expr] = [call.this, *(call.args.get("expressions") or ())]
    if isinstance(call.this, exp.Star) or all(isinstance(p, exp.Literal) for p in parts):
        return None
    if len(parts) == 1 and not isinstance(call.this, exp.Null):
        return parts[0]
    present = exp.and_(*[part.is_(exp.null()).not_() for part in parts])
    return exp.case().when(present, exp.Literal.number(1))
