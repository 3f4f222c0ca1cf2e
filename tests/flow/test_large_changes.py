"""Changes that are too many rows for the driver: where they lie, and who folds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from ivm_core import ConstraintViolation, DeltaBatch, IncrementalFlow
from ivm_core.engine import evaluation, relations, staging, two_gears
from tests.flow.shop import assert_exact, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COUNTS = "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM events WHERE x >= 0 GROUP BY k"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten rows are many, and Spark's to fold."""
    for module in (evaluation, relations, staging, two_gears):
        monkeypatch.setattr(module, "LOCAL_ROWS", 10)
    monkeypatch.setattr(two_gears.FoldedOnDriverRun, "is_for", lambda *_: False)


def events(first: int, count: int, groups: int) -> pa.Table:
    ids = range(first, first + count)
    columns = {"id": ids, "k": [f"g{i % groups}" for i in ids], "x": [i % 7 for i in ids]}
    types = {"id": pa.int64(), "k": pa.string(), "x": pa.int64()}
    return pa.table({name: pa.array(columns[name], kind) for name, kind in types.items()})


@pytest.mark.usefixtures("few")
def test_spark_folds_many_rows_and_few_groups_go_on_on_the_driver(flow: IncrementalFlow) -> None:
    flow.register_source("events", "id BIGINT, k STRING, x BIGINT")
    flow.register_view("counts", f"{COUNTS} HAVING COUNT(*) > 1")
    flow.register_view("above", "SELECT n, COUNT(*) AS m FROM counts GROUP BY n")
    flow.tick("events", events(0, 5, 2))
    summary = flow.tick("events", events(5, 40, 3))
    assert "folded in high gear (40 changes of events)" in str(summary.views["counts"].ways)
    assert_exact(flow)
    summary = flow.tick("events", events(100, 30, 30))
    ways = str(summary.views["counts"].ways)
    assert "high gear (30 groups change)" in ways
    assert "folded" not in ways
    summary = flow.tick("events", events(200, 32, 32))  # it isn't tried again
    assert "folded" not in str(summary.views["counts"].ways)
    flow.tick("events", DeltaBatch.deletes(events(5, 40, 3)))
    assert_exact(flow)
    assert flow.replay().equal


def test_the_driver_folds_many_rows_that_it_can_add_up(
    flow: IncrementalFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (evaluation, relations, staging, two_gears):
        monkeypatch.setattr(module, "LOCAL_ROWS", 10)
    flow.register_source("events", "id BIGINT, k STRING, x BIGINT")
    flow.register_view("counts", COUNTS)
    flow.register_view("averages", "SELECT k, AVG(x * 0.5 + 1) AS a FROM events GROUP BY k")
    flow.register_view("roots", "SELECT k, SUM(SQRT(x)) AS r FROM events GROUP BY k")
    flow.tick("events", events(0, 5, 2))
    summary = flow.tick("events", events(5, 40, 3))
    for view in ("counts", "averages"):
        assert "high gear" not in str(summary.views[view].ways)
    assert "folded in high gear (40 changes of events)" in str(summary.views["roots"].ways)
    flow.tick("events", DeltaBatch.deletes(events(5, 20, 3)))
    assert_exact(flow)
    summary = flow.tick("events", events(50, 30, 15))
    assert summary.views["counts"].ways["counts#1"] == "delta, low gear"
    assert_exact(flow)
    monkeypatch.setattr(two_gears, "DRIVER_GROUPS", 20)
    summary = flow.tick("events", events(100, 30, 30))
    assert "high gear (30 groups change)" in str(summary.views["counts"].ways)
    assert_exact(flow)
    assert flow.replay().equal


@pytest.mark.usefixtures("few")
def test_a_batch_that_cancels_out_in_what_a_view_reads(flow: IncrementalFlow) -> None:
    flow.register_source("events", "id BIGINT, k STRING, x BIGINT", primary_key=["id"])
    flow.register_view("counts", COUNTS)
    flow.register_view("names", "SELECT DISTINCT k FROM events")
    flow.tick("events", events(0, 40, 4))
    moved = events(0, 40, 4).set_column(2, "x", pa.array([100] * 40))
    summary = flow.tick("events", DeltaBatch.upserts(moved))
    assert summary.views["names"].rows_out == 0
    assert summary.views["counts"].rows_out == 8
    assert_exact(flow)


def test_spark_writes_a_large_frame_of_a_source_without_keys(
    flow: IncrementalFlow, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(staging, "LARGE_BYTES", 100)
    flow.register_source("events", "id BIGINT, k STRING, x BIGINT")
    flow.register_source("keyed", "id BIGINT, k STRING, x BIGINT", primary_key=["id"])
    flow.register_view("counts", COUNTS)
    flow.tick({"events": events(0, 5, 2), "keyed": events(0, 5, 2)})
    file = str(tmp_path / "events")
    spark.createDataFrame(events(5, 40, 3)).write.parquet(file)
    frame = spark.read.parquet(file)
    flow.tick({"events": frame, "keyed": frame})
    flow.tick("events", frame.where("id > 40"))  # the same rows once more
    assert rows(flow.snapshot("events")).count((44, "g2", 2)) == 2
    assert_exact(flow)
    with pytest.raises(ConstraintViolation, match="keyed"):
        flow.tick("keyed", frame)
    flow.tick("events", DeltaBatch.deletes(frame.where("id > 40")))
    assert rows(flow.snapshot("events")).count((44, "g2", 2)) == 1
    assert_exact(flow)
