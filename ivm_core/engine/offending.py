"""Finding a row on which a statement fails: halve what it reads until one row is left.

In the high gear the halves are those of a hash, until few enough rows are left to have them on the
driver. That takes as many statements as the rows have binary digits, once, on the way to an error
that the data has to be corrected for.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from ivm_core.engine.gears import FrameRows, LocalRows
from ivm_core.engine.nullable_fields import with_nullable_fields
from ivm_core.model.names import TICK, WEIGHT, quote
from ivm_core.model.schema import Field, Schema
from ivm_core.model.secrets import logger
from ivm_core.operators.arrow_types import from_spark_type
from ivm_core.operators.operator import Form
from ivm_core.operators.shown_rows import shown_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from ivm_core.engine.gears import Gears, Rows

SHOWN = 300
FEW = 5_000
"""Rows of which the one that fails is looked for on the driver."""
PATIENCE_S = 60.0
"""How long a row is looked for; the error is told without one then."""
log = logger(__name__)
NOT_OF_ROWS = ("FAILED_READ_FILE", "FileNotFoundException", "TASK_WRITE_FAILED")


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

    def runs(bound: Mapping[str, Rows]) -> None:
        gears.rows(sql, bound, schema)

    with _naming(_Search(reads, runs)):
        return gears.rows(sql, reads, schema)


@contextmanager
def naming_the_culprit(gears: Gears, sql: str, reads: Mapping[str, Rows]) -> Iterator[None]:
    """RowFails where a statement of the high gear fails because of one row of what it reads."""

    def runs(bound: Mapping[str, Rows]) -> None:
        gears.try_out(sql, bound)

    with _naming(_LargeSearch(gears, reads, runs)):
        yield


@contextmanager
def _naming(search: _Search) -> Iterator[None]:
    try:
        yield
    except PySparkException as error:
        if any(sign in str(error) for sign in NOT_OF_ROWS):
            raise
        found = None
        try:
            found = search.row()
        except Exception:
            log.warning("which row makes a statement fail was not found", exc_info=True)
        if found is None:
            raise
        raise found from error


class _Search:
    """Among rows on the driver."""

    def __init__(
        self, reads: Mapping[str, Rows], runs: Callable[[Mapping[str, Rows]], None]
    ) -> None:
        """`runs` tries the statement over bound rows."""
        self._reads = reads
        self._runs = runs
        self._until = time.monotonic() + PATIENCE_S

    def row(self) -> RowFails | None:
        """The first relation without which the statement passes, and one row of it that fails."""
        changes = f"@{Form.DELTA.value}"
        for name in sorted(self._reads, key=lambda each: not each.endswith(changes)):
            found = self._row_of(name, self._reads[name])
            shown = [] if found is None else _shown(name, found.column_names)
            if found is not None and shown:
                relation, _, kind = name.rpartition("@")
                group = "group of " if kind.startswith("state") else ""
                return RowFails(f"{group}{relation}", shown_rows(found.select(shown))[0])
        return None

    def _row_of(self, name: str, rows: Rows) -> pa.Table | None:
        if not isinstance(rows, LocalRows) or not rows.table.num_rows:
            return None
        if self._fails(name, LocalRows(rows.table.slice(0, 0), rows.schema)):
            return None
        return self._narrowed(name, rows)

    def _narrowed(self, name: str, rows: LocalRows) -> pa.Table | None:
        table = rows.table
        while table.num_rows > 1:
            half = table.num_rows // 2
            parts = (table.slice(0, half), table.slice(half))
            failing = (each for each in parts if self._fails(name, LocalRows(each, rows.schema)))
            found = next(failing, None)
            if found is None:
                # it takes several rows, as where a sum is too large
                return None
            table = found
        return table

    def _fails(self, name: str, rows: Rows) -> bool:
        """Whether the statement fails with these rows; after a while nothing does."""
        if time.monotonic() > self._until:
            return False
        try:
            self._runs({**self._reads, name: rows})
        except PySparkException:
            return True
        return False


class _LargeSearch(_Search):
    """Among rows in files."""

    def __init__(
        self,
        gears: Gears,
        reads: Mapping[str, Rows],
        runs: Callable[[Mapping[str, Rows]], None],
    ) -> None:
        """`runs` tries the statement in the high gear."""
        super().__init__(reads, runs)
        self._gears = gears

    def _row_of(self, name: str, rows: Rows) -> pa.Table | None:
        if isinstance(rows, LocalRows):
            return super()._row_of(name, rows)
        frame = self._gears.read(rows)
        if self._fails(name, FrameRows(frame.limit(0))):
            return None
        for level in count():
            few = with_nullable_fields(frame.limit(FEW + 1)).toArrow()
            if few.num_rows <= FEW:
                schema = Schema(tuple(_fields(frame)), internal=True)
                return self._narrowed(name, LocalRows(few, schema))
            columns = [F.col(quote(each)) for each in frame.columns]
            half = F.pmod(F.xxhash64(F.lit(level), *columns), F.lit(2))
            parts = (frame.where(half == F.lit(side)) for side in (0, 1))
            found = next((each for each in parts if self._fails(name, FrameRows(each))), None)
            if found is None:
                return None
            frame = found
        return None


def _fields(frame: DataFrame) -> Iterator[Field]:
    for each in frame.schema.fields:
        yield Field(each.name, from_spark_type(each.dataType))


def _shown(name: str, columns: list[str]) -> list[str]:
    """The columns that say something to people: of a node's state its keys alone."""
    if "@state" not in name:
        return [each for each in columns if each not in (WEIGHT, TICK)]
    return [each for each in columns if not each.startswith(("_", "aggregate_"))]
