"""A trace: the stored history of one node, as deltas in tick order over a compacted base.

It is a Delta table of the node's columns and `_tick`, with `_weight` where the rows of a Z-set
are stored, without where the columns are accumulators. Appending needs no agreement between
writers: which files count is decided by the tick log alone (see `trace_files`).
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.model.errors import CorruptStore, InternalError, OutOfRange, TickConflict
from ivm_core.model.names import TICK
from ivm_core.store.faults import fault_point
from ivm_core.store.owned_table import NoTable, OwnedTable, VersionTaken
from ivm_core.store.parquet_scan import ParquetScan
from ivm_core.store.syncing import sync_file
from ivm_core.store.trace_files import Committed, TraceFile, parse_name, tick_name
from ivm_core.store.trace_writing import conform, nullable, read_footer, with_tick, write_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ivm_core.store.delta_actions import DataFile
    from ivm_core.store.limit import ColumnLimit, Limit
    from ivm_core.store.location import Location

CLUSTER_BY = "tideview.clusterBy"
_REBASES = 20
_RECENT_BYTES = 32 << 20
_SMALL_ROWS = 8192


class Trace:
    """One trace; its list of files is loaded once and kept up by its own writes."""

    def __init__(
        self, location: Location, table: OwnedTable, lacking: Sequence[pa.Field] = ()
    ) -> None:
        """Hold an opened table and the columns that it lacks yet; use `Trace.open`."""
        self.location = location
        self.table = table
        self._lacking = list(lacking)
        self.schema = table.schema
        self.cluster_by = tuple(filter(None, table.properties.get(CLUSTER_BY, "").split(",")))
        self._scan = ParquetScan(location, self.schema)
        self._recent: OrderedDict[str, pa.Table] = OrderedDict()
        self._recent_bytes = 0
        self.commits = 0
        """Delta commits that this handle has made."""
        self.written: tuple[int, int] | None = None
        """Tick and epoch of the newest rows that this handle has stored."""

    @classmethod
    def open(
        cls,
        location: Location,
        schema: pa.Schema | None = None,
        cluster_by: Sequence[str] = (),
        *,
        widens: bool = False,
    ) -> Trace:
        """Open the trace, or make it when there is none and `schema` (without `_tick`) is given.

        `cluster_by` is what reads are limited by most; it orders the rows within new files. A
        stored trace with other columns is `CorruptStore`, as is a missing one without `schema`.
        One that `widens` may have other columns beside those that are asked for, and is given those
        that it lacks with the next rows; until then they are NULL.
        """
        wanted = None if schema is None else nullable(schema).append(pa.field(TICK, pa.int64()))
        try:
            table = OwnedTable.open(location)
        except NoTable as error:
            if wanted is None:
                raise CorruptStore(f"the trace {location.uri} is missing") from error
            try:
                table = OwnedTable.create(location, wanted, {CLUSTER_BY: ",".join(cluster_by)})
            except VersionTaken:
                table = OwnedTable.open(location)
        lacking: list[pa.Field] = []
        if wanted is not None and widens:
            stored = nullable(table.schema)
            lacking = [each for each in wanted if each.name not in stored.names]
            kept = [stored.field(each.name) if each not in lacking else each for each in wanted]
            table.schema = pa.schema(kept)
        if wanted is not None and not nullable(table.schema).equals(wanted):
            raise CorruptStore(
                f"the trace {location.uri} has the columns\n{table.schema}\ninstead of\n{wanted}"
            )
        if wanted is not None:
            table.schema = wanted
        return cls(location, table, lacking)

    def refresh(self) -> bool:
        """Load what others have committed; whether there was anything."""
        before = set(self.table.files)
        moved = self.table.refresh()
        self._forget(before - set(self.table.files))
        return moved

    # --- writing ---

    def append(self, rows: pa.Table, tick: int, epoch: int) -> int:
        """Store one attempt's rows of a tick, once; no rows, no file. Returns bytes written."""
        self._check_first(tick, epoch)
        if not rows.num_rows:
            return 0
        stored = with_tick(conform(rows, pa.schema(list(self.schema)[:-1])), tick)
        path = f"{tick_name(tick, epoch, uuid.uuid4().hex)}.parquet"
        fault_point("before:trace.file")
        file = write_file(self.location, path, stored, self.cluster_by)
        fault_point("after:trace.file")
        fault_point("before:trace.commit")
        self._commit([file])
        fault_point("after:trace.commit")
        self.written = (tick, epoch)
        self._remember(path, stored)
        return file.size

    def spark_target(self, tick: int, epoch: int) -> str:
        """Where Spark writes one attempt's rows of a tick as Parquet, `_tick` among them.

        Write with mode `overwrite` and `SPARK_WRITE_OPTIONS`, then call `adopt`.
        """
        return self.location.resolve(tick_name(tick, epoch, "spark"))

    def adopt(self, tick: int, epoch: int) -> int:
        """Take over what Spark wrote to `spark_target`; returns the number of rows."""
        self._check_first(tick, epoch)
        files = self.spark_files(tick_name(tick, epoch, "spark"))
        if files:
            for file in files if self.location.is_local else ():
                sync_file(self.location.resolve(file.path))
            fault_point("before:trace.adopt")
            self._commit(files)
            fault_point("after:trace.adopt")
            self.written = (tick, epoch)
        return sum(file.rows for file in files)

    def spark_files(self, directory: str) -> list[DataFile]:
        """The files with rows that Spark wrote to a directory of this trace."""
        found = [
            read_footer(self.location, entry.path, self.schema)
            for entry in self.location.list(directory)
            if entry.path.endswith(".parquet") and not entry.is_dir
        ]
        return [file for file in found if file.rows]

    def _check_first(self, tick: int, epoch: int) -> None:
        start = tick_name(tick, epoch, "")
        if any(path.startswith(start) for path in self.table.files):
            raise InternalError(
                f"tick {tick} of epoch {epoch} was written to {self.location.name} already"
            )

    def _commit(self, files: list[DataFile]) -> None:
        """Add files whatever else was added in the meantime: the tick log decides what counts."""
        for _ in range(_REBASES):
            try:
                self._widen()
                self.table.commit(files)
            except VersionTaken:
                self.refresh()
            else:
                self.commits += 1
                return
        raise TickConflict("other writers keep adding to this trace", self.location.uri)

    def _widen(self) -> None:
        if self._lacking:
            self.table.add_columns(self._lacking)
            self._lacking = []

    def replace_files(self, add: list[DataFile], remove: list[DataFile]) -> None:
        """Exchange files for others with the same rows; `VersionTaken` if the trace moved on."""
        self._widen()
        self.table.commit(add, remove, data_change=False)
        self._forget({file.path for file in remove})

    # --- reading ---

    def read_files(self, paths: set[str]) -> pa.Table:
        """All rows of these files."""
        return self._scan.read(sorted(paths), self.schema.names)

    def rows_between(self, file: TraceFile, since: int, at: int) -> pa.Table:
        """Rows of one file of ticks in (since, at]."""
        rows = self._scan.read([file.path], self.schema.names)
        newer = pc.greater(rows[TICK], since)
        return rows.filter(pc.and_(newer, pc.less_equal(rows[TICK], at)))

    def adopt_files(self, files: list[DataFile]) -> None:
        """Take over files that are there already, of a trace like this one."""
        self._commit(files)

    def files(
        self, committed: Committed, at: int | None = None, since: int | None = None
    ) -> list[TraceFile]:
        """Files with rows of ticks in (since, at], in tick order; `OutOfRange` below the base."""
        newest = committed.newest if at is None else at
        found = []
        for path, file in self.table.files.items():
            name = parse_name(path)
            if name.epoch is not None and committed.epoch_of(name.first_tick) != name.epoch:
                continue
            if name.is_base:
                self._check_reach(name.last_tick, at, since)
            if name.first_tick > newest or (since is not None and name.last_tick <= since):
                continue
            found.append(
                TraceFile(
                    path,
                    self.location.resolve(path),
                    name.first_tick,
                    name.last_tick,
                    file.rows,
                    file.size,
                    name.is_base,
                )
            )
        return sorted(found, key=lambda file: (file.first_tick, file.path))

    def uris(
        self, committed: Committed, at: int | None = None, since: int | None = None
    ) -> tuple[str, ...]:
        """As `files`, for Spark to read; `CorruptStore` for a local one that is not whole."""
        files = self.files(committed, at, since)
        if self.location.is_local:
            self.require(files)
        return tuple(file.uri for file in files)

    def require(self, files: Sequence[TraceFile]) -> None:
        """Raise `CorruptStore` for a file that is gone or has another size than it had."""
        for file in files:
            problem = self.location.misfit(file.path, file.bytes)
            if problem:
                raise CorruptStore(f"the file {file.uri} {problem}", CorruptStore.repairable)

    def _check_reach(self, base: int, at: int | None, since: int | None) -> None:
        if at is not None and at < base:
            raise OutOfRange(
                f"tick {at} of {self._place} is folded into the base",
                fix=f"the oldest tick that is kept is {base}",
            )
        if since is not None and since < base:
            raise OutOfRange(
                f"changes since tick {since} of {self._place} are folded into the base",
                fix=f"the oldest tick to go on from is {base}",
            )

    @property
    def _place(self) -> str:
        """Enough of the location for people to know which trace it is."""
        return "/".join(self.location.uri.rsplit("/", 3)[1:])

    @property
    def base_tick(self) -> int:
        """The tick that the base stands for; 0 when nothing is folded yet."""
        names = (parse_name(path) for path in self.table.files)
        return max((name.last_tick for name in names if name.is_base), default=0)

    @property
    def newest_tick(self) -> int:
        """The newest tick that it has a file of, whether or not that counts; 0 for none."""
        return max((parse_name(path).last_tick for path in self.table.files), default=0)

    def rows_estimate(self, committed: Committed, at: int | None = None) -> int:
        """How many stored rows a full read brings."""
        return sum(file.rows for file in self.files(committed, at))

    def read(
        self,
        committed: Committed,
        at: int | None = None,
        since: int | None = None,
        columns: Sequence[str] | None = None,
        where: Limit | None = None,
    ) -> pa.Table:
        """Stored rows of ticks in (since, at], unconsolidated; with a limit at least what it asks.

        Gives the columns asked for, all with `_weight` and `_tick` by default.
        """
        while True:
            try:
                return self._read(committed, at, since, columns, where)
            except CorruptStore:
                # a writer may have put the files together since they were listed
                if not self.refresh():
                    raise

    def _read(
        self,
        committed: Committed,
        at: int | None,
        since: int | None,
        columns: Sequence[str] | None,
        where: Limit | None,
    ) -> pa.Table:
        wanted = list(columns) if columns is not None else self.schema.names
        files = self.files(committed, at, since)
        newest = committed.newest if at is None else at
        parts = []
        cut = [file for file in files if file.last_tick > newest or _reaches_below(file, since)]
        small = [file for file in files if file.rows <= _SMALL_ROWS and file not in cut]
        if small:
            tables = pa.concat_tables([self._small(file.path) for file in small])
            parts.append(self._within(tables, where).select(wanted))
        whole = [file.path for file in files if file.rows > _SMALL_ROWS and file not in cut]
        if cut:
            scanned = self._scan.read([file.path for file in cut], self.schema.names, where)
            ticks = pc.less_equal(scanned[TICK], newest)
            if since is not None:
                ticks = pc.and_(ticks, pc.greater(scanned[TICK], since))
            parts.append(scanned.filter(ticks).select(wanted))
        if whole or not parts:
            parts.append(self._scan.read(whole, wanted, where))
        return pa.concat_tables(parts)

    def is_within(self, committed: Committed, limit: ColumnLimit) -> bool:
        """Whether all stored rows are known to be within a limit: then it rules nothing out."""
        if not limit.is_gapless:
            return False
        files = self.files(committed)
        large = (file.path for file in files if file.rows > _SMALL_ROWS)
        if not all(self._scan.range_of(path, limit.column).is_within(limit) for path in large):
            return False
        small = (self._small(file.path) for file in files if file.rows <= _SMALL_ROWS)
        return all(pc.all(limit.mask(table), min_count=0).as_py() for table in small)

    def _within(self, table: pa.Table, where: Limit | None) -> pa.Table:
        limit = where.fitted(self.schema) if where else None
        return table if limit is None else table.filter(limit.mask(table))

    def _small(self, path: str) -> pa.Table:
        found = self._recent.get(path)
        if found is None:
            found = self._scan.read([path], self.schema.names)
            self._remember(path, found)
        else:
            self._recent.move_to_end(path)
        return found

    def _remember(self, path: str, stored: pa.Table) -> None:
        """Keep the newest small deltas in memory, so that the next tick needn't open them."""
        if stored.num_rows > _SMALL_ROWS:
            return
        self._recent[path] = stored
        self._recent_bytes += stored.nbytes
        while self._recent_bytes > _RECENT_BYTES:
            self._recent_bytes -= self._recent.popitem(last=False)[1].nbytes

    def _forget(self, paths: set[str]) -> None:
        self._scan.forget(paths)
        for path in paths & set(self._recent):
            self._recent_bytes -= self._recent.pop(path).nbytes


def _reaches_below(file: TraceFile, since: int | None) -> bool:
    """Whether some of a merged file's ticks are not after `since`."""
    return since is not None and not file.is_base and file.first_tick <= since
