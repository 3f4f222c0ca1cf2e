"""Publishing: views as plain Delta tables beside their traces, for readers that know no weights.

A view is published from the first `publish` on. Ticks then bring its table along: each one where
that costs no more than the tick did, else when so much has changed that writing it anew pays; or
within the ticks that the table may be behind. It happens after the commit that makes a tick
visible, and one commit of the table takes it to the newest tick: killed before that, the next
publication does it; killed after it, there is nothing left to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from pyspark.sql import functions as F

from ivm_core.engine.gears import StoredRows
from ivm_core.engine.layout import ticked, weighted
from ivm_core.engine.netted_frames import netted_frame, unweighted
from ivm_core.engine.unforeseen import written_in_steps
from ivm_core.model.digest import Digest
from ivm_core.model.errors import CorruptStore, IvmError, OutOfRange, UserError
from ivm_core.model.names import WEIGHT, quote
from ivm_core.model.secrets import logger, masked
from ivm_core.operators.netting import net
from ivm_core.operators.row_identity import digest_of
from ivm_core.store.published_table import Mark, PublishedTable
from ivm_core.store.published_table import unweighted as plain_rows
from ivm_core.store.trace_writing import SPARK_WRITE_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from ivm_core.engine.core import Engine
    from ivm_core.model.schema import Schema
    from ivm_core.store.location import Location
    from ivm_core.store.trace import Trace

FOLDER = "published"
ON_DRIVER = 2_000_000
"""Rows up to which a table is written by the driver; beyond, all of it by Spark."""
ROWS_PER_MS = 500
"""Rows of a table that are read and written again in a millisecond, about."""
LOOKED_AT = 10_000
"""Changed rows up to which a tick looks which files they are in."""
PAYS_FROM = 0.25
"""The share of a table that has to change before it is written anew by itself."""
LOOKED_AT_FILES = 64
"""Files of a local table up to which a tick that brings it along looks whether they are there."""
log = logger(__name__)


@dataclass(frozen=True)
class Publication:
    """What became of one view's table."""

    view: str
    path: str
    tick: int
    rows: int
    way: str
    """How: rows added, files written anew, all of it, or nothing new."""

    def __str__(self) -> str:
        """For people."""
        return f"{self.view}: tick {self.tick}, {self.rows} rows ({self.way}) at {self.path}"


