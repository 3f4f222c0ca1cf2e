"""An existing Delta table that a flow follows, read as deltas.

    change data feed      all of the range has one: its rows, weighted by what they say
    added files           commits that only add: the rows of the files they added
    snapshot difference   else: rows of files that only the newer version has, less those that
                          only the older has; copies of unchanged rows cancel when netted

Ranges with deletion vectors or column mapping, and those too large for the driver, are left to
Spark, on the same ways.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError
from pyspark.sql import functions

from ivm_core.model.errors import HistoryLost, SourceReplaced
from ivm_core.model.names import WEIGHT, quote
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.store.delta_words import cause, said
from ivm_core.store.followed_log import Change, SourceVersion, first_missing_file
from ivm_core.store.table_versions import TableVersions, add_actions, with_nulls

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Change", "FollowedTable", "SourceDelta", "SourceVersion", "Way"]

Way = Literal["change data feed", "added files", "snapshot difference"]
DRIVER_BYTES = 64 << 20
_CHANGE_WEIGHTS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


@dataclass(frozen=True, slots=True)
class SourceDelta:
    """Rows with `_weight`, not netted, and the way they were found.

    `rows` is None where only Spark can tell (`FollowedTable.change_frame`); `reason` says why a
    better way wasn't open, for the summary.
    """

    rows: pa.Table | None
    way: Way
    reason: str = ""


class FollowedTable(TableVersions):
    """A user's Delta table; nothing here ever writes to it."""

    def delta(self, since: int, until: int) -> pa.Table | None:
        """Rows with `_weight`, not netted, of the versions after `since`; None if only Spark can.

        `SourceReplaced` where the schema changed on the way.
        """
        return self.change_rows(self.whole_change(since, until)).rows

    def delta_spark(self, spark: SparkSession, since: int, until: int) -> DataFrame:
        """The same rows through Spark."""
        return self.change_frame(spark, self.whole_change(since, until))

    def whole_change(self, since: int, until: int) -> Change:
        """What happened after `since` up to `until`, `schema_changed` if that isn't readable."""
        table_id = self.head().table_id
        change = self.classify(SourceVersion(table_id, since), SourceVersion(table_id, until))
        if change.until != until:
            change = replace(change, kind="schema_changed")
        return change

    def change_rows(self, change: Change, driver_bytes: int = DRIVER_BYTES) -> SourceDelta:
        """The rows of a classified range, or the way on which Spark has to find them.

        `SourceReplaced` where the range begins with a new table or schema.
        """
        self._check_readable(change)
        plain = arrow_schema(self.schema(change.until), weight=True)
        if change.kind == "nothing" or change.since == change.until:
            return SourceDelta(plain.empty_table(), "added files")
        obstacle = self.needs_scan(change.until) or self.needs_scan(change.since)
        if change.deletion_vectors:
            obstacle = obstacle or "the range has deletion vectors"
        way = self.way(change)
        if obstacle:
            return SourceDelta(None, way, obstacle)
        try:
            if way == "added files":
                return self._added(change, driver_bytes)
            if way == "change data feed":
                return self._feed(change, plain)
            return self._file_difference(change, driver_bytes)
        except (DeltaError, pa.ArrowException) as error:
            gone = first_missing_file(self.location, change)
            if gone:
                raise HistoryLost(
                    f"{gone}, a file of the versions after {change.since}, is gone",
                    self.location.uri,
                ) from cause(error)
            if way == "change data feed":
                why = "deltalake can't read the change data feed"
                return replace(self._file_difference(change, driver_bytes), reason=why)
            return SourceDelta(None, way, f"deltalake can't read it: {said(error)}")

    def added_uris(self, change: Change) -> tuple[str, ...]:
        """The files of a range that only adds, if they are plain Parquet with all columns in them.

        Those that were rewritten since, or lie elsewhere, are none.
        """
        is_plain = self.way(change) == "added files" and not self.needs_scan(change.until)
        if not is_plain or self.opened(change.until).metadata().partition_columns:
            return ()
        if any(file.removed_at or file.rows < 0 or "://" in file.path for file in change.added):
            return ()
        if not all(self.location.exists(file.path) for file in change.added):
            return ()
        root = self.location.uri.rstrip("/")
        return tuple(f"{root}/{file.path}" for file in change.added)

    def feed_rows(self, change: Change) -> int:
        """Rows of the range's change data feed, not netted; 0 where that isn't known, or no way."""
        if self.way(change) != "change data feed" or change.kind != "changed":
            return 0
        if change.feed.rows is None:
            return 0
        total = change.feed.rows
        try:
            for path in change.feed.files:
                with self.location.fs.open_input_file(path) as file:
                    total += pq.read_metadata(file).num_rows
        except (OSError, pa.ArrowException):
            return 0  # who reads them will say what is the matter
        return total

    def way(self, change: Change) -> Way:
        """How the range is read as deltas."""
        if change.kind == "insert_only" and not change.deletion_vectors:
            return "added files"
        return "change data feed" if change.change_feed else "snapshot difference"

    def change_frame(self, spark: SparkSession, change: Change) -> DataFrame:
        """The same rows with `_weight`, not netted, through Spark's Delta readers."""
        self._check_readable(change)
        if change.change_feed and change.kind != "nothing":
            reader = spark.read.format("delta").option("readChangeFeed", "true")
            reader = reader.option("startingVersion", change.since + 1)
            feed = reader.option("endingVersion", change.until).load(self.location.uri)
            came = functions.col("_change_type").isin("insert", "update_postimage")
            weight = functions.when(came, 1).otherwise(-1).cast("bigint")
            weighted = self.selected(feed, weight.alias(WEIGHT))
            columns = [quote(name) for name in self.schema(change.until).names]
            return weighted.select(*columns, WEIGHT)
        one, minus_one = (functions.lit(weight).cast("bigint").alias(WEIGHT) for weight in (1, -1))
        names = self._unique_names(change)
        if names:
            reader = spark.read.format("delta").option("versionAsOf", change.until)
            whole = reader.load(self.location.uri)
            return self.selected(
                whole.where(functions.col("_metadata.file_name").isin(*names)), one
            )
        new, old = (self.spark_frame(spark, at) for at in (change.until, change.since))
        columns = [quote(name) for name in self.schema(change.until).names]
        return new.select(*columns, one).unionAll(old.select(*columns, minus_one))

    def _unique_names(self, change: Change) -> list[str]:
        """Names of the added files, if they are all that is needed and tell the files apart."""
        if self.way(change) != "added files" or any(file.removed_at for file in change.added):
            return []
        every = [path.rpartition("/")[2] for path in self.opened(change.until).file_uris()]
        names = [file.path.rpartition("/")[2] for file in change.added]
        return names if len(set(every)) == len(every) else []

    def _check_readable(self, change: Change) -> None:
        if change.kind in ("replaced", "schema_changed"):
            raise SourceReplaced(
                f"the followed table can't be read on from version {change.since}: "
                f"{change.stopped_by}",
                self.location.uri,
            )

    def _feed(self, change: Change, plain: pa.Schema) -> SourceDelta:
        table = self.opened(change.until)
        feed = pa.RecordBatchReader.from_stream(
            table.load_cdf(change.since + 1, change.until)
        ).read_all()
        kinds = feed["_change_type"].to_pylist()
        weights = pa.array([_CHANGE_WEIGHTS[kind] for kind in kinds], pa.int64())
        return SourceDelta(
            with_nulls(feed.append_column(WEIGHT, weights), plain), "change data feed"
        )

    def _added(self, change: Change, driver_bytes: int) -> SourceDelta:
        if sum(file.size for file in change.added) > driver_bytes:
            return SourceDelta(None, "added files", "too much for the driver")
        by_version: dict[int, set[str]] = {}
        for file in change.added:
            at = change.until if file.removed_at is None else file.version
            by_version.setdefault(at, set()).add(file.path)
        parts = [self._rows_of(version, paths, 1) for version, paths in by_version.items()]
        return SourceDelta(pa.concat_tables(parts), "added files")

    def _file_difference(self, change: Change, driver_bytes: int) -> SourceDelta:
        """Rows of the files that only the newer version has, less those that only the older has."""
        why = "the table has no change data feed"
        old, new = _sizes(self.opened(change.since)), _sizes(self.opened(change.until))
        came, went = set(new) - set(old), set(old) - set(new)
        if sum(new[path] for path in came) + sum(old[path] for path in went) > driver_bytes:
            return SourceDelta(None, "snapshot difference", f"{why}; too much for the driver")
        rows = pa.concat_tables(
            [self._rows_of(change.until, came, 1), self._rows_of(change.since, went, -1)]
        )
        return SourceDelta(rows, "snapshot difference", why)

    def _rows_of(self, version: int, paths: Iterable[str], weight: int) -> pa.Table:
        plain = arrow_schema(self.schema(version), weight=True)
        wanted = set(paths)

        def read() -> pa.Table:
            dataset = self.old_dataset(version)
            if dataset is None or not wanted:
                return plain.empty_table()
            chosen = [each for each in dataset.get_fragments() if each.path.lstrip("/") in wanted]
            if len(chosen) != len(wanted):
                raise HistoryLost(f"files of version {version} are gone", self.location.uri)
            there = [name for name in plain.names[:-1] if name in dataset.schema.names]
            part = ds.FileSystemDataset(
                chosen, dataset.schema, dataset.format, chosen[0].filesystem
            ).to_table(columns=there)
            weights = pa.repeat(pa.scalar(weight, pa.int64()), part.num_rows)
            return with_nulls(part.append_column(WEIGHT, weights), plain)

        return self.guarded(read, version)


def _sizes(table: DeltaTable) -> dict[str, int]:
    """The files of a version, by their paths as they are on disk."""
    paths, sizes = add_actions(table, "path"), add_actions(table, "size_bytes")
    return {unquote(path): size for path, size in zip(paths, sizes, strict=True)}
