"""Limited reads bring what a plain read and a filter bring, however the columns are encoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

from ivm_core.store.limit import ColumnLimit, Limit
from ivm_core.store.location import Location
from ivm_core.store.parquet_scan import ParquetScan

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 3000
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        # few values, NULL among them
        "mode": pa.array([("AIR", "SHIP", "", None)[at % 4] for at in range(ROWS)]),
        # few at first, then as many as rows
        "mixed": pa.array(["x" if at < 1500 else f"text {at} é" for at in range(ROWS)]),
        "own": pa.array([f"comment {at}" for at in range(ROWS)]),
        "nothing": pa.nulls(ROWS, pa.string()),
        "inside": pa.array([{"mode": "AIR"} for _ in range(ROWS)]),
    }
)


@pytest.fixture
def scan(tmp_path: Path) -> ParquetScan:
    parquet.write_table(TABLE, tmp_path / "rows.parquet", row_group_size=500)
    return ParquetScan(Location(tmp_path), TABLE.schema)


@pytest.mark.parametrize(
    ("column", "values", "with_null"),
    [
        ("id", [0, 7, 1499, 1500, 2999], False),
        ("mode", ["AIR"], False),
        ("mode", ["", "ROCKET"], True),
        ("mixed", ["x", "text 2000 é"], False),
        ("own", ["comment 42", "comment 2042"], False),
        ("nothing", [], True),
    ],
)
def test_a_limit_brings_its_rows_with_all_columns(
    scan: ParquetScan, column: str, values: list[object], with_null: bool
) -> None:
    wanted = pa.array(values, TABLE.schema.field(column).type)
    limit = Limit.all_of([ColumnLimit(column, wanted, with_null)])
    mask = pc.is_in(TABLE[column], value_set=wanted)
    if with_null:
        mask = pc.or_(mask, TABLE[column].is_null())
    found = scan.read(["rows.parquet"], TABLE.column_names, limit)
    assert found.schema == TABLE.schema
    assert found.equals(TABLE.filter(mask))


def test_everything_is_read_as_it_was_written(scan: ParquetScan) -> None:
    assert scan.read(["rows.parquet"], TABLE.column_names).equals(TABLE)
