"""What a recovery promises beside the rows: the same pins, the same time, the same refusals."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import DeltaBatch, HistoryLost, IncrementalFlow, TickFailed, UnknownName
from ivm_core.engine import core
from tests.faults.story import killed_at
from tests.flow.shop import assert_exact, log_of, rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "flow"


def killed_after(
    entry: int, place: Path, spark: SparkSession, work: Callable[[IncrementalFlow], Any]
) -> None:
    """Do the work in a flow that dies right after the n-th entry that it adds to the log."""

    def run() -> None:
        work(IncrementalFlow.open(place, spark))

    passed: list[str] = []

    class Log(list[str]):
        def append(self, name: str) -> None:
            super().append(name)
            passed.append(name)

        def __len__(self) -> int:
            return passed.count("after:ticklog.commit")

    with killed_at(entry - 1, Log()):
        run()
    assert passed.count("after:ticklog.commit") == entry


INTENT = 2  # a handle's first entry is its epoch, a tick's first is its intent


def test_a_batch_that_was_staged_without_an_intent_is_never_seen(
    place: Path, spark: SparkSession
) -> None:
    with IncrementalFlow.open(place, spark) as flow:
        flow.register_source("s", "id INT, x INT", primary_key=["id"])
        flow.register_view("n", "SELECT COUNT(*) AS n, SUM(x) AS x FROM s")
        flow.tick("s", [(1, 1)])
    points: list[str] = []
    with killed_at(None, points):
        IncrementalFlow.open(place, spark).tick("s", [], views=[])
    staged = len(points) // 2 + 4  # past the epoch, within what is staged
    with killed_at(staged):
        IncrementalFlow.open(place, spark).tick("s", [(2, 2)])
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.current_tick == 2
        assert rows(flow.snapshot("s")) == [(1, 1)]
        assert flow.tick("s", [(2, 20)]).tick == 3
        assert rows(flow.snapshot("s")) == [(1, 1), (2, 20)]
        assert rows(flow.snapshot("n")) == [(2, 21)]
        assert_exact(flow)


def test_a_recovered_tick_keeps_its_logical_time_and_batch_id(
    place: Path, spark: SparkSession
) -> None:
    with IncrementalFlow.open(place, spark) as flow:
        flow.register_source("s", "x INT")
        flow.register_view("stamped", "SELECT x, current_timestamp() AS at FROM s")
    then = datetime(2020, 2, 29, 12, tzinfo=UTC)
    killed_after(
        INTENT,
        place,
        spark,
        lambda flow: flow.tick("s", [(1,)], logical_time=then, batch_id="b", views=["stamped"]),
    )
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.current_tick == 1
        assert flow.tick("s", [(1,)], batch_id="b").recovered
        assert flow.current_tick == 1
        ((x, at),) = rows(flow.snapshot("stamped"))
        assert (x, at.astimezone(UTC)) == (1, then)


@pytest.mark.parametrize("lost", ["file", "file and commit"])
def test_a_tick_whose_staged_rows_are_lost_is_aborted_and_can_be_given_again(
    lost: str, place: Path, spark: SparkSession
) -> None:
    with IncrementalFlow.open(place, spark) as flow:
        flow.register_source("s", "id INT, x INT", primary_key=["id"])
        flow.register_view("n", "SELECT COUNT(*) AS n, SUM(x) AS x FROM s")
        flow.tick("s", [(1, 1)])
    folder = place / "sources" / "s" / "rows"
    before = set(folder.rglob("*"))
    batch = {"delta": [(2, 2), (3, 3)], "batch_id": "payment 7"}
    killed_after(INTENT, place, spark, lambda flow: flow.tick("s", **batch))
    for file in set(folder.rglob("*")) - before:
        if file.suffix == ".parquet" or lost != "file":
            file.unlink()
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.current_tick == 1
        assert ("abort", 2) in log_of(flow)
        assert rows(flow.snapshot("s")) == [(1, 1)]
        assert flow.tick("s", **batch).tick == 2
        assert rows(flow.snapshot("n")) == [(3, 6)]
        assert_exact(flow)
        assert flow.verify() == ()


def test_a_recovered_tick_reads_followed_tables_where_they_were(
    place: Path, tmp_path: Path, spark: SparkSession
) -> None:
    table = f"delta.`{tmp_path / 'table'}`"
    spark.sql(f"CREATE TABLE {table} USING delta AS SELECT 1 AS x")
    with IncrementalFlow.open(place, spark) as flow:
        flow.register_source("t", delta_table=tmp_path / "table")
        flow.register_view("v", "SELECT x FROM t")
        flow.tick()
    spark.sql(f"INSERT INTO {table} VALUES (2)")
    killed_after(INTENT, place, spark, lambda flow: flow.tick())
    spark.sql(f"INSERT INTO {table} VALUES (3)")
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.current_tick == 2
        assert rows(flow.snapshot("v")) == [(1,), (2,)]
        flow.tick()
        assert rows(flow.snapshot("v")) == [(1,), (2,), (3,)]
        assert rows(flow.snapshot("v", at=2)) == [(1,), (2,)]
        assert_exact(flow)


def test_a_recovery_whose_pins_are_gone_is_aborted(
    place: Path, tmp_path: Path, spark: SparkSession
) -> None:
    table = tmp_path / "table"
    spark.range(1).write.format("delta").save(str(table))
    with IncrementalFlow.open(place, spark) as flow:
        flow.register_source("t", delta_table=table)
        flow.register_view("v", "SELECT id FROM t")
        flow.tick()
    old = set(table.glob("*.parquet"))
    spark.range(1, 2).write.format("delta").mode("append").save(str(table))
    killed_after(INTENT, place, spark, lambda flow: flow.tick())
    for file in set(table.glob("*.parquet")) - old:
        file.unlink()
    with pytest.raises((HistoryLost, TickFailed)):
        IncrementalFlow.open(place, spark)
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.current_tick == 1
        assert log_of(flow)[-1] == ("abort", 2)
        assert rows(flow.snapshot("v")) == [(0,)]


def test_a_recovery_that_evaluates_to_an_error_is_aborted(place: Path, spark: SparkSession) -> None:
    with IncrementalFlow.open(place, spark) as flow:
        flow.register_source("s", "x INT")
        flow.register_view("v", "SELECT 1 / x AS y FROM s")
        flow.tick("s", [(1,)])
    killed_after(INTENT, place, spark, lambda flow: flow.tick("s", [(0,)]))
    with pytest.raises(TickFailed, match="DIVIDE_BY_ZERO") as caught:
        IncrementalFlow.open(place, spark)
    assert caught.value.view == "v"
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.current_tick == 1
        assert rows(flow.snapshot("s")) == [(1,)]
        assert flow.tick("s", [(2,)]).tick == 2
        assert rows(flow.snapshot("v").select("y")) == [(0.5,), (1.0,)]


def test_a_recovery_waits_for_the_functions_that_it_needs(place: Path, spark: SparkSession) -> None:
    def declare(flow: IncrementalFlow) -> None:
        flow.register_function("plus_one", lambda x: x + 1, "INT", deterministic=True)

    with IncrementalFlow.open(place, spark) as flow:
        declare(flow)
        flow.register_source("s", "x INT")
        flow.register_view("v", "SELECT plus_one(x) AS y FROM s")
        flow.tick("s", [(1,)])

    def work(flow: IncrementalFlow) -> None:
        declare(flow)
        flow.tick("s", [(2,)])

    killed_after(INTENT, place, spark, work)
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.current_tick == 1
        with pytest.raises(UnknownName, match="plus_one"):
            flow.tick("s", [(3,)], views=[])
        declare(flow)
        assert flow.tick("s", [(3,)]).tick == 3
        assert rows(flow.snapshot("v")) == [(2,), (3,), (4,)]
        assert_exact(flow)


def test_a_reader_leaves_a_tick_that_is_under_way_alone(place: Path, spark: SparkSession) -> None:
    """The writer is alive: whoever opens the flow meanwhile sees the last whole tick."""
    with IncrementalFlow.open(place, spark) as flow:
        flow.register_source("s", "x INT")
        flow.register_view("v", "SELECT x FROM s")
        flow.tick("s", [(1,)])
        seen = []

        class Looking(core.ViewEvaluation):
            def run(self) -> core.ViewResult:
                with IncrementalFlow.open(place, spark) as reader:
                    seen.append((reader.current_tick, rows(reader.snapshot("s"))))
                return super().run()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(core, "ViewEvaluation", Looking)
            flow.tick("s", DeltaBatch.inserts([(2,)]))
        assert seen == [(1, [(1,)])]
        assert flow.current_tick == 2
        assert [kind for kind, _ in log_of(flow)].count("commit") == 2


def test_a_recovered_tick_names_a_batch_that_changes_nothing(
    place: Path, spark: SparkSession
) -> None:
    with IncrementalFlow.open(place, spark) as flow:
        flow.register_source("s", "x INT", primary_key=["x"])
        flow.register_source("t", "x INT")
        flow.register_view("v", "SELECT s.x FROM s JOIN t ON s.x = t.x")
    killed_after(INTENT, place, spark, lambda flow: flow.tick({"s": [(1,)], "t": []}))
    with IncrementalFlow.open(place, spark) as flow:
        assert list(flow._engine.history.commits[1]["sources"]) == ["s", "t"]


def test_views_that_are_declared_together_are_there_together(
    tmp_path: Path, spark: SparkSession
) -> None:
    views = {
        "even": "SELECT n FROM s WHERE n = 0 UNION SELECT o.n + 1 AS n FROM odd o WHERE o.n < 9",
        "odd": "SELECT DISTINCT e.n + 1 AS n FROM even e WHERE e.n < 9",
        "both": "WITH RECURSIVE r AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 3) "
        "SELECT i, COUNT(*) AS c FROM r GROUP BY i",
    }
    schemas = {"even": "n INT", "odd": "n INT"}
    points: list[str] = []
    for number in range(100):
        place = tmp_path / str(number)
        with IncrementalFlow.open(place, spark) as flow:
            flow.register_source("s", "n INT")
        points.clear()
        with killed_at(number, points):
            IncrementalFlow.open(place, spark).register_views(views, schemas=schemas)
        with IncrementalFlow.open(place, spark) as flow:
            assert set(flow.views) in (set(), set(views))
        if len(points) <= number:
            break
    assert "after:ticklog.commit" in points
    with IncrementalFlow.open(place, spark) as flow:
        flow.tick("s", [(0,)])
        assert rows(flow.snapshot("odd")) == [(1,), (3,), (5,), (7,), (9,)]
