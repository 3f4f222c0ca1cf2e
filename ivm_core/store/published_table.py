"""A view as a plain Delta table: its rows as they are, without weights, for any Delta reader.

    <flow>/published/<view>/    properties `tideview.view`, `tideview.tick`, `tideview.digest`

One Delta commit takes it from one tick to a later one. Rows that come are added as a file. Rows
that go can only be taken out of a file by writing what is left of it anew; which files have them is
narrowed by the ranges of values that the table's log has of every file.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.model.errors import CorruptStore, InternalError, TickConflict
from ivm_core.model.names import WEIGHT
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.netting import net, stacked
from ivm_core.store.compaction import delete_unlisted
from ivm_core.store.faults import fault_point
from ivm_core.store.owned_table import NoTable, OwnedTable, VersionTaken
from ivm_core.store.parquet_scan import ParquetScan
from ivm_core.store.trace_writing import nullable, read_footer, sort_rows, write_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ivm_core.model.schema import Schema
    from ivm_core.store.delta_actions import DataFile
    from ivm_core.store.location import Location

VIEW, TICK, DIGEST, LAG = (f"tideview.{word}" for word in ("view", "tick", "digest", "lag"))
FILE_ROWS = 1 << 17
SMALL_FILES = 32
"""With more small files than this the next publication puts them together."""
KEEP_REMOVED_SECONDS = 86_400.0
_SMALL_ROWS = 1 << 14
PROPERTIES = {
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
    "delta.enableExpiredLogCleanup": "true",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a published table has come."""

    tick: int
    digest: str


