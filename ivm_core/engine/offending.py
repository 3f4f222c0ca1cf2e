"""Finding a row on which a statement fails: halve what it reads until one row is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from ivm_core.engine.gears import LocalRows
from ivm_core.model.names import WEIGHT
from ivm_core.operators.operator import Form

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from ivm_core.engine.gears import Gears, Rows
    from ivm_core.model.schema import Schema

SHOWN = 300


class RowFails(Exception):
    """A statement that fails because of one row; `__cause__` is what Spark says."""

    def __init__(self, relation: str, row: Mapping[str, Any]) -> None:
        """The relation that the row belongs to, and its values."""
        super().__init__(relation, row)
        self.relation = relation
        self.row = row

    @property
    def text(self) -> str:
        """The row for people, cut where it is long."""
        values = ", ".join(f"{name} = {value!r}" for name, value in self.row.items())
        shown = values if len(values) <= SHOWN else f"{values[:SHOWN]}…"
        return f"{self.relation}: {shown}"


def rows_or_culprit(gears: Gears, sql: str, reads: Mapping[str, Rows], schema: Schema) -> pa.Table:
    """The statement's rows; RowFails where one row of what it reads makes it fail."""
    try:
        return gears.rows(sql, reads, schema)
    except PySparkException as error:
        found = _Search(gears, sql, reads, schema).row()
        if found is None:
            raise
        raise found from error


class _Search:
    def __init__(self, gears: Gears, sql: str, reads: Mapping[str, Rows], schema: Schema) -> None:
        self._gears = gears
        self._sql = sql
        self._reads = reads
        self._schema = schema

    def row(self) -> RowFails | None:
        """The first relation without which the statement passes, and one row of it that fails."""
        changes = f"@{Form.DELTA.value}"
        for name in sorted(self._reads, key=lambda each: not each.endswith(changes)):
            rows = self._reads[name]
            if not isinstance(rows, LocalRows) or not rows.table.num_rows:
                continue
            if self._fails(name, rows, rows.table.slice(0, 0)):
                continue
            found = self._narrowed(name, rows)
            shown = [] if found is None else _shown(name, found.column_names)
            if found is not None and shown:
                relation, _, kind = name.rpartition("@")
                group = "group of " if kind.startswith("state") else ""
                return RowFails(f"{group}{relation}", found.select(shown).to_pylist()[0])
        return None

    def _narrowed(self, name: str, rows: LocalRows) -> pa.Table | None:
        table = rows.table
        while table.num_rows > 1:
            half = table.num_rows // 2
            parts = (table.slice(0, half), table.slice(half))
            failing = next((part for part in parts if self._fails(name, rows, part)), None)
            if failing is None:
                # it takes several rows, as where a sum is too large
                return None
            table = failing
        return table

    def _fails(self, name: str, rows: LocalRows, table: pa.Table) -> bool:
        try:
            reads = {**self._reads, name: LocalRows(table, rows.schema)}
            self._gears.rows(self._sql, reads, self._schema)
        except PySparkException:
            return True
        return False


def _shown(name: str, columns: list[str]) -> list[str]:
    """The columns that say something to people: of a node's state its keys alone."""
    if "@state" not in name:
        return [each for each in columns if each != WEIGHT]
    return [each for each in columns if not each.startswith(("_", "aggregate_"))]
