"""Old and new row of every changed group, many groups at once.

    Δγ = Σ over groups in ΔA:  − row(acc(A))  + row(acc(A) + acc(ΔA))

It is `aggregate_on_driver.changed_rows` where Arrow's own sums, minima and maxima tell the values:
one grouping by the keys brings together what is known of each group, and accumulators make columns
of it. What has to be looked at group by group (`OneByOne`) is left to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.model.names import WEIGHT
from ivm_core.model.types import FLOAT_KINDS
from ivm_core.operators.accumulator import OneByOne
from ivm_core.operators.aggregate import ROWS
from ivm_core.operators.arrow_types import to_arrow
from ivm_core.operators.extremes import Extreme
from ivm_core.operators.netting import stacked

if TYPE_CHECKING:
    from ivm_core.model.schema import Field
    from ivm_core.operators.aggregate import AggregateStatements
    from ivm_core.operators.group_state import GroupState

FROM_ROWS, MOST_ROWS = 80, 400_000
"""Rows of state: below, one by one is faster; beyond, a statement is."""
_LARGEST = 2**63 - 1
_OLD, _CHANGED = "_tv_old", "_tv_changed"
_OWN, _REDONE, _IS_REDONE = "_tv_own", "_tv_redone", "_tv_is_redone"


def changed_rows_at_once(statements: AggregateStatements, known: GroupState) -> pa.Table:
    """The rows with −1 and +1, not yet netted; `OneByOne` where they can't be told so."""
    count = known.change.num_rows + (0 if known.before is None else known.before.num_rows)
    if not statements.keys or not FROM_ROWS <= count <= MOST_ROWS:
        raise OneByOne
    groups = _Groups(statements, known)
    sides = [groups.side(_OLD, -1)] if known.before is not None else []
    return pa.concat_tables([*sides, groups.side("", 1)])


class _Groups:
    """What is known of each changed group, a row each."""

    def __init__(self, statements: AggregateStatements, known: GroupState) -> None:
        self._statements = statements
        self._pairs = list(zip(statements.accumulators, statements.results, strict=True))
        self._names = [each.name for each in statements.keys]
        self._extremes = [(a, r) for a, r in self._pairs if isinstance(a, Extreme)]
        if any(each.result_type.kind in FLOAT_KINDS for each, _ in self._extremes):
            raise OneByOne  # Arrow leaves NaN out
        apart = {name for each, _ in self._extremes for name in map(each.named, ("m", "gone"))}
        self._summed = [n for n in known.change.column_names if n not in {*self._names, *apart}]
        parts = [self._changed(known.change)]
        if known.before is not None:
            parts.append(self._stored(known.before))
        if self._extremes:
            parts += [self._given(known.own, _OWN), self._given(known.redone, _REDONE)]
        try:
            self._table = self._grouped(stacked(*(part for part in parts if part is not None)))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise OneByOne from error

    def _changed(self, rows: pa.Table) -> pa.Table:
        columns = {name: rows[name] for name in (*self._names, *self._summed)}
        columns |= {each.named("m"): rows[each.named("m")] for each, _ in self._extremes}
        columns[_CHANGED] = _ones(rows.num_rows)
        return pa.table(columns)

    def _stored(self, rows: pa.Table) -> pa.Table:
        columns = {name: rows[name] for name in (*self._names, *self._summed)}
        return pa.table(columns | {f"{name}{_OLD}": rows[name] for name in self._summed})

    def _given(self, rows: pa.Table | None, suffix: str) -> pa.Table | None:
        """Values of MIN and MAX by group."""
        if rows is None:
            return None
        columns = {name: rows[name] for name in self._names}
        columns |= {f"{of.name}{suffix}": rows[of.name] for _, of in self._extremes}
        if suffix == _REDONE:
            columns[_IS_REDONE] = _ones(rows.num_rows)
        return pa.table(columns)

    def _grouped(self, rows: pa.Table) -> pa.Table:
        there = set(rows.column_names)
        sums = [*self._summed, *(f"{name}{_OLD}" for name in self._summed), _CHANGED, _IS_REDONE]
        sums = [name for name in sums if name in there]
        for name in sums:
            _refuse_overflow(rows[name])
        wanted = [(name, "sum") for name in sums]
        for each, of in self._extremes:
            columns = (each.named("m"), f"{of.name}{_OWN}", f"{of.name}{_REDONE}")
            wanted += [(name, each.function.lower()) for name in columns if name in there]
        grouped = rows.group_by(self._names, use_threads=False).aggregate(wanted)
        grouped = grouped.rename_columns([*self._names, *(name for name, _ in wanted)])
        return grouped.filter(pc.greater(pc.fill_null(grouped[_CHANGED], 0), 0)).combine_chunks()

    def side(self, suffix: str, weight: int) -> pa.Table:
        """The rows of the groups that there are, before or after."""
        counts = _or_zero(self._table[f"{ROWS}{suffix}"])
        there = self._table.filter(pc.greater(counts, 0))
        columns = {key.name: there[key.name] for key in self._statements.keys}
        for accumulator, result in self._pairs:
            try:
                if isinstance(accumulator, Extreme):
                    values = _extreme(there, accumulator, result, is_new=not suffix)
                else:
                    values = accumulator.values_of(lambda name: _or_zero(there[f"{name}{suffix}"]))
                columns[result.name] = values.cast(to_arrow(result.type))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise OneByOne from error
        columns[WEIGHT] = pa.repeat(pa.scalar(weight, pa.int64()), there.num_rows)
        return pa.table(columns)


def _extreme(groups: pa.Table, extreme: Extreme, of: Field, *, is_new: bool) -> pa.Array:
    """MIN or MAX: what it was, or the better of that and of the insertions, or recomputed."""
    wanted = to_arrow(of.type)
    # Arrow compares no times with a zone
    none = pa.nulls(groups.num_rows, pa.int64() if pa.types.is_timestamp(wanted) else wanted)

    def column(name: str) -> pa.Array:
        return _flat(groups[name]).cast(none.type) if name in groups.column_names else none

    own = column(f"{of.name}{_OWN}")
    if not is_new:
        return own
    better = pc.min_element_wise if extreme.function == "MIN" else pc.max_element_wise
    value = better(own, column(extreme.named("m")), skip_nulls=True)
    if _IS_REDONE not in groups.column_names:
        return value
    is_redone = pc.greater(_or_zero(groups[_IS_REDONE]), 0)
    return pc.if_else(is_redone, column(f"{of.name}{_REDONE}"), value)


def _refuse_overflow(column: pa.ChunkedArray) -> None:
    """`OneByOne` for what has no sum, or where one might not fit: Arrow's wrap around."""
    is_whole = pa.types.is_int64(column.type)
    if not is_whole and not pa.types.is_decimal128(column.type):
        raise OneByOne
    ends = pc.min_max(column).as_py()
    if ends["min"] is None:
        return
    limit = _LARGEST if is_whole else 10 ** (37 - column.type.scale)
    if max(abs(ends["min"]), abs(ends["max"])) * len(column) > limit:
        raise OneByOne


def _ones(count: int) -> pa.Array:
    return pa.repeat(pa.scalar(1, pa.int64()), count)


def _or_zero(column: pa.ChunkedArray) -> pa.Array:
    """Sums, 0 where there was nothing to add up."""
    return pc.fill_null(_flat(column), pa.scalar(0).cast(column.type))


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
