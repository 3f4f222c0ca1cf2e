"""A user's Delta table at its versions: which there are, what is in them.

`deltalake` reads what it reads rightly. Tables with deletion vectors or column mapping are read
through its scan: its Arrow dataset refuses the first and silently gives NULLs for the second.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ivm_core.model.errors import HistoryLost, Unsupported, UserError
from ivm_core.model.names import quote
from ivm_core.operators.arrow_types import arrow_schema, from_spark
from ivm_core.store.delta_words import cause, said
from ivm_core.store.followed_log import (
    CHANGE_FEED,
    Change,
    SourceVersion,
    added_columns,
    bare_schema,
    classify_commits,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from ivm_core.model.schema import Schema
    from ivm_core.store.limit import Limit
    from ivm_core.store.location import Location

_T = TypeVar("_T")
_KEPT_VERSIONS = 4
Mark = tuple[str, int, int]
_ROW_BYTES = 32
_COMMIT = re.compile(r"\d{20}\.json")
_GONE = ("not found", "no such file")

_WIDENING = frozenset({"typeWidening", "typeWidening-preview"})


class TableVersions:
    """A Delta table that is only read."""

    def __init__(self, location: Location) -> None:
        """Point at a table; nothing is read before it is asked for."""
        self.location = location
        self.asked: Schema | None = None
        """What is read of every version: a column that one lacks is NULL. None: all it has."""
        self._head: tuple[Mark | None, SourceVersion] | None = None
        self._versions: dict[int, DeltaTable] = {}
        self._datasets: dict[int, ds.Dataset] = {}
        self._schemas: dict[int, Schema] = {}

    # --- versions ---

    def head(self) -> SourceVersion:
        """The newest version; `UserError` where there is no Delta table."""
        mark = self._newest_commit() if self.location.is_local else None
        if mark is not None and self._head is not None and self._head[0] == mark:
            return self._head[1]
        later = self._later_head(mark)
        if later is not None:
            self._head = (mark, later)
            return later
        table = self._load(None)
        head = SourceVersion(str(table.metadata().id), table.version())
        if self._head is not None and self._head[1].table_id != head.table_id:
            self._forget()
        self._keep(head.version, table)
        self._head = (mark, head)
        return head

    def _later_head(self, mark: Mark | None) -> SourceVersion | None:
        """The head by commits behind the known one alone; None where the table has to be read.

        The known head's own commit is still the same file, so it is still the same table.
        """
        before, known = self._head or (None, None)
        if mark is None or before is None or known is None:
            return None
        name, inode, time = before
        log = self.location.path / "_delta_log"
        try:
            stat = os.stat(log / name)
            if (stat.st_ino, stat.st_mtime_ns) != (inode, time):
                return None
            newest = int(mark[0][:20])
            for version in range(known.version + 1, newest + 1):
                if b'"metaData"' in (log / f"{version:020d}.json").read_bytes():
                    return None
        except (OSError, ValueError):
            return None
        return SourceVersion(known.table_id, newest) if newest > known.version else None

    def _newest_commit(self) -> Mark | None:
        """Name, inode and time of the newest commit file: the same mark, the same head."""
        log = self.location.path / "_delta_log"
        try:
            with os.scandir(log) as entries:
                newest = max(
                    (
                        each
                        for each in entries
                        if each.name.endswith(".json") and each.name[:20].isdigit()
                    ),
                    key=lambda each: each.name,
                    default=None,
                )
                if newest is None:
                    return None
                stat = os.stat(newest.path)
        except FileNotFoundError:
            return None
        return newest.name, stat.st_ino, stat.st_mtime_ns

    def classify(self, since: SourceVersion, until: SourceVersion) -> Change:
        """What happened after `since` up to `until`; `HistoryLost` where the log is gone."""
        if since.table_id != until.table_id:
            return Change("replaced", since.version, since.version, stopped_by="another table id")
        if until.version < since.version:
            raise HistoryLost(
                f"the table is at version {until.version}, version {since.version} was read before",
                self.location.uri,
            )
        if since.version == until.version:
            return Change("nothing", since.version, until.version)
        table = self.opened(since.version)
        return classify_commits(
            self.location,
            since.version,
            until.version,
            table.schema().to_json(),
            since.table_id,
            table.metadata().configuration.get(CHANGE_FEED, "").lower() == "true",
            frozenset(self.asked.names if self.asked else ()),
        )

    def added_columns(self, since: int, until: int) -> list[str]:
        """The columns that a version has more than another; none if more than that differs."""
        old, new = (json.loads(self.opened(at).schema().to_json()) for at in (since, until))
        return added_columns(bare_schema(old), bare_schema(new))

    # --- what is in a version ---

    def schema(self, version: int | None = None) -> Schema:
        """The columns that are read; types and names that can't be in a Z-set are refused."""
        return self.asked or self.own_schema(version)

    def own_schema(self, version: int | None = None) -> Schema:
        """The columns that a version has."""
        at = self.head().version if version is None else version
        if at not in self._schemas:
            while len(self._schemas) >= _KEPT_VERSIONS:
                self._schemas.pop(next(iter(self._schemas)))
            described = json.loads(self.opened(at).schema().to_json())
            self._schemas[at] = from_spark(
                StructType.fromJson(described), f"the Delta table {self.location.uri}"
            )
        return self._schemas[at]

    def rows(self, version: int) -> int:
        """About how many rows there are: by the log, or by size for files it has no count of."""
        counts = add_actions(self.opened(version), "num_records")
        sizes = add_actions(self.opened(version), "size_bytes")
        return sum(
            size // _ROW_BYTES if count is None else count
            for count, size in zip(counts, sizes, strict=True)
        )

    def bytes(self, version: int) -> int:
        """The size of the version's files."""
        return sum(add_actions(self.opened(version), "size_bytes"))

    def refuse_unreadable(self) -> None:
        """`Unsupported` for a table whose rows can't be read without its own Spark."""
        table = self.opened(self.head().version)
        if _WIDENING & set(table.protocol().reader_features or ()):
            raise Unsupported(
                "a Delta table with type widening",
                position=self.location.uri,
                reason="`deltalake` doesn't read such tables",
                rewrite="ALTER TABLE … DROP FEATURE typeWidening, or follow a copy of it",
            )
        if any(_is_elsewhere(path) for path in add_actions(table, "path")):
            raise Unsupported(
                "a Delta table with files outside of its folder, such as a shallow clone",
                position=self.location.uri,
                reason="their owner may change or remove them at any time",
                rewrite="follow the table that it was cloned from, or a copy of its own: "
                "CREATE TABLE … AS SELECT",
            )

    def needs_scan(self, version: int) -> str:
        """Why files of this version can't be read as plain Parquet; empty where they can."""
        table = self.opened(version)
        if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
            return "the table has column mapping"
        protocol = table.protocol()
        unknown = set(protocol.reader_features or ()) - {"timestampNtz", "v2Checkpoint"}
        return f"the table uses {', '.join(sorted(unknown))}" if unknown else ""

    def old_dataset(self, version: int) -> ds.Dataset | None:
        """The version as an Arrow dataset; None where `needs_scan` says why not."""
        if self.needs_scan(version):
            return None
        if version not in self._datasets:
            self._datasets[version] = _dataset(self.opened(version))
            while len(self._datasets) > _KEPT_VERSIONS:
                self._datasets.pop(next(iter(self._datasets)))
        return self._datasets[version]

    def read(
        self, version: int, columns: Sequence[str] | None = None, where: Limit | None = None
    ) -> pa.Table:
        """Rows of a version within the limit, without weights; `HistoryLost` if files are gone."""
        asked = arrow_schema(self.schema(version))
        whole = arrow_schema(self.own_schema(version))
        names = list(columns) if columns is not None else asked.names
        if not set(whole.names) >= {*names, *(where.columns if where else ())}:
            # what it lacks is NULL, also to the limit
            read = list(dict.fromkeys([*names, *(where.columns if where else ())]))
            there = self.read(version, [name for name in read if name in whole.names])
            table = with_nulls(there, pa.schema([asked.field(name) for name in read]))
            late = where.fitted(table.schema) if where else None
            return (table if late is None else table.filter(late.mask(table))).select(names)
        wanted = pa.schema([whole.field(name) for name in names])
        limit = where.fitted(whole) if where else None

        def scan() -> pa.Table:
            dataset = self.old_dataset(version)
            if dataset is None:
                return self._scan(version, wanted, limit)
            if limit is None:
                return dataset.to_table(columns=names).cast(wanted)
            return _limited(dataset, wanted, limit, whole)

        return self.guarded(scan, version)

    def _scan(self, version: int, wanted: pa.Schema, limit: Limit | None) -> pa.Table:
        whole = arrow_schema(self.own_schema(version))
        read = list(dict.fromkeys([*wanted.names, *(limit.columns if limit else ())]))
        types = pa.schema([whole.field(name) for name in read])
        parts = [wanted.empty_table()]
        for batch in pa.RecordBatchReader.from_stream(self.opened(version).scan(columns=read)):
            part = pa.table(batch).select(read).cast(types)
            if limit is not None:
                part = part.filter(limit.mask(part))
            parts.append(part.select(wanted.names))
        return pa.concat_tables(parts)

    def spark_frame(self, spark: SparkSession, version: int) -> DataFrame:
        """The version as Spark's Delta reader gives it."""
        reader = spark.read.format("delta").option("versionAsOf", version)
        return self.selected(reader.load(self.location.uri))

    def selected(self, frame: DataFrame, *more: Column) -> DataFrame:
        """A frame's rows in the columns that are asked for, and some more."""
        there = frame.columns
        if self.asked is None:
            return frame.select(*[F.col(quote(name)) for name in there], *more)
        columns = [
            F.col(quote(each.name))
            if each.name in there
            else F.lit(None).cast(each.type.ddl).alias(each.name)
            for each in self.asked
        ]
        return frame.select(*columns, *more)

    # --- opening ---

    def opened(self, version: int) -> DeltaTable:
        """The table at a version; `HistoryLost` where it can't be opened any more."""
        if version not in self._versions:
            self._keep(version, self._load(version))
        return self._versions[version]

    def _keep(self, version: int, table: DeltaTable) -> None:
        self._versions[version] = table
        while len(self._versions) > _KEPT_VERSIONS:
            self._versions.pop(next(iter(self._versions)))

    def _forget(self) -> None:
        self._versions.clear()
        self._datasets.clear()
        self._schemas.clear()

    def _load(self, version: int | None) -> DeltaTable:
        options = self.location.storage_options or None
        try:
            return DeltaTable(self.location.uri, version=version, storage_options=options)
        except TableNotFoundError as error:
            raise UserError(
                f"there is no Delta table at {self.location.uri}", fix="check the path or URI"
            ) from error
        except (DeltaError, OSError) as error:
            if version is None:
                raise UserError(
                    f"the Delta table at {self.location.uri} can't be read: {said(error)}"
                ) from cause(error)
            raise HistoryLost(
                f"version {version} of the table can't be read any more: {said(error)}",
                self.location.uri,
            ) from cause(error)

    def guarded(self, read: Callable[[], _T], version: int) -> _T:
        """What `read` gives; `HistoryLost` where files of the version are gone."""
        try:
            return read()
        except (FileNotFoundError, DeltaError) as error:
            if isinstance(error, DeltaError) and not any(
                word in str(error).lower() for word in _GONE
            ):
                raise
            raise HistoryLost(
                f"files of version {version} can't be read any more: {said(error)}",
                self.location.uri,
            ) from cause(error)


