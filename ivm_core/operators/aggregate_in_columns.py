"""Old and new row of every changed group, many groups at once.

    Δγ = Σ over groups in ΔA:  − row(acc(A))  + row(acc(A) + acc(ΔA))

It is `aggregate_on_driver.changed_rows` for sums and counts that fit 64 bits: one grouping by the
keys adds up both sides, and accumulators make columns of them. What has to be looked at group by
group (`OneByOne`) is left to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.model.names import WEIGHT
from ivm_core.operators.accumulator import OneByOne
from ivm_core.operators.aggregate import ROWS
from ivm_core.operators.arrow_types import to_arrow
from ivm_core.operators.netting import stacked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ivm_core.operators.aggregate import AggregateStatements

FROM_ROWS, MOST_ROWS = 80, 400_000
"""Rows of state: below, one by one is faster; beyond, a statement is."""
_LARGEST = 2**63 - 1
_OLD = "_tv_old"
_CHANGED = "_tv_changed"


def changed_rows_at_once(
    statements: AggregateStatements, change: pa.Table, before: pa.Table | None
) -> pa.Table:
    """The rows with −1 and +1, not yet netted; `OneByOne` where sums alone don't tell them."""
    names = [each.name for each in statements.keys]
    summed = [name for name in change.column_names if name not in names]
    count = change.num_rows + (0 if before is None else before.num_rows)
    if not names or not FROM_ROWS <= count <= MOST_ROWS:
        raise OneByOne
    after = _totals(names, summed, change, before)
    sides = [_side(statements, after, summed, "", 1)]
    if before is not None:
        sides.insert(0, _side(statements, after, summed, _OLD, -1))
    return pa.concat_tables(sides)


def _totals(
    names: Sequence[str], summed: Sequence[str], change: pa.Table, before: pa.Table | None
) -> pa.Table:
    """Of each changed group the totals after, and those before under other names."""
    parts = [_marked(change, summed, is_change=True)]
    if before is not None:
        parts.append(_marked(before.select(change.column_names), summed, is_change=False))
    both = stacked(*parts)
    sums = [*summed, *(f"{name}{_OLD}" for name in summed), _CHANGED]
    for name in summed:
        _refuse_overflow(both[name])
    grouped = both.group_by(list(names), use_threads=False).aggregate([(s, "sum") for s in sums])
    grouped = grouped.rename_columns([*names, *sums])
    return grouped.filter(pc.greater(grouped[_CHANGED], 0))


def _marked(rows: pa.Table, summed: Sequence[str], *, is_change: bool) -> pa.Table:
    for name in summed:
        of = rows.schema.field(name).type
        if not (pa.types.is_int64(of) or pa.types.is_decimal128(of)):
            raise OneByOne
        old = rows[name]
        if is_change:
            old = pa.chunked_array([pa.repeat(pa.scalar(0).cast(of), rows.num_rows)])
        rows = rows.append_column(f"{name}{_OLD}", old)
    mark = pa.repeat(pa.scalar(int(is_change), pa.int64()), rows.num_rows)
    return rows.append_column(_CHANGED, mark)


def _refuse_overflow(column: pa.ChunkedArray) -> None:
    """`OneByOne` where a sum might not fit: Arrow's wrap around."""
    ends = pc.min_max(column).as_py()
    if column.null_count or ends["min"] is None:
        raise OneByOne
    largest = max(abs(ends["min"]), abs(ends["max"])) * len(column)
    limit = _LARGEST if pa.types.is_int64(column.type) else 10 ** (37 - column.type.scale)
    if largest > limit:
        raise OneByOne


def _side(
    statements: AggregateStatements,
    totals: pa.Table,
    summed: Sequence[str],
    suffix: str,
    weight: int,
) -> pa.Table:
    """The rows of the groups that there are, before or after."""
    there = totals.filter(pc.greater(totals[f"{ROWS}{suffix}"], 0)).combine_chunks()
    columns = {key.name: there[key.name] for key in statements.keys}
    for accumulator, result in zip(statements.accumulators, statements.results, strict=True):
        try:
            values = accumulator.values_of(lambda name: _flat(there[f"{name}{suffix}"]))
            columns[result.name] = values.cast(to_arrow(result.type))
        except pa.ArrowInvalid as error:
            raise OneByOne from error
    columns[WEIGHT] = pa.repeat(pa.scalar(weight, pa.int64()), there.num_rows)
    return pa.table(columns)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
