"""Inboxes: the Delta tables that programs write to and a pipeline's flow follows.

Written with `deltalake`, so that whoever feeds a pipeline needs neither Spark nor the flow. They
have a change data feed: then every change costs a tick what the change is worth.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

from ivm_core import WriteFailed
from ivm_core.api.frontier import SourceVersion, newest_version
from ivm_core.model.names import WEIGHT, quote
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.row_identity import digest_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tideview.resources.pipeline_spec import SourceSpec

Row = tuple[Any, ...]
_GONE = "_gone"
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
        raise WriteFailed(
            f"other writers were faster {_ATTEMPTS} times", where=f"the inbox {self.path}"
        )

    def _came_before(self, number: int | None, count: int) -> bool:
        reach = 1 if self.source.dedup == "consecutive" else self.source.dedup_entries
        return number is not None and number > count - reach

    def merge(self, updates: Sequence[Row], deletes: Sequence[Row]) -> None:
        """Replace rows and take rows away, found by the primary key, as one commit."""
        if not updates and not deletes:
            return
        gone = pa.array([False] * len(updates) + [True] * len(deletes))
        changes = self._table([*updates, *deletes]).append_column(_GONE, gone)
        keys = [quote(key) for key in self.source.primary_key]
        same_key = " AND ".join(f"kept.{key} = new.{key}" for key in keys)
        merge = DeltaTable(str(self.path)).merge(
            changes,
            same_key,
            source_alias="new",
            target_alias="kept",
            commit_properties=CommitProperties(max_commit_retries=0),
        )
        names = [quote(name) for name in self._columns.names]
        columns = {name: f"new.{name}" for name in names}
        (
            merge.when_matched_delete(predicate=f"new.{_GONE}")
            .when_matched_update(columns, predicate=f"NOT new.{_GONE}")
            .execute()
        )

    @property
    def _columns(self) -> pa.Schema:
        return arrow_schema(self.source.schema)

    def _table(self, rows: Sequence[Row]) -> pa.Table:
        columns = zip(zip(*rows, strict=True), self._columns, strict=True)
        arrays = [pa.array(values, each.type) for values, each in columns]
        return pa.Table.from_arrays(arrays, schema=self._columns)