def with_nulls(table: pa.Table, wanted: pa.Schema) -> pa.Table:
    """The table in these columns; those that it lacks are NULL."""
    columns = [
        table[each.name] if each.name in table.column_names else pa.nulls(len(table), each.type)
        for each in wanted
    ]
    return pa.table(columns, names=wanted.names).cast(wanted)


def _dataset(table: DeltaTable) -> ds.Dataset:
    options = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
    return table.to_pyarrow_dataset(parquet_read_options=options)


def _limited(dataset: ds.Dataset, wanted: pa.Schema, limit: Limit, whole: pa.Schema) -> pa.Table:
    """Rows within a limit.

    Files that `deltalake` has rewritten say that their texts are views, whose ranges Arrow compares
    with no text: of those files all rows are read, and then limited.
    """
    condition = limit.expression()
    try:
        return dataset.to_table(columns=wanted.names, filter=condition).cast(wanted)
    except pa.ArrowNotImplementedError:
        pass
    read = list(dict.fromkeys([*wanted.names, *limit.columns]))
    types = pa.schema([whole.field(name) for name in read])
    parts = [wanted.empty_table()]
    for file in dataset.get_fragments():
        try:
            part = file.to_table(dataset.schema, columns=wanted.names, filter=condition)
        except pa.ArrowNotImplementedError:
            rows = file.to_table(dataset.schema, columns=read).cast(types)
            part = rows.filter(limit.mask(rows)).select(wanted.names)
        parts.append(part.cast(wanted))
    return pa.concat_tables(parts)


def add_actions(table: DeltaTable, column: str) -> list[Any]:
    """One column of the table's list of files: path, size_bytes, num_records."""
    values: list[Any] = (
        pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True))
        .read_all()[column]
        .to_pylist()
    )
    return values


def _is_elsewhere(path: str) -> bool:
    return path.startswith("/") or urlsplit(path).scheme != ""
