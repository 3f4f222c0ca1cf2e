"""Old and new row of every changed group, from a few rows of state, without a statement.

    Δγ = Σ over groups in ΔA:  − row(acc(A))  + row(acc(A) + acc(ΔA))

It is `AggregateStatements.rows` for state that is on the driver already: accumulators are integers
that add up, and Python's are exact; MIN and MAX are the better of the old value and that of the
insertions, or what was recomputed. A statement for a handful of groups costs Spark many times what
this costs; what can't be told here (`OnlySpark`) is left to it, errors among them.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivm_core.model.names import WEIGHT
from ivm_core.model.types import FLOAT_KINDS, Nested
from ivm_core.operators.accumulator import OneByOne, OnlySpark
from ivm_core.operators.aggregate import ROWS
from ivm_core.operators.aggregate_in_columns import changed_rows_at_once
from ivm_core.operators.arrow_types import to_arrow
from ivm_core.operators.extremes import Extreme
from ivm_core.operators.netting import stacked

if TYPE_CHECKING:
    from collections.abc import Callable

    from ivm_core.model.schema import Field
    from ivm_core.operators.aggregate import AggregateStatements
    from ivm_core.operators.group_state import GroupState

FEW_ROWS = 20_000
"""Rows of state that are looked at one by one; beyond, a statement is the cheaper one."""
Key = tuple[Any, ...]


def is_on_driver(statements: AggregateStatements) -> bool:
    """Whether the node's rows can be made on the driver: keys that are their bits, plain extremes.

    GROUP BY takes 0.0 and −0.0 for one, and compares arrays and structs by their elements.
    """
    extremes = (each for each in statements.accumulators if isinstance(each, Extreme))
    types = [*(key.type for key in statements.keys), *(each.result_type for each in extremes)]
    has_nested = any(isinstance(each, Nested) for each in types)
    return not has_nested and all(key.type.kind not in FLOAT_KINDS for key in statements.keys)


def changed_rows(statements: AggregateStatements, known: GroupState) -> pa.Table:
    """The rows with −1 and +1, not yet netted; `OnlySpark` where the driver can't tell a value."""
    names = [each.name for each in statements.keys]
    change, before = known.change, known.before
    with suppress(OneByOne):
        return changed_rows_at_once(statements, known)
    both = change if before is None else stacked(change, before.select(change.column_names))
    if both.num_rows > FEW_ROWS:
        raise OnlySpark(f"{both.num_rows} rows of state")
    state = _Columns(both)
    groups: dict[Key, tuple[list[int], list[int]]] = {} if names else {(): ([], [])}
    for row, key in enumerate(state.keys(names)):
        if row < change.num_rows:
            groups.setdefault(key, ([], []))[1].append(row)
        elif key in groups:
            groups[key][0].append(row)
    sides: list[_Side] = []
    if before is not None:
        sides += [_Side(key, old, -1) for key, (old, _) in groups.items()]
    sides += [_Side(key, [*new, *old], 1) for key, (old, new) in groups.items()]
    if names:
        counts = state.column(ROWS)
        sides = [side for side in sides if sum(counts[row] for row in side.rows) > 0]
    return _table(statements, known, state, sides)


def reached_keys(statements: AggregateStatements, change: pa.Table, own: pa.Table) -> pa.Table:
    """Keys of groups where a deletion reaches the old MIN or MAX; `own` are the node's old rows."""
    names = [each.name for each in statements.keys]
    folded, before = _Columns(change), _Columns(own)
    reached: set[int] = set()
    for accumulator, result in zip(statements.accumulators, statements.results, strict=True):
        if not isinstance(accumulator, Extreme):
            continue
        old = before.by_key(names, result.name)
        gone = folded.column(accumulator.named("gone"))
        for row, key in enumerate(folded.keys(names)):
            value = old.get(key)
            if gone[row] is None or value is None:
                continue
            theirs, ours = _order(gone[row]), _order(value)
            if theirs <= ours if accumulator.function == "MIN" else theirs >= ours:
                reached.add(row)
    keys = {folded.keys(names)[row]: row for row in sorted(reached)}
    if not names:
        return pa.table({"present": pa.repeat(True, len(keys))})
    return change.select(names).take(pa.array(keys.values(), pa.int64()))


@dataclass(frozen=True)
class _Side:
    """A group before or after, and the rows of its state; those of the change come first."""

    key: Key
    rows: list[int]
    weight: int


class _Columns:
    """Columns of a table as lists, made when they are asked for."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._lists: dict[str, list[Any]] = {}

    def column(self, name: str) -> list[Any]:
        if name not in self._lists:
            self._lists[name] = _plain(self.table.column(name)).to_pylist()
        return self._lists[name]

    def keys(self, names: list[str]) -> list[Key]:
        if not names:
            return [()] * self.table.num_rows
        return list(zip(*(self.column(name) for name in names), strict=True))

    def by_key(self, names: list[str], value: str) -> dict[Key, Any]:
        return dict(zip(self.keys(names), self.column(value), strict=True))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates and times as numbers: Python has not all that Spark has."""
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32())
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    return column


def _table(
    statements: AggregateStatements, known: GroupState, state: _Columns, sides: list[_Side]
) -> pa.Table:
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    if statements.keys:
        first = pa.array([side.rows[0] for side in sides], pa.int64())
        for key in statements.keys:
            columns[key.name] = state.table.column(key.name).take(first)
    for accumulator, result in zip(statements.accumulators, statements.results, strict=True):
        if isinstance(accumulator, Extreme):
            value = _extreme(statements, known, state, accumulator, result)
            values = [value(side) for side in sides]
        else:
            values = [accumulator.value_of(state.column, side.rows) for side in sides]
        columns[result.name] = _array(values, result)
    if not columns:
        columns["present"] = pa.repeat(True, len(sides))
    columns[WEIGHT] = pa.array([side.weight for side in sides], pa.int64())
    return pa.table(columns)


def _extreme(
    statements: AggregateStatements,
    known: GroupState,
    state: _Columns,
    extreme: Extreme,
    result: Field,
) -> Callable[[_Side], Any]:
    """MIN or MAX of a group on one side."""
    names = [each.name for each in statements.keys]
    inserted = state.column(extreme.named("m"))
    count = known.change.num_rows
    own, redone = (
        {} if table is None else _Columns(table).by_key(names, result.name)
        for table in (known.own, known.redone)
    )
    better = min if extreme.function == "MIN" else max

    def value(side: _Side) -> Any:
        if side.weight > 0 and side.key in redone:
            return redone[side.key]
        candidates = [own.get(side.key)]
        if side.weight > 0:
            candidates += [inserted[row] for row in side.rows if row < count]
        there = [each for each in candidates if each is not None]
        return better(there, key=_order) if there else None

    return value


def _order(value: Any) -> Any:
    """NaN is greater than all numbers."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value


def _array(values: list[Any], of: Field) -> pa.Array:
    wanted = to_arrow(of.type)
    given = wanted
    if pa.types.is_date32(wanted):
        given = pa.int32()
    elif pa.types.is_timestamp(wanted):
        given = pa.int64()
    try:
        return pa.array(values, given).cast(wanted)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise OnlySpark(f"{of.name} doesn't fit {of.type.ddl}") from error
