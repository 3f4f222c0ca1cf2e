"""Inboxes: the Delta tables that programs write to and a pipeline's flow follows.

Written with `deltalake`, so that whoever feeds a pipeline needs neither Spark nor the flow. They
have a change data feed: then every change costs a tick what the change is worth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from ivm_core.api.frontier import SourceVersion, newest_version
from ivm_core.model.names import quote
from ivm_core.operators.arrow_types import arrow_schema

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tideview.resources.pipeline_spec import SourceSpec

Row = tuple[Any, ...]
_GONE = "_gone"


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

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows, as one commit."""
        if rows:
            write_deltalake(str(self.path), self._table(rows), mode="append")

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
