"""What a tick reads: every relation before the tick, and its change since a reader last looked.

A relation is a fed source, a followed table, a view, a node inside a view, or a clock. Its rows
before the tick come from its trace (a followed table is its own); its change is what this tick
produced, with what a reader has missed in earlier ticks.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ivm_core.compile.type_book import relation_schema
from ivm_core.engine.definitions import DELTA
from ivm_core.engine.gears import FrameRows, LocalRows, StoredRows
from ivm_core.engine.layout import ticked, weighted
from ivm_core.engine.netted_frames import netted_frame
from ivm_core.model.errors import InternalError
from ivm_core.model.names import WEIGHT, quote
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.netting import net, stacked
from ivm_core.plan.nodes import CLOCKS, NOW

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from ivm_core.engine.gears import Gears, Rows
    from ivm_core.engine.history import History
    from ivm_core.engine.ingest import Held
    from ivm_core.engine.layout import Layout
    from ivm_core.model.schema import Schema
    from ivm_core.store.followed import FollowedTable
    from ivm_core.store.followed_log import Change as SourceChange
    from ivm_core.store.limit import Limit
    from ivm_core.store.trace import Trace

P = ParamSpec("P")
R = TypeVar("R")
LOCAL_ROWS = 50_000
"""Up to this many rows a change is worth having on the driver."""


@dataclass(frozen=True)
class Change:
    """A netted delta."""

    rows: Rows
    count: int
    deletions: int
    net: int
    """Sum of the weights."""
    files: StoredRows | None = None
    """The same rows as they are stored, where they are many and on the driver too."""

    @property
    def for_spark(self) -> Rows:
        """The rows from where Spark has them soonest."""
        return self.files or self.rows

    @property
    def table(self) -> pa.Table | None:
        """The rows, where they are on the driver."""
        return self.rows.table if isinstance(self.rows, LocalRows) else None


def local_change(table: pa.Table, schema: Schema) -> Change | None:
    """A change of rows on the driver; None for no rows."""
    if not table.num_rows:
        return None
    weights = table.column(WEIGHT)
    deletions = pc.sum(pc.less(weights, 0)).as_py() or 0
    total = pc.sum(weights).as_py() or 0
    return Change(LocalRows(table, weighted(schema)), table.num_rows, deletions, total)


def written_rows(target: str, schema: Schema) -> pa.Table:
    """The rows of a directory that Spark wrote: it leaves marker files beside its Parquet files."""
    table = ds.dataset(target, format="parquet").to_table(columns=list(schema.names))
    return table.cast(arrow_schema(schema))


def _one_at_a_time(
    method: Callable[Concatenate[TickRelations, P], R],
) -> Callable[Concatenate[TickRelations, P], R]:
    """The method, for one thread after the other: views of a tick share what was read."""

    @wraps(method)
    def call(relations: TickRelations, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with relations.lock:
            return method(relations, *args, **kwargs)

    return call


@dataclass
class TickRelations:
    """The relations of one tick."""

    gears_of: Callable[[], Gears]
    layout: Layout
    history: History
    schemas: Mapping[str, Schema]
    """Of sources, views and inner nodes."""
    followed: Mapping[str, FollowedTable]
    tick: int
    epoch: int
    time: datetime
    pins: Mapping[str, dict[str, Any]]
    """Followed sources: the version that this tick reads."""
    produced: dict[str, Change | None] = field(default_factory=dict)
    ways: dict[str, str] = field(default_factory=dict)
    """How the changes of followed tables were found."""
    columns: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """What the tick's views read of each relation."""
    renewed: Mapping[str, str] = field(default_factory=dict)
    """Views whose definition this tick changes, each with what was prepared in its place."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    _caught_up: dict[tuple[str, int], Change | None] = field(default_factory=dict)
    _fetched: dict[tuple[str, int], list[tuple[Limit, pa.Table]]] = field(default_factory=dict)
    _narrowed: dict[str, tuple[Change | None, Change | None]] = field(default_factory=dict)

    @property
    def gears(self) -> Gears:
        """Spark, started when first needed."""
        return self.gears_of()

    def schema(self, name: str) -> Schema:
        """Columns without weight."""
        return relation_schema(name, self.schemas)

    @_one_at_a_time
    def change(self, name: str, since: int) -> Change | None:
        """What changed after tick `since`, this tick included; None for nothing."""
        if name in CLOCKS:
            return self._clock_change(name, since)
        if not since:
            name = self.renewed.get(name, name)
        if since == self.tick - 1 and name in self.produced:
            return self.produced[name]
        key = (name, since)
        if key not in self._caught_up:
            self._caught_up[key] = self._catch_up(name, since)
        return self._caught_up[key]

    @_one_at_a_time
    def row_count(self, name: str, at: int) -> int:
        """Stored rows at a tick, as an upper bound."""
        if name in CLOCKS:
            return 1 if at else 0
        if self._is_followed(name):
            version = self._version(name, at)
            return 0 if version is None else self.followed[name].rows(version)
        return self.trace(name, at).rows_estimate(self.history.committed, at)

    @_one_at_a_time
    def has_gone_rows(self, name: str, upto: int) -> bool:
        """Whether deletions stand beside the rows that they cancel, up to a tick."""
        if name in CLOCKS or self._is_followed(name):
            return False
        deletions = self.history.first_deletion.get(name)
        if deletions is not None and deletions <= upto:
            return True
        produced = self.produced.get(name) if upto == self.tick else None
        if upto == self.tick and name in self.renewed:
            return self.has_gone_rows(self.renewed[name], upto)
        return produced is not None and produced.deletions > 0

    @_one_at_a_time
    def old(
        self, name: str, at: int, columns: Sequence[str] | None = None, limit: Limit | None = None
    ) -> pa.Table | None:
        """Rows at an earlier tick, on the driver; None where only Spark can read them."""
        schema = self.schema(name)
        names = list(columns) if columns is not None else list(schema.names)
        if name in CLOCKS:
            return self._clock_rows(name, at).select([*names, WEIGHT])
        if limit is None:
            return self._read(name, at, names, None)
        return self._limited(name, at, names, limit)

    def give(self, name: str, held: Held) -> None:
        """Rows before the tick that were read of a source already, for views that ask for them."""
        if held.limit is not None and held.rows.num_rows <= LOCAL_ROWS:
            self._fetched.setdefault((name, self.tick - 1), []).append((held.limit, held.rows))

    def _read(self, name: str, at: int, names: list[str], limit: Limit | None) -> pa.Table | None:
        if self._is_followed(name):
            return self._followed_rows(name, at, names, limit)
        trace = self.trace(name, at)
        return trace.read(self.history.committed, at, None, [*names, WEIGHT], limit)

    def _limited(self, name: str, at: int, names: list[str], limit: Limit) -> pa.Table | None:
        """Rows within a limit, from those that another view of the tick has asked for if it can be.

        What is read has the columns that any view of the tick reads: opening a row group costs
        more than one of its columns.
        """
        fetched = self._fetched.setdefault((name, at), [])
        for known, table in fetched:
            if known.covers(limit) and set(names) <= set(table.column_names):
                fitted = limit.fitted(table.schema)
                found = table if fitted is None else table.filter(fitted.mask(table))
                return found.select([*names, WEIGHT])
        there = self.schema(name).names
        if name in self.history.generations:
            # a definition that this tick changes may give columns that the rows before don't have
            there = self.history.generation(name, at).schema.names
        read = [each for each in there if each in self.columns.get(name, ())]
        wanted = list(dict.fromkeys([*names, *read, *limit.columns]))
        table = self._read(name, at, wanted, limit)
        if table is None:
            return None
        fetched.append((limit, table))
        return table.select([*names, WEIGHT])

    @_one_at_a_time
    def stored(self, name: str, at: int) -> Rows:
        """Rows at an earlier tick, for Spark to read."""
        schema = self.schema(name)
        if name in CLOCKS:
            return LocalRows(self._clock_rows(name, at), weighted(schema))
        if self._is_followed(name):
            version = self._version(name, at)
            if version is None:
                return LocalRows(_no_rows(schema), weighted(schema))
            frame = self.followed[name].spark_frame(self.gears.high, version)
            return FrameRows(_with_weight(frame, schema))
        uris = self.trace(name, at).uris(self.history.committed, at)
        if name in self.history.generations:
            schema = self.history.generation(name, at).schema
        return StoredRows(uris, ticked(weighted(schema)), at=at)

    def all_for_spark(self, name: str) -> Rows:
        """Rows with this tick's change, for Spark to read."""
        if self._is_followed(name):
            return self.stored(name, self.tick)
        name = self.renewed.get(name, name)
        last = self.tick - 1
        before, change = self.stored(name, last), self.change(name, last)
        if change is None:
            return before
        columns = [*self.schema(name).names, WEIGHT]
        frames = [
            self.gears.read(rows).select(*[quote(each) for each in columns])
            for rows in (before, change.for_spark)
        ]
        return FrameRows(frames[0].unionAll(frames[1]))

    @_one_at_a_time
    def now(self, name: str) -> pa.Table | None:
        """Rows with this tick's change, on the driver."""
        name = self.renewed.get(name, name)
        before = self.old(name, self.tick - 1)
        change = self.change(name, self.tick - 1)
        if before is None or (change is not None and change.table is None):
            return None
        if change is None or change.table is None:
            return before
        return stacked(before, change.table.select(before.column_names))

    def trace(self, name: str, at: int) -> Trace:
        """The trace that has the rows of a fed source, view or node at a tick before this one."""
        source = self.history.sources.get(name)
        if source is not None:
            return self.layout.source_rows(name, self.schemas[name], source.primary_key)
        if name in self.history.generations:
            return self.layout.rows_of(self.history.generation(name, at))
        return self.layout.stage_rows(name, self.schemas[name])

    @_one_at_a_time
    def localised(self, change: Change | None, name: str) -> Change | None:
        """The change with its rows on the driver where they are few."""
        if change is None or not isinstance(change.rows, StoredRows):
            return change
        if change.count > LOCAL_ROWS:
            return change
        schema = weighted(self.schema(name))
        table = stacked(*(written_rows(uri, schema) for uri in change.rows.uris))
        return local_change(table, self.schema(name))

    @_one_at_a_time
    def narrowed(self, change: Change | None, name: str) -> Change | None:
        """The change in the columns that the tick's views read, netted again.

        Rows that differ in other columns only are no change to them.
        """
        schema = self.schema(name)
        read = [each for each in schema.names if each in self.columns.get(name, schema.names)]
        if change is None or change.table is None or len(read) == len(schema.names):
            return change
        whole, found = self._narrowed.get(name, (None, None))
        if whole is not change:
            part = schema.select(read)
            table = change.table.select([*read, WEIGHT])
            if read and 0 < change.deletions < change.count:
                found = local_change(net(table, part), part)
            else:
                rows = LocalRows(table, weighted(part))
                found = replace(change, rows=rows)
            self._narrowed[name] = (change, found)
        return found

    # --- clocks ---

    def _clock_rows(self, name: str, at: int) -> pa.Table:
        schema = self.schema(name)
        time = self.time if at == self.tick else self.history.time_at(at)
        values = [] if time is None else [time if name == NOW else time.date()]
        wanted = arrow_schema(weighted(schema))
        return pa.table([pa.array(values, wanted[0].type), [1] * len(values)], schema=wanted)

    def _clock_change(self, name: str, since: int) -> Change | None:
        before, after = self._clock_rows(name, since), self._clock_rows(name, self.tick)
        gone = before.set_column(1, WEIGHT, pc.negate(before.column(WEIGHT)))
        table = stacked(gone.cast(after.schema), after)
        return local_change(net(table, self.schema(name)), self.schema(name))

    # --- readers that missed ticks ---

    def _catch_up(self, name: str, since: int) -> Change | None:
        schema = self.schema(name)
        if self._is_followed(name):
            return self.followed_change(name, self._version(name, since), self._pinned(name))
        last = self.tick - 1
        trace = self.trace(name, last)
        files = trace.files(self.history.committed, last, since)
        now = self.produced.get(name)
        count = sum(file.rows for file in files) + (0 if now is None else now.count)
        if count > LOCAL_ROWS:
            uris = trace.uris(self.history.committed, last, since)
            earlier = StoredRows(uris, ticked(weighted(schema)), at=last, since=since)
            parts = [earlier] if now is None else [earlier, now.rows]
            return self._large_change(parts, schema, count)
        names = [*schema.names, WEIGHT]
        missed = trace.read(self.history.committed, last, since, names)
        if now is not None and now.table is not None:
            missed = stacked(missed, now.table.select(names))
        elif now is not None:
            produced = self.localised(now, name)
            if produced is not None and produced.table is not None:
                missed = stacked(missed, produced.table.select(names))
        return local_change(net(missed, schema), schema)

    def _large_change(self, parts: Sequence[Rows], schema: Schema, count: int) -> Change:
        """Changes that stay with Spark; `count` is what they have before netting."""
        names = [*(quote(name) for name in schema.names), WEIGHT]
        frames = [self.gears.read(rows).select(*names) for rows in parts]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionAll(frame)
        return Change(FrameRows(netted_frame(whole, schema)), count, count, 0)

    # --- followed tables ---

    def _is_followed(self, name: str) -> bool:
        source = self.history.sources.get(name)
        return source is not None and source.kind == DELTA

    def _version(self, name: str, at: int) -> int | None:
        if at == self.tick:
            return self._pinned(name)
        pins = self.history.pins_at.get(at, {})
        return int(pins[name]["version"]) if name in pins else None

    def _pinned(self, name: str) -> int | None:
        pin = self.pins.get(name)
        return None if pin is None else int(pin["version"])

    def _followed_rows(
        self, name: str, at: int, names: list[str], limit: Limit | None
    ) -> pa.Table | None:
        version = self._version(name, at)
        schema = self.schema(name)
        wanted = arrow_schema(schema.select(names))
        if version is None:
            table = wanted.empty_table()
        else:
            found = self.followed[name].read(version, names, limit)
            if found is None:
                return None
            table = found.select(names).cast(wanted)
        return table.append_column(WEIGHT, pa.repeat(pa.scalar(1, pa.int64()), table.num_rows))

    def followed_change(self, name: str, since: int | None, upto: int | None) -> Change | None:
        """The netted change of a followed table between two versions."""
        schema = self.schema(name)
        if upto is None or since == upto:
            return None
        table = self.followed[name]
        if since is None:
            self.ways[name] = "whole table"
            count = table.rows(upto)
            if count > LOCAL_ROWS:
                frame = _with_weight(table.spark_frame(self.gears.high, upto), schema)
                return Change(FrameRows(frame), count, 0, count)
            rows = self._followed_at(name, upto)
        else:
            change = table.whole_change(since, upto)
            if change.rows_added > LOCAL_ROWS and (uris := table.added_uris(change)):
                self.ways[name] = table.way(change)
                frame = self.gears.read(StoredRows(uris, schema))
                rows = FrameRows(_with_weight(frame, schema))
                return Change(rows, change.rows_added, 0, change.rows_added)
            if (count := table.feed_rows(change)) > LOCAL_ROWS:
                self.ways[name] = table.way(change)
                return self._large_feed(name, change, count)
            found = table.change_rows(change)
            self.ways[name] = f"{found.way}" + (f": {found.reason}" if found.reason else "")
            rows = found.rows
            if rows is None:
                frame = table.change_frame(self.gears.high, change)
                rows = frame.select(*[quote(n) for n in schema.names], WEIGHT).toArrow()
        wanted = arrow_schema(weighted(schema))
        return local_change(net(rows.select(wanted.names).cast(wanted), schema), schema)

    def _large_feed(self, name: str, change: SourceChange, count: int) -> Change:
        """A change data feed that stays with Spark; `count` is what it has before netting."""
        schema = self.schema(name)
        frame = self.followed[name].change_frame(self.gears.high, change)
        frame = frame.select(*(quote(each) for each in schema.names), WEIGHT)
        if change.until - change.since > 1:
            # rows that came and went in between must not meet an expression that fails on them
            frame = netted_frame(frame, schema)
        return Change(FrameRows(frame), count, count, 0)

    def _followed_at(self, name: str, version: int) -> pa.Table:
        schema = self.schema(name)
        found = self.followed[name].read(version, list(schema.names), None)
        if found is None:
            frame = self.followed[name].spark_frame(self.gears.high, version)
            found = frame.select(*[quote(name) for name in schema.names]).toArrow()
        return found.append_column(WEIGHT, pa.repeat(pa.scalar(1, pa.int64()), found.num_rows))


def _no_rows(schema: Schema) -> pa.Table:
    return arrow_schema(weighted(schema)).empty_table()


def _with_weight(frame: Any, schema: Schema) -> Any:
    from pyspark.sql import functions as F

    if frame is None:
        raise InternalError("a followed table gave no frame")
    return frame.select(
        *[quote(name) for name in schema.names], F.lit(1).cast("bigint").alias(WEIGHT)
    )