class PublishedTable:
    """One published table; only the flow's writer changes it."""

    def __init__(self, location: Location, table: OwnedTable) -> None:
        """Hold an opened table; use `open` or `make`."""
        self.location = location
        self._table = table
        note = table.note
        said = note if TICK in note else table.properties
        self.mark = Mark(int(said.get(TICK, 0)), str(said.get(DIGEST, "")))

    @classmethod
    def open(cls, location: Location) -> PublishedTable | None:
        """The table; None where there is none."""
        try:
            return cls(location, OwnedTable.open(location))
        except NoTable:
            return None

    @classmethod
    def make(cls, location: Location, schema: Schema, view: str) -> PublishedTable:
        """A table without rows, of tick 0."""
        own = {**PROPERTIES, VIEW: view, TICK: "0"}
        return cls(location, OwnedTable.create(location, nullable(arrow_schema(schema)), own))

    @property
    def lag(self) -> int | None:
        """How many ticks it may be behind; None: as it pays."""
        said = self._table.properties.get(LAG, "")
        return int(said) if said else None

    @property
    def files(self) -> list[DataFile]:
        """The files that its log has."""
        return list(self._table.files.values())

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return self._table.schema

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(max(file.rows, 0) for file in self._table.files.values())

    def lost(self) -> list[str]:
        """Files that are not there, or not with the size that its log says."""
        if self.location.is_local:
            return [each.path for each in self.files if self.location.misfit(each.path, each.size)]
        there: dict[str, int] = {}
        for folder in {file.path.rpartition("/")[0] for file in self.files}:
            there |= {entry.path: entry.size for entry in self.location.list(folder)}
        return [file.path for file in self.files if there.get(file.path) != file.size]

    def has_columns(self, schema: Schema) -> bool:
        """Whether these are its columns."""
        return bool(nullable(self._table.schema).equals(nullable(arrow_schema(schema))))

    def set_lag(self, lag: int | None) -> None:
        """Say how many ticks it may be behind."""
        if lag != self.lag:
            self._commit([], [], self.mark, {LAG: "" if lag is None else str(lag)})

    # --- from one tick to a later one ---

    def touched(self, gone: pa.Table) -> list[str]:
        """Files that can have one of these rows, by what the table's log says of them."""
        known = self._table.ranges()
        ends = {
            name: (known[f"min.{name}"].to_pylist(), known[f"max.{name}"].to_pylist())
            for name in gone.column_names
            if f"min.{name}" in known.column_names and f"max.{name}" in known.column_names
        }
        found = []
        for at, path in enumerate(known["path"].to_pylist()):
            may_be = pa.array([True] * gone.num_rows)
            for name, (lowest, highest) in ends.items():
                if lowest[at] is None or highest[at] is None:
                    continue
                column = gone[name]
                low = pa.scalar(lowest[at]).cast(column.type)
                high = pa.scalar(highest[at]).cast(column.type)
                inside = pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))
                may_be = pc.and_(may_be, pc.fill_null(inside, True))
            if pc.any(may_be).as_py():
                found.append(path)
        return found

    def rows_in(self, paths: Iterable[str]) -> int:
        """How many rows these files have."""
        return sum(max(self._table.files[path].rows, 0) for path in paths)

    def change(
        self,
        delta: pa.Table,
        schema: Schema,
        mark: Mark,
        touched: Iterable[str],
        order: Sequence[str] = (),
    ) -> str:
        """Take a netted delta; says how. `CorruptStore` where rows that go are not there."""
        came = delta.filter(pc.greater(delta[WEIGHT], 0))
        left = delta.filter(pc.less(delta[WEIGHT], 0))
        scan = ParquetScan(self.location, self._table.schema)
        parts, replaced = [unweighted(came, schema)], []
        for path in touched:
            if not left.num_rows:
                break
            plain = scan.read([path], list(schema.names))
            ones = pa.repeat(pa.scalar(1, pa.int64()), plain.num_rows)
            both = net(stacked(plain.append_column(WEIGHT, ones), left), schema)
            still = both.filter(pc.less(both[WEIGHT], 0))
            if pc.sum(still[WEIGHT]).as_py() == pc.sum(left[WEIGHT]).as_py():
                continue  # none of them was in it
            left = still
            parts.append(unweighted(both.filter(pc.greater(both[WEIGHT], 0)), schema))
            replaced.append(path)
        if left.num_rows:
            raise CorruptStore(f"{self.location.uri} lacks rows that the view had")
        small = [
            path
            for path, file in self._table.files.items()
            if file.rows <= _SMALL_ROWS and path not in replaced
        ]
        if len(small) > SMALL_FILES:
            parts.append(scan.read(small, list(schema.names)))
            replaced += small
        rows = stacked(*parts)
        files = self._written(rows, mark.tick, order)
        self._commit(files, [self._table.files[path] for path in replaced], mark)
        if not replaced:
            return f"{rows.num_rows} rows added"
        return f"{len(replaced)} files written anew, {rows.num_rows} rows"

    def move(self, mark: Mark) -> None:
        """Say that its rows are those of a later tick, too."""
        self._commit([], [], mark)

    def replace(self, rows: pa.Table, schema: Schema, mark: Mark, order: Sequence[str]) -> None:
        """Exchange all rows, and columns where they differ."""
        self._exchange(self._written(rows, mark.tick, order), schema, mark)

    def spark_target(self, tick: int) -> str:
        """Where Spark writes all rows of a tick; then call `adopt`."""
        return self.location.resolve(_spark_folder(tick))

    def adopt(self, tick: int, schema: Schema, mark: Mark) -> None:
        """Exchange all rows for what Spark wrote to `spark_target`."""
        wanted = arrow_schema(schema)
        found = [
            read_footer(self.location, entry.path, wanted)
            for entry in self.location.list(_spark_folder(tick))
            if entry.path.endswith(".parquet") and not entry.is_dir
        ]
        self._exchange([file for file in found if file.rows], schema, mark)

    def sweep(self, keep_seconds: float = KEEP_REMOVED_SECONDS) -> list[str]:
        """Delete files that the table let go of some time ago, or that a killed writer left."""
        return delete_unlisted(self._table, keep_seconds, lambda path: path.startswith("p0"))

    # --- writing ---

    def _exchange(self, files: list[DataFile], schema: Schema, mark: Mark) -> None:
        if self.has_columns(schema):
            self._commit(files, list(self._table.files.values()), mark)
            return
        said = {TICK: str(mark.tick), DIGEST: mark.digest}
        fault_point("before:publish.commit")
        try:
            self._table.commit_anew(nullable(arrow_schema(schema)), files, said)
        except VersionTaken as error:
            raise self._conflict() from error
        fault_point("after:publish.commit")
        self.mark = mark

    def _written(self, rows: pa.Table, tick: int, order: Sequence[str]) -> list[DataFile]:
        if not rows.num_rows:
            return []
        if rows.num_rows > FILE_ROWS:
            rows = sort_rows(rows, order)
        fault_point("before:publish.file")
        files = [
            write_file(
                self.location,
                f"p{tick:012d}-{uuid.uuid4().hex}.parquet",
                rows.slice(start, FILE_ROWS),
                order,
            )
            for start in range(0, rows.num_rows, FILE_ROWS)
        ]
        fault_point("after:publish.file")
        return files

    def _commit(
        self,
        add: list[DataFile],
        remove: list[DataFile],
        mark: Mark,
        more: dict[str, str] | None = None,
    ) -> None:
        said = {TICK: str(mark.tick), DIGEST: mark.digest}
        fault_point("before:publish.commit")
        try:
            self._table.commit(add, remove, note=said, properties={**said, **(more or {})})
        except VersionTaken as error:
            raise self._conflict() from error
        fault_point("after:publish.commit")
        self.mark = mark

    def _conflict(self) -> TickConflict:
        return TickConflict(
            "something else writes to this published table",
            self.location.uri,
            "leave published tables to the flow; publish again",
        )


def unweighted(rows: pa.Table, schema: Schema) -> pa.Table:
    """Every row as often as its weight says, which must be positive."""
    weights = rows[WEIGHT]
    plain = rows.select(list(schema.names)).cast(nullable(arrow_schema(schema)))
    if not rows.num_rows or pc.max(weights).as_py() == 1:
        return plain
    if pc.min(weights).as_py() < 1:
        raise InternalError("a row that is there less often than once")
    at = [index for index, times in enumerate(weights.to_pylist()) for _ in range(times)]
    return plain.take(pa.array(at, pa.int64()))


def _spark_folder(tick: int) -> str:
    return f"p{tick:012d}-spark"
