"""The high gear, used by several threads: each reads the rows that it has bound."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa

from ivm_core.engine.gears import Gears, LocalRows
from ivm_core.model.schema import parse_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = parse_schema("n BIGINT")


def test_each_thread_reads_the_rows_that_it_bound(spark: SparkSession) -> None:
    gears = Gears(spark)
    meeting = threading.Barrier(2, timeout=60)

    def read(number: int) -> list[int]:
        rows = LocalRows(pa.table({"n": pa.array([number, number])}), SCHEMA)
        found = []
        for _ in range(5):
            with gears.reading("SELECT SUM(n) AS n FROM r", {"r": rows}) as frame:
                meeting.wait()  # both have bound the name by now
                found += [each.n for each in frame.collect()]
            meeting.wait()
        return found

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(read, [1, 10])) == [[2] * 5, [20] * 5]


def test_names_are_free_behind_a_reading(spark: SparkSession) -> None:
    gears = Gears(spark)
    rows = LocalRows(pa.table({"n": pa.array([1])}), SCHEMA)
    with gears.reading("SELECT n FROM r", {"r": rows}) as frame:
        assert frame.count() == 1
    assert not gears.high.catalog.tableExists("r")
