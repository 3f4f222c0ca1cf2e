"""Inboxes: the Delta tables that programs write to and a pipeline's flow follows.

Written with `deltalake`, so that whoever feeds a pipeline needs neither Spark nor the flow. They
have a change data feed: then every change costs a tick what the change is worth.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

from ivm_core import UserError, WriteFailed
from ivm_core.api.frontier import SourceVersion, newest_version
from ivm_core.model.names import WEIGHT, quote
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.row_identity import digest_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tideview.resources.pipeline_spec import SourceSpec

Row = tuple[Any, ...]
_BATCH, _BATCHES = "tideview.batch.", "tideview.batches"
_ATTEMPTS = 20


@dataclass(frozen=True)
class Inbox:
    """The Delta table of one source."""

    source: SourceSpec
    path: Path

    def make(self) -> None:
        """Make the table, empty, unless it is there."""
        if self.exists:
            return
        self.path.mkdir(parents=True, exist_ok=True)
        DeltaTable.create(
            str(self.path),
            self._columns,
            mode="ignore",
            name=self.source.name,
            description=self.source.description or None,
            configuration={"delta.enableChangeDataFeed": "true"},
        )

    @property
    def exists(self) -> bool:
        """Whether the table was made."""
        return (self.path / "_delta_log").is_dir()

    @property
    def version(self) -> SourceVersion:
        """The newest version, from the table's log; `UserError` where there is no table."""
        return newest_version(self.path)

    def rows(self) -> list[Row]:
        """All rows, as tuples in the order of the source's columns."""
        table = DeltaTable(str(self.path)).to_pyarrow_table().select(self._columns.names)
        return [tuple(row.values()) for row in table.to_pylist()]

    def append(self, rows: Sequence[Row]) -> bool:
        """Add rows, as one commit; False for a batch that the source's `dedup` drops.

        A batch is known by its rows, whatever their order. What came before is in the table's own
        log, as application transactions, and committed with the rows: a batch counts as taken when
        they are there, also for another writer.
        """
        if not rows:
            return True
        self.make()
        table = self._table(rows)
        if not self.source.dedup:
            write_deltalake(str(self.path), table, mode="append")
            return True
        ones = pa.repeat(pa.scalar(1, pa.int64()), table.num_rows)
        digest = digest_of(table.append_column(WEIGHT, ones), self.source.schema)
        batch = f"{_BATCH}{digest.hex}"
        for _ in range(_ATTEMPTS):
            kept = DeltaTable(str(self.path))
            count = kept.transaction_version(_BATCHES) or 0
            if self._came_before(kept.transaction_version(batch), count):
                return False
            with suppress(CommitFailedError):  # another writer was first: look again
                write_deltalake(
                    kept,
                    table,
                    mode="append",
                    commit_properties=CommitProperties(
                        max_commit_retries=0,
                        app_transactions=[
                            Transaction(batch, count + 1),
                            Transaction(_BATCHES, count + 1),
                        ],
                    ),
                )
                return True
        raise self._too_many_writers()

    def _too_many_writers(self) -> WriteFailed:
        told = f"other writers were faster {_ATTEMPTS} times"
        return WriteFailed(told, where=f"the inbox {self.path}")

    def _came_before(self, number: int | None, count: int) -> bool:
        reach = 1 if self.source.dedup == "consecutive" else self.source.dedup_entries
        return number is not None and number > count - reach

    def merge(self, updates: Sequence[Row], deletes: Sequence[Row]) -> None:
        """Replace rows and take rows away, found by the primary key, as one commit.

        A row that isn't there to be replaced is added, one that isn't there to be taken away is
        none. A key that is given twice, and a source without a key, are a `UserError`.
        """
        if not updates and not deletes:
            return
        self.make()
        changes = self._table([*updates, *deletes])
        self._check_keys(changes)
        mark = "_gone"
        while mark in self._columns.names:
            mark = f"_{mark}"
        gone = pa.array([False] * len(updates) + [True] * len(deletes))
        changes = changes.append_column(mark, gone)
        for _ in range(_ATTEMPTS):
            with suppress(CommitFailedError):  # another writer was first: look again
                self._merged(changes, f"new.{quote(mark)}")
                return
        raise self._too_many_writers()

    def _merged(self, changes: pa.Table, is_gone: str) -> None:
        keys = [quote(key) for key in self.source.primary_key]
        columns = {name: f"new.{name}" for name in map(quote, self._columns.names)}
        merge = DeltaTable(str(self.path)).merge(
            changes,
            " AND ".join(f"kept.{key} = new.{key}" for key in keys),
            source_alias="new",
            target_alias="kept",
            commit_properties=CommitProperties(max_commit_retries=0),
        )
        (
            merge.when_matched_delete(predicate=is_gone)
            .when_matched_update(columns, predicate=f"NOT {is_gone}")
            .when_not_matched_insert(columns, predicate=f"NOT {is_gone}")
            .execute()
        )

    def _check_keys(self, changes: pa.Table) -> None:
        keys = list(self.source.primary_key)
        where = f"source {self.source.name}"
        if not keys:
            fix = "declare a primary_key, or append"
            raise UserError("rows are replaced by their key, and the source has none", where, fix)
        counts = changes.group_by(keys).aggregate([([], "count_all")])
        twice = counts.filter(pc.greater(counts["count_all"], 1)).select(keys).slice(0, 5)
        if twice.num_rows:
            told = ", ".join(str(tuple(row.values())) for row in twice.to_pylist())
            fix = "give each key once: the row to replace it with, or the one to take away"
            raise UserError(f"keys are given twice: {told}", where, fix)

    @property
    def _columns(self) -> pa.Schema:
        return arrow_schema(self.source.schema)

    def _table(self, rows: Sequence[Row]) -> pa.Table:
        columns = zip(zip(*rows, strict=True), self._columns, strict=True)
        arrays = [pa.array(values, each.type) for values, each in columns]
        return pa.Table.from_arrays(arrays, schema=self._columns)
