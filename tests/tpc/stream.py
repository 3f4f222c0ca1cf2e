"""Refresh streams: tick by tick, rows of every table come, go, change and take other keys.

Everything follows from the tables and a seed. A new row takes each column from another row, so
that values stay within their domains and foreign keys move. Some rows come and go within one
batch; what goes from a table with `back`, or for a reason, returns later under its old key.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivm_core import DeltaBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    Rows = NDArray[np.int64]
    Events = Callable[[int, Mapping[str, pa.Table]], Mapping[str, Rows]]
    """Rows that go at a tick for a reason, by table, beside those drawn at random; they return."""


@dataclass(frozen=True)
class StreamTable:
    """How a table changes."""

    name: str
    key: tuple[str, ...] = ()
    size: int = 3
    """Rows that come, that go, and that change, in each tick."""
    serial: str | None = None
    """The key column that counts on for new rows; without it a key is combined of others."""
    together: tuple[tuple[str, ...], ...] = ()
    """Columns whose values make sense only together."""
    follows: tuple[tuple[str, str], ...] = ()
    """Columns and the tables whose keys they name; in even ticks they follow a key's change."""
    keeps: tuple[str, ...] = ()
    """Columns that never change in a row that stays."""
    back: int = 0
    """Ticks after which what has gone returns; even, so that followers follow back."""


@dataclass
class TableChange:
    """One table's changes in one tick."""

    come: pa.Table
    go: pa.Table
    go_by_key: pa.Table
    become: pa.Table
    """Rows that replace those of the same key."""
    cancel: pa.Table
    """Rows that come and go within the batch."""

    def batch(self) -> DeltaBatch:
        made = DeltaBatch.inserts(self.come) + DeltaBatch.deletes(self.go)
        made += DeltaBatch.inserts(self.cancel) + DeltaBatch.deletes(self.cancel)
        if self.become.num_rows:
            made += DeltaBatch.upserts(self.become)
        if self.go_by_key.num_rows:
            made += DeltaBatch.delete_keys(self.go_by_key)
        return made


@dataclass(frozen=True)
class _Returning:
    tick: int
    row: dict[str, Any]
    moved_to: tuple[Any, ...] | None
    """The key that the row has until then; None where it is gone."""


MOST_FOLLOWERS = 30
"""Rows of a column that follow at once; the others name a key that is gone."""
WHEN_GONE = 2
"""Ticks after which rows return that went for a reason."""


@dataclass
class Stream:
    """The tables as they are by now, and their next changes."""

    tables: dict[str, pa.Table]
    specs: Sequence[StreamTable]
    seed: int
    events: Events | None = None
    tick: int = 0
    _serials: dict[str, int] = field(default_factory=dict)
    _returning: dict[str, list[_Returning]] = field(default_factory=dict)

    def next(self) -> dict[str, TableChange]:
        """One tick's changes; the tables are what they are after it."""
        self.tick += 1
        events = self.events(self.tick, self.tables) if self.events else {}
        moves: dict[str, dict[Any, Any]] = {}
        changes = {}
        for spec in self.specs:
            step = _Step(self, spec, moves, events.get(spec.name))
            changes[spec.name] = step.change()
            self.tables[spec.name] = step.after()
        return changes

    def serial(self, spec: StreamTable, count: int) -> Rows:
        """Numbers that no row of the table ever had."""
        if spec.name not in self._serials:
            self._serials[spec.name] = pc.max(self.tables[spec.name][spec.serial]).as_py()
        start = self._serials[spec.name] + 1
        self._serials[spec.name] += count
        return np.arange(start, start + count)

    def remember(
        self, spec: StreamTable, rows: pa.Table, moved: Sequence[tuple[Any, ...]] | None = None
    ) -> None:
        kept = self._returning.setdefault(spec.name, [])
        for i, row in enumerate(rows.to_pylist()):
            due = self.tick + (spec.back or WHEN_GONE)
            kept.append(_Returning(due, row, moved[i] if moved else None))

    def due(self, spec: StreamTable) -> list[_Returning]:
        kept = self._returning.get(spec.name, [])
        self._returning[spec.name] = [each for each in kept if each.tick > self.tick]
        return [each for each in kept if each.tick <= self.tick]

    def moved(self, spec: StreamTable) -> set[tuple[Any, ...]]:
        """Keys that are to move back."""
        return {each.moved_to for each in self._returning.get(spec.name, []) if each.moved_to}


