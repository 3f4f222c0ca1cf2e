"""A change that is counted, added up or put in order on the driver.

    acc(ΔA) = Σ weight · digits(row)

It needs no statement where the rows of the change are there (`delta_on_driver`), sums are of
integers and decimals, and keys, extremes and orders are of values that Arrow compares as Spark
does. Everything else is `OnlySpark`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from ivm_core.model.names import PLACE, WEIGHT
from ivm_core.operators.accumulator import OnlySpark, TooMany
from ivm_core.operators.aggregate import ROWS
from ivm_core.operators.aggregate_on_driver import is_on_driver
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.extremes import Extreme
from ivm_core.operators.netting import are_flat, net, stacked
from ivm_core.operators.scalars_on_driver import is_exact
from ivm_core.operators.sql import tree_of
from ivm_core.operators.top import IS_LAST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.model.schema import Schema
    from ivm_core.operators.accumulator import Digits
    from ivm_core.operators.aggregate import AggregateStatements
    from ivm_core.plan.partitioned import Top

MOST_WEIGHT = 1 << 30
"""Rows times the largest weight up to which sums of 32-bit digits are certain to fit."""


MOST_COPIES = 1_000_000
"""Rows that are put in order, each as often as it is there."""


def _check_plain(of: pa.DataType) -> None:
    if not is_exact(of) and not pa.types.is_decimal(of):
        raise OnlySpark(f"values of {of}")


def folded(statements: AggregateStatements, rows: pa.Table) -> pa.Table:
    """acc(ΔA) of the rows of a change, one row a group."""
    node = statements.node
    if not is_on_driver(statements):
        raise OnlySpark("its groups or its extremes")
    for _, theirs in node.keys:
        _check_plain(rows.column(theirs).type)
    weights = _small_weights(rows)
    if statements.is_extremal:
        # MIN over rows that cancel out would see what is not there
        rows = _netted(rows)
        weights = _small_weights(rows)
    keys = [each.name for each in statements.keys]
    columns: dict[str, Any] = {
        stored: rows.column(theirs) for stored, (_, theirs) in zip(keys, node.keys, strict=True)
    }
    sums: Digits = {ROWS: weights}
    extremes: dict[str, tuple[str, pa.ChunkedArray]] = {}
    for accumulator, call in zip(statements.accumulators, node.calls, strict=True):
        argument = None if call.argument is None else rows.column(call.argument)
        if isinstance(accumulator, Extreme) and argument is not None:
            _check_plain(argument.type)
            came = pa.array(weights > 0)
            function = accumulator.function.lower()
            for part, wanted_rows in (("m", came), ("gone", pc.invert(came))):
                values = pc.if_else(wanted_rows, argument, pa.scalar(None, argument.type))
                extremes[accumulator.named(part)] = function, values
        else:
            sums |= accumulator.digits(argument, weights)
    calls = [(name, "sum") for name in sums]
    calls += [(name, function) for name, (function, _) in extremes.items()]
    wanted = arrow_schema(statements.state_schema)
    values = {**sums, **{name: each for name, (_, each) in extremes.items()}}
    if not keys:
        totals = {name: _total(values[name], of, wanted.field(name).type) for name, of in calls}
        return pa.table(totals).select(wanted.names).cast(wanted)
    table = pa.table({**columns, **values})
    try:
        found = table.group_by(keys, use_threads=False).aggregate(calls)
    except pa.ArrowNotImplementedError as error:
        raise OnlySpark("extremes of such values") from error
    found = found.select([*keys, *(f"{name}_{of}" for name, of in calls)])
    named = found.rename_columns([*keys, *(name for name, _ in calls)])
    return named.select(wanted.names).cast(wanted)


def _small_weights(rows: pa.Table) -> np.ndarray:
    """The weights, of which any sum of digits fits."""
    weights: np.ndarray = rows.column(WEIGHT).to_numpy()
    widest = max(int(weights.max()), -int(weights.min())) if len(weights) else 0
    if widest * len(weights) > MOST_WEIGHT:
        raise OnlySpark("large weights")
    return weights


def _netted(rows: pa.Table) -> pa.Table:
    names = [name for name in rows.column_names if name != WEIGHT]
    for name in names:
        _check_plain(rows.column(name).type)
    found = rows.group_by(names, use_threads=False).aggregate([(WEIGHT, "sum")])
    found = found.rename_columns([*names, WEIGHT])
    return found.filter(pc.not_equal(found.column(WEIGHT), 0))


def _total(values: np.ndarray | pa.ChunkedArray, function: str, of: pa.DataType) -> pa.Array:
    if function == "sum":
        return pa.array([pc.sum(values, min_count=0).as_py()], of)
    found = pc.min(values) if function == "min" else pc.max(values)
    return pa.array([found.as_py()], of)


def in_order(top: Top, before: pa.Table, change: pa.Table, schema: Schema) -> pa.Table:
    """What `Candidates.query` gives: the first rows and what came, and the last of the first once.

    `before` and `schema` have the columns as they are stored, `change` those of the node.
    """
    names = list(schema.names)
    if not are_flat(schema) or top.limit is None:
        raise OnlySpark("an order of other than plain values")
    stored = dict(zip(top.columns, names, strict=True))
    keys = [_sort_key(tree_of(scalar), stored) for scalar in top.order]
    came = change.select([*top.columns, WEIGHT]).rename_columns([*names, WEIGHT])
    before = before.select([*names, WEIGHT])
    known = net(stacked(before, came.cast(before.schema)), schema)
    known = known.filter(pc.greater(known.column(WEIGHT), 0))
    # more copies than the limit change nothing: none of them is among the first rows
    copies = np.minimum(known.column(WEIGHT).to_numpy(), top.limit + 1)
    if copies.sum() > MOST_COPIES:
        raise TooMany("copies of rows")
    rows = known.select(names).take(pa.array(np.repeat(np.arange(known.num_rows), copies)))
    last = before.select(names).take(_order(before, keys)[-1:])
    flags = pa.array([0] * rows.num_rows + [1] * last.num_rows, pa.int64())
    marked = stacked(rows, last.cast(rows.schema)).append_column(IS_LAST, flags)
    found = marked.take(_order(marked, [*keys, (IS_LAST, False, True)]))
    return found.append_column(PLACE, pa.array(np.arange(1, found.num_rows + 1)))


def _sort_key(tree: exp.Expr, stored: Mapping[str, str]) -> tuple[str, bool, bool]:
    """A stored column, whether it descends, and whether NULLs come first."""
    ordered = tree if isinstance(tree, exp.Ordered) else exp.Ordered(this=tree)
    column = ordered.this.unnest()
    if not isinstance(column, exp.Column) or column.name not in stored:
        raise OnlySpark("an order by expressions")
    descends = bool(ordered.args.get("desc"))
    first = ordered.args.get("nulls_first")
    return stored[column.name], descends, not descends if first is None else bool(first)


def _order(rows: pa.Table, keys: list[tuple[str, bool, bool]]) -> pa.Array:
    """The places of the rows in an order; Arrow puts NULLs of all columns on one side."""
    columns, sort_keys = {}, []
    for number, (name, descends, nulls_first) in enumerate(keys):
        values = rows.column(name)
        _check_plain(values.type)
        columns[f"null_{number}"] = pc.is_null(values).cast(pa.int8())
        columns[f"value_{number}"] = values
        sort_keys.append((f"null_{number}", "descending" if nulls_first else "ascending"))
        sort_keys.append((f"value_{number}", "descending" if descends else "ascending"))
    return pc.sort_indices(pa.table(columns), sort_keys=sort_keys)