class Publisher:
    """The published tables of a flow, as its writer has them."""

    def __init__(self, engine: Engine) -> None:
        """Nothing is opened before it is needed, and what is open stays with the engine."""
        self._engine = engine
        self._found: dict[str, PublishedTable] | None = None
        self._unreadable: dict[str, CorruptStore] = {}

    def location(self, view: str) -> Location:
        """Where a view's table is, or would be."""
        return self._engine.layout.root.child(FOLDER, view.casefold())

    def publish(
        self, views: Iterable[str], lag: int | None = None, *, sets_lag: bool = False
    ) -> list[Publication]:
        """Bring tables to the newest tick, and make those that are not there.

        With `sets_lag` they may be `lag` ticks behind from now on.
        """
        self._engine.begin_writing()
        with written_in_steps(self._engine.layout.root):
            return self._published(views, lag, sets_lag=sets_lag)

    def _published(
        self, views: Iterable[str], lag: int | None, *, sets_lag: bool
    ) -> list[Publication]:
        engine = self._engine
        self._follow_names()
        tables = self._tables()
        done = []
        for view in views:
            name = engine.catalog.view_name(view)
            if not engine.history.states[name].upto:
                raise UserError(
                    f"view {name} has no rows yet", where=f"view {name}", fix="tick the flow first"
                )
            if name in self._unreadable:
                raise self._unreadable[name]
            table = tables.get(name) or self._make(name)
            tables[name] = table
            if sets_lag:
                table.set_lag(lag)
            done.append(self._brought(name, table, is_asked=True))
        return done

    def remake(self, folders: Iterable[str]) -> None:
        """Write all rows of damaged tables again; one that can't be read is begun anew."""
        self._engine.published = None
        self._follow_names()
        tables, history = self._tables(), self._engine.history
        names = {name.casefold(): name for name in history.views if history.states[name].upto}
        for folder in folders:
            name = names.get(folder)
            if name is None:
                self._delete(folder)
                continue
            if name not in tables:
                self._delete(name)
                tables[name] = self._make(name)
            state = history.states[name]
            self._rewrite(name, tables[name], Mark(state.upto, state.digest))

    def unpublish(self, views: Iterable[str]) -> list[str]:
        """Delete tables; returns the names of the views that had one."""
        self._engine.begin_writing()
        tables = self._tables()
        names = [self._engine.catalog.view_name(view) for view in views]
        gone = [name for name in names if name in tables or name in self._unreadable]
        for name in gone:
            self._delete(name)
        return gone

    def keep_up(self, tick_ms: float) -> list[str]:
        """Bring along, after a tick, the tables that it pays for; says what could not be."""
        self._follow_names()
        tables = self._tables()
        told = [self._told(name, error) for name, error in self._unreadable.items()]
        for name, table in tables.items():
            if name not in self._engine.history.states:
                continue
            try:
                if self._is_due(name, table, tick_ms):
                    self._brought(name, table)
            except Exception as error:
                told.append(self._told(name, error))
        if told:
            self._engine.published = None
        return told

    def _told(self, name: str, error: Exception) -> str:
        """One line of what is left for later, in the log too; a bug of ours with its traceback."""
        is_damaged = isinstance(error, CorruptStore)
        way_out = "flow.repair() makes it again" if is_damaged else "flow.publish() tries it again"
        first = (str(error).splitlines() or [""])[0]
        said = masked(
            f"publishing {name} at {self.location(name).uri} is left for later: "
            f"{type(error).__name__}: {first}; {way_out}"
        )
        log.warning(said, exc_info=not isinstance(error, IvmError | OSError))
        return said

    # --- which, and when ---

    def _tables(self) -> dict[str, PublishedTable]:
        if self._engine.published is not None:
            return self._engine.published
        if self._found is None:
            views = {each.casefold(): each for each in self._engine.history.views}
            there = self._engine.layout.root.list(FOLDER)
            found = {
                entry.path.rsplit("/", 1)[-1]: self._engine.layout.root.child(
                    *entry.path.split("/")
                )
                for entry in there
                if entry.is_dir
            }
            self._found = {}
            for folder, location in found.items():
                name = views.get(folder, folder)
                try:
                    table = PublishedTable.open(location)
                except CorruptStore as error:
                    self._unreadable[name] = error
                else:
                    self._found |= {name: table} if table is not None else {}
            if not self._unreadable:  # else it is looked again the next time
                self._engine.published = self._found
        return self._found

    def _follow_names(self) -> None:
        """A view that has another name is published under that one; a dropped view's table goes."""
        history = self._engine.history
        tables = self._tables()
        for old in [each for each in (*tables, *self._unreadable) if each not in history.views]:
            lag = tables[old].lag if old in tables else None
            self._delete(old)
            new = history.renamed.get(old.casefold())
            while new is not None and new not in history.views:
                new = history.renamed.get(new.casefold())
            if new is not None and new not in tables and history.states[new].upto:
                tables[new] = self._make(new)
                tables[new].set_lag(lag)

    def _is_due(self, name: str, table: PublishedTable, tick_ms: float) -> bool:
        state, since = self._engine.history.states[name], table.mark.tick
        if not state.upto or self._is_same(name, table):
            return False
        if table.lag is not None:
            return state.upto - since > table.lag
        if not self._has_columns(name, table):
            return True  # all of its rows have changed
        changed, deletions = self._changed(name, since)
        within = tick_ms * ROWS_PER_MS
        if not deletions or table.rows + changed <= within:
            return True
        if changed >= table.rows * PAYS_FROM:
            return True
        if changed > LOOKED_AT:
            return False
        trace, schema = self._rows(name)
        delta = self._delta(trace, schema, since, state.upto)
        return delta is None or table.rows_in(table.touched(_gone(delta, schema))) <= within

    def _has_columns(self, name: str, table: PublishedTable) -> bool:
        return table.has_columns(self._engine.history.generation(name).schema)

    def _is_same(self, name: str, table: PublishedTable) -> bool:
        """Whether it is the view already; a digest knows values and no columns."""
        digest = self._engine.history.states[name].digest
        return digest == table.mark.digest and self._has_columns(name, table)

    def _changed(self, name: str, since: int) -> tuple[int, int]:
        """Rows of the deltas of a view after a tick, and the deletions among them."""
        commits = self._engine.history.commits
        bodies = [
            commits[tick]["views"][name]
            for tick in range(since + 1, self._engine.history.tick + 1)
            if name in commits.get(tick, {}).get("views", {})
        ]
        return sum(each["rows_out"] for each in bodies), sum(each["deletions"] for each in bodies)

    # --- one table ---

    def _make(self, name: str) -> PublishedTable:
        _, schema = self._rows(name)
        return PublishedTable.make(self.location(name), schema, name)

    def _delete(self, name: str) -> None:
        self._engine.layout.root.delete(f"{FOLDER}/{name.casefold()}")
        self._tables().pop(name, None)
        self._unreadable.pop(name, None)

    def _rows(self, name: str) -> tuple[Trace, Schema]:
        generation = self._engine.history.generation(name)
        return self._engine.layout.rows_of(generation), generation.schema

    def _brought(self, name: str, table: PublishedTable, *, is_asked: bool = False) -> Publication:
        """Take the table to the newest tick; one that is asked for is looked at file by file."""
        state = self._engine.history.states[name]
        mark = Mark(state.upto, state.digest)
        way = "nothing new"
        looks = is_asked or (table.location.is_local and len(table.files) <= LOOKED_AT_FILES)
        lost = table.lost() if looks else []
        if lost:
            log.warning("%s is published anew: %s is lost or damaged", name, lost[0])
        if lost or not self._is_same(name, table):
            way = self._rewrite(name, table, mark) if lost else self._change(name, table, mark)
            table.sweep()
        elif mark.tick != table.mark.tick:
            table.move(mark)
        return Publication(name, table.location.uri, mark.tick, table.rows, way)

    def _change(self, name: str, table: PublishedTable, mark: Mark) -> str:
        trace, schema = self._rows(name)
        since, order = table.mark.tick, trace.cluster_by or schema.names[:1]
        changed, deletions = self._changed(name, since)
        pays = not deletions or changed < max(table.rows * PAYS_FROM, LOOKED_AT)
        if since and pays and table.has_columns(schema) and changed <= ON_DRIVER:
            delta = self._delta(trace, schema, since, mark.tick)
            if delta is not None and self._leads_to(delta, schema, table.mark, mark):
                gone = _gone(delta, schema)
                touched = table.touched(gone) if gone.num_rows else []
                if table.rows_in(touched) <= ON_DRIVER:
                    try:
                        return table.change(delta, schema, mark, touched, order)
                    except CorruptStore as error:
                        log.warning("%s is published anew: %s", name, error.what)
        return self._rewrite(name, table, mark)

    def _rewrite(self, name: str, table: PublishedTable, mark: Mark) -> str:
        """Exchange all rows; the files that are there are not read."""
        trace, schema = self._rows(name)
        order = trace.cluster_by or schema.names[:1]
        committed = self._engine.history.committed
        if trace.rows_estimate(committed, mark.tick) <= ON_DRIVER:
            rows = trace.read(committed, at=mark.tick, columns=[*schema.names, WEIGHT])
            whole = plain_rows(net(rows, schema), schema)
            table.replace(whole, schema, mark, order)
        else:
            self._write_by_spark(trace, schema, table.spark_target(mark.tick), mark.tick)
            table.adopt(mark.tick, schema, mark)
        return "all of it"

    def _write_by_spark(self, trace: Trace, schema: Schema, target: str, at: int) -> None:
        uris = trace.uris(self._engine.history.committed, at)
        stored = StoredRows(uris, ticked(weighted(schema)), at=at)
        frame = netted_frame(self._engine.gears.read(stored), schema)
        columns = [F.col(quote(each.name)).cast(each.type.ddl) for each in schema]
        plain = unweighted(frame, schema).select(*columns)
        plain.write.mode("overwrite").options(**SPARK_WRITE_OPTIONS).parquet(target)

    def _delta(self, trace: Trace, schema: Schema, since: int, at: int) -> pa.Table | None:
        """What changed between two ticks, netted; None where that is folded away."""
        committed = self._engine.history.committed
        try:
            rows = trace.read(committed, at, since, [*schema.names, WEIGHT])
        except OutOfRange:
            return None
        return net(rows, schema)

    def _leads_to(self, delta: pa.Table, schema: Schema, before: Mark, after: Mark) -> bool:
        """Whether old digest and delta make the new digest; otherwise it isn't that view's past."""
        if not before.digest:
            return False
        reached = Digest.parse(before.digest) + digest_of(delta, schema)
        return reached.hex == after.digest


def _gone(delta: pa.Table, schema: Schema) -> pa.Table:
    return delta.filter(pc.less(delta[WEIGHT], 0)).select(list(schema.names))