class _Step:
    """One table in one tick."""

    def __init__(
        self,
        stream: Stream,
        spec: StreamTable,
        moves: dict[str, dict[Any, Any]],
        event: Rows | None,
    ) -> None:
        self._stream = stream
        self._spec = spec
        self._moves = moves
        self._before = stream.tables[spec.name]
        self._random = np.random.default_rng([stream.seed, stream.tick, len(spec.name), spec.size])
        self._touched = np.zeros(self._before.num_rows, dtype=bool)
        self._event = np.array([], np.int64) if event is None else np.asarray(event, np.int64)
        self._due = stream.due(spec)
        combined = bool(spec.key) and spec.serial is None
        self._places = self._keys_in_place() if combined or spec.back or self._due else {}
        self._keys = set(self._places)
        self._come: list[pa.Table] = []
        self._go: list[Rows] = []
        self._by_key: list[Rows] = []
        self._become: list[pa.Table] = []
        self._become_rows: list[Rows] = []

    def change(self) -> TableChange:
        spec, nothing = self._spec, self._before.slice(0, 0)
        self._return()
        self._go_for_a_reason()
        self._follow()
        self._come.append(self._new_rows(spec.size))
        self._lose()
        self._alter()
        self._move()
        by_key = self._before.take(_joined(self._by_key))
        return TableChange(
            come=pa.concat_tables([nothing, *self._come]),
            go=self._before.take(_joined(self._go)),
            go_by_key=by_key.select(list(spec.key)),
            become=pa.concat_tables([nothing, *self._become]),
            cancel=self._cancelling(),
        )

    def after(self) -> pa.Table:
        stays = self._before.filter(pa.array(~self._touched))
        return pa.concat_tables([stays, *self._come, *self._become]).combine_chunks()

    # --- what happens ---

    def _go_for_a_reason(self) -> None:
        rows = self._event[~self._touched[self._event]]
        self._take(rows)
        self._go.append(rows)
        self._stream.remember(self._spec, self._before.take(rows))

    def _return(self) -> None:
        """Rows come back under their keys, and keys that moved move back."""
        for each in self._due:
            row = dict(each.row)
            if each.moved_to is not None:
                place = self._places.get(each.moved_to)
                if place is None or self._touched[place]:
                    continue
                row = self._before.slice(place, 1).to_pylist()[0]
                row |= {name: each.row[name] for name in self._spec.key}
                self._take(np.array([place]))
                self._go.append(np.array([place]))
                self._moved(each.moved_to, tuple(row[name] for name in self._spec.key))
            key = tuple(row[name] for name in self._spec.key)
            if key in self._keys:
                continue
            self._keys.add(key)
            self._come.append(pa.Table.from_pylist([row], schema=self._before.schema))

    def _follow(self) -> None:
        """Foreign keys go with the keys that they name."""
        if self._stream.tick % 2:
            return
        for column, table in self._spec.follows:
            moved = self._moves.get(table, {})
            if not moved:
                continue
            wanted = pc.is_in(self._before[column], pa.array(list(moved), pa.int64()))
            rows = np.flatnonzero(np.asarray(wanted) & ~self._touched)[:MOST_FOLLOWERS]
            old = self._before.take(rows)
            values = pa.array([moved[each] for each in old[column].to_pylist()])
            self._replace(rows, _with(old, column, values))

    def _lose(self) -> None:
        rows = self._drawn(self._spec.size)
        half = len(rows) // 2 if self._spec.key else len(rows)
        self._go.append(rows[:half])
        self._by_key.append(rows[half:])
        if self._spec.back:
            self._stream.remember(self._spec, self._before.take(rows))

    def _alter(self) -> None:
        rows = self._drawn(self._spec.size)
        changed = self._before.take(rows)
        fixed = {*self._spec.key, *self._spec.keeps}
        groups = [each for each in self._groups() if not set(each) & fixed]
        chosen = [each for each in groups if self._random.random() < 0.4] or groups[:1]
        for group in chosen:
            source = self._before.take(self._any(len(rows)))
            for name in group:
                changed = _with(changed, name, source[name])
        self._replace(rows, changed)

    def _move(self) -> None:
        """Rows that are the same but for their key."""
        if not self._spec.key:
            return
        rows = self._drawn(self._spec.size // 2 + 1)
        old = self._before.take(rows)
        new = self._keyed_anew(old)
        self._go.append(rows)
        self._come.append(new)
        keys = list(zip(*(new[name].to_pylist() for name in self._spec.key), strict=True))
        before = zip(*(old[name].to_pylist() for name in self._spec.key), strict=True)
        for one, other in zip(before, keys, strict=True):
            self._moved(one, other)
        if self._spec.back:
            self._stream.remember(self._spec, old, keys)

    def _cancelling(self) -> pa.Table:
        """Rows of which nothing remains: new ones, and some that are there and stay."""
        new = self._new_rows(1)
        stays = np.flatnonzero(~self._touched)
        if self._spec.key or not len(stays):
            return new
        return pa.concat_tables([new, self._before.take(stays[:1])])

    # --- how ---

    def _replace(self, rows: Rows, changed: pa.Table) -> None:
        self._take(rows)
        if self._spec.key and all(
            changed[name].equals(self._before[name].take(rows)) for name in self._spec.key
        ):
            self._become.append(changed)
            return
        self._go.append(rows)
        self._come.append(changed)

    def _new_rows(self, count: int) -> pa.Table:
        columns: dict[str, pa.ChunkedArray] = {}
        for group in self._groups():
            source = self._any(count)
            columns |= {name: self._before[name].take(source) for name in group}
        crossed = pa.table({name: columns[name] for name in self._before.column_names})
        crossed = crossed.cast(self._before.schema)
        return self._keyed_anew(crossed) if self._spec.key else crossed

    def _keyed_anew(self, rows: pa.Table) -> pa.Table:
        if self._spec.serial is not None:
            values = pa.array(self._stream.serial(self._spec, rows.num_rows))
            return _with(rows, self._spec.serial, values)
        fresh = []
        while len(fresh) < rows.num_rows:
            pick = [int(each) for each in self._any(len(self._spec.key))]
            key = tuple(
                self._before[name][place].as_py()
                for name, place in zip(self._spec.key, pick, strict=True)
            )
            if key not in self._keys:
                self._keys.add(key)
                fresh.append(key)
        for i, name in enumerate(self._spec.key):
            rows = _with(rows, name, pa.array([key[i] for key in fresh]))
        return rows

    def _groups(self) -> list[tuple[str, ...]]:
        together = {name for group in self._spec.together for name in group}
        alone = [(name,) for name in self._before.column_names if name not in together]
        return [*self._spec.together, *alone]

    def _any(self, count: int) -> Rows:
        return self._random.integers(0, self._before.num_rows, count)

    def _drawn(self, count: int) -> Rows:
        """Rows that nothing has happened to in this tick; at least two are left alone."""
        away = [self._places[key] for key in self._stream.moved(self._spec) if key in self._places]
        free = np.setdiff1d(np.flatnonzero(~self._touched), away)
        count = min(count, max(0, len(free) - 2))
        rows = self._random.choice(free, count, replace=False)
        self._take(rows)
        return rows

    def _take(self, rows: Rows) -> None:
        self._touched[rows] = True

    def _moved(self, old: tuple[Any, ...], new: tuple[Any, ...]) -> None:
        if len(old) == 1:
            self._moves.setdefault(self._spec.name, {})[old[0]] = new[0]

    def _keys_in_place(self) -> dict[tuple[Any, ...], int]:
        values = [self._before[name].to_pylist() for name in self._spec.key]
        return {key: i for i, key in enumerate(zip(*values, strict=True))}


def _joined(parts: Sequence[Rows]) -> Rows:
    return np.concatenate([np.array([], np.int64), *parts])


def _with(table: pa.Table, name: str, values: Any) -> pa.Table:
    place = table.column_names.index(name)
    kind = table.schema.field(name)
    return table.set_column(place, kind, values.cast(kind.type))
