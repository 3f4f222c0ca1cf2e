"""A change that goes through filters and renamings, counted, added up or put in order on the way.

    Δσ(A) = σ(ΔA)        Δπ(A) = π(ΔA)        acc(ΔA) = Σ weight · digits(row)

A chain over rows that are on the driver needs no statement where its conditions compare columns
with constants and each other (`sieve`), its columns are those of a relation or exact arithmetic
over them (`scalars_on_driver`), and its sums are of integers and decimals. Everything else is
`OnlySpark`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from ivm_core.model.names import WEIGHT
from ivm_core.operators.accumulator import OnlySpark
from ivm_core.operators.aggregate import ROWS
from ivm_core.operators.aggregate_on_driver import is_on_driver
from ivm_core.operators.arrow_types import arrow_schema, to_arrow
from ivm_core.operators.netting import are_flat, net, stacked
from ivm_core.operators.scalars_on_driver import is_exact, values_of
from ivm_core.operators.sieve import passing, said_by_sieve
from ivm_core.operators.sql import tree_of
from ivm_core.operators.top import IS_LAST, PLACE
from ivm_core.plan.nodes import Filter, Project, Scan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ivm_core.model.schema import Schema
    from ivm_core.model.types import DataType
    from ivm_core.operators.accumulator import Digits
    from ivm_core.operators.aggregate import AggregateStatements
    from ivm_core.plan.nodes import Node
    from ivm_core.plan.partitioned import Top

MOST_WEIGHT = 1 << 30
"""Rows times the largest weight up to which sums of 32-bit digits are certain to fit."""


def chained(
    node: Node,
    change_of: Callable[[str], pa.Table],
    types_of: Callable[[Node], Mapping[str, DataType]],
) -> pa.Table:
    """The change of a chain in the node's columns, with weights; it is not netted."""
    if isinstance(node, Scan):
        return _renamed(change_of(node.relation), node.fields, node.columns)
    if isinstance(node, Project):
        rows = chained(node.input, change_of, types_of)
        columns = [_computed(node, column, rows, types_of(node)) for column in node.columns]
        return pa.table([*columns, rows.column(WEIGHT)], names=[*node.columns, WEIGHT])
    if isinstance(node, Filter):
        condition = said_by_sieve(node.predicate, types_of(node.input).get)
        if condition is None:
            raise OnlySpark("a condition")
        return passing(chained(node.input, change_of, types_of), [condition])
    raise OnlySpark(type(node).__name__)


def _computed(
    node: Project, column: str, rows: pa.Table, types: Mapping[str, DataType]
) -> pa.ChunkedArray:
    source = node.source_of(column)
    if source is not None:
        return rows.column(source)
    found = values_of(node.scalar_of(column), rows)
    is_number = pa.types.is_integer(found.type) or pa.types.is_decimal(found.type)
    if not is_number or column not in types or found.type != to_arrow(types[column]):
        raise OnlySpark("an expression of another type")
    return found


def _check_plain(of: pa.DataType) -> None:
    if not is_exact(of) and not pa.types.is_decimal(of):
        raise OnlySpark(f"values of {of}")


def _renamed(rows: pa.Table, columns: Sequence[str], names: Sequence[str]) -> pa.Table:
    arrays = [rows.column(each) for each in (*columns, WEIGHT)]
    return pa.table(arrays, names=[*names, WEIGHT])


def folded(statements: AggregateStatements, rows: pa.Table) -> pa.Table:
    """acc(ΔA) of the rows of a change, one row a group."""
    node = statements.node
    if statements.is_extremal or not is_on_driver(statements):
        raise OnlySpark("its groups or its extremes")
    for _, theirs in node.keys:
        _check_plain(rows.column(theirs).type)
    weights = rows.column(WEIGHT).to_numpy()
    if len(weights) and int(np.abs(weights).max()) * len(weights) > MOST_WEIGHT:
        raise OnlySpark("large weights")
    keys = [each.name for each in statements.keys]
    columns: dict[str, Any] = {
        stored: rows.column(theirs) for stored, (_, theirs) in zip(keys, node.keys, strict=True)
    }
    sums: Digits = {ROWS: weights}
    for accumulator, call in zip(statements.accumulators, node.calls, strict=True):
        argument = None if call.argument is None else rows.column(call.argument)
        sums |= accumulator.digits(argument, weights)
    wanted = arrow_schema(statements.state_schema)
    if not keys:
        totals = {name: _total(values, wanted.field(name).type) for name, values in sums.items()}
        return pa.table(totals).select(wanted.names).cast(wanted)
    table = pa.table({**columns, **sums})
    calls = [(name, "sum") for name in sums]
    found = table.group_by(keys, use_threads=False).aggregate(calls)
    found = found.select([*keys, *(f"{name}_sum" for name in sums)])
    return found.rename_columns([*keys, *sums]).select(wanted.names).cast(wanted)


def _total(values: np.ndarray | pa.ChunkedArray, of: pa.DataType) -> pa.Array:
    found = pc.sum(values, min_count=0).as_py()
    return pa.array([found], of)


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
