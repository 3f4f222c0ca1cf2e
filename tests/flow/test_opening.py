from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ivm_core import (
    ClosedFlow,
    DefinitionConflict,
    IncrementalFlow,
    NewerFormat,
    NotAFlow,
    UserError,
    WrongThread,
)
from tests.flow.shop import VIEWS, declare_shop, log_of, rows
from tests.processes import ENVIRONMENT, in_thread

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

REOPEN = """
import sys
from ivm_core import IncrementalFlow

with IncrementalFlow.open(sys.argv[1]) as flow:
    assert flow.sources == ("orders", "customers"), flow.sources
    assert flow.current_tick == 1
    summary = flow.tick("orders", [(3, "ann", 5)])
    assert summary.tick == 2 and summary.views["totals"].rows_out == 2, summary
    assert flow.check("totals").equal and flow.check("cities").equal
    print(flow.explain("cities").fingerprint)
"""


def test_a_flow_goes_on_in_another_process_with_nothing_declared_again(
    place: Path, spark: SparkSession
) -> None:
    with IncrementalFlow.open(place, spark) as flow:
        declare_shop(flow)
        flow.tick({"orders": [(1, "ann", 20), (2, "bob", 3)], "customers": [("ann", "Rome")]})
    done = subprocess.run(
        [sys.executable, "-c", REOPEN, str(place)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.current_tick == 2
        assert rows(flow.snapshot("totals")) == [("ann", 2, 25), ("bob", 1, 3)]
        assert done.stdout.strip() == flow.explain("cities").fingerprint
        assert flow.tick("customers", [("bob", "Oslo")]).tick == 3
        assert flow.replay().equal


def test_a_reopened_flow_continues_at_the_next_tick(place: Path, spark: SparkSession) -> None:
    with IncrementalFlow.open(place, spark) as flow:
        declare_shop(flow)
        flow.tick("orders", [(1, "ann", 20)])
        before = flow.tick("orders", [(2, "ann", 1)]).views["totals"].state_digest
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.views == tuple(VIEWS)
        assert flow.current_tick == 2
        assert flow.tick().views["totals"].state_digest == before
        assert flow.tick("orders", [(3, "bob", 7)]).tick == 4


def test_an_unused_flow_opens_without_spark(place: Path) -> None:
    flow = IncrementalFlow.open(place)
    assert flow.current_tick == 0
    assert flow.sources == flow.views == ()
    flow.register_source("s", "id INT")
    assert flow._engine._gears is None
    flow.close()


@pytest.mark.parametrize("form", ["path", "text", "uri"])
def test_places_may_be_paths_texts_and_uris(form: str, tmp_path: Path, spark: SparkSession) -> None:
    place = tmp_path / "sp ace ü" / "flow"
    given = {"path": place, "text": str(place), "uri": place.as_uri()}[form]
    with IncrementalFlow.open(given, spark) as flow:
        flow.register_source("s", "id INT")
        flow.register_view("v", "SELECT id + 1 AS next FROM s")
        flow.tick("s", [(1,)])
        assert rows(flow.snapshot("v")) == [(2,)]
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.current_tick == 1


@pytest.mark.parametrize("name", ["br[a]ck", "cu{r,s}ly", "st*r", "q?m", "ha#sh", "com,ma", "a+b"])
def test_a_folder_name_is_taken_as_it_is(name: str, tmp_path: Path, spark: SparkSession) -> None:
    for number, folder in enumerate((name, "bra1ck", "star")):
        with IncrementalFlow.open(tmp_path / folder / "flow", spark) as flow:
            flow.register_source("s", "id INT")
            flow.register_view("v", "SELECT id FROM s")
            for id in (number, number + 10, number + 20):  # a file each
                flow.tick("s", [(id,)])
    with IncrementalFlow.open(tmp_path / name / "flow", spark) as flow:
        assert rows(flow.snapshot("v")) == [(0,), (10,), (20,)]
        assert rows(flow.changes("v", since=1).select("id")) == [(10,), (20,)]


def test_a_directory_with_something_else_in_it_is_not_a_flow(
    tmp_path: Path, spark: SparkSession
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(NotAFlow, match=r"notes\.txt"):
        IncrementalFlow.open(tmp_path, spark)
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(NotAFlow, match="is a file"):
        IncrementalFlow.open(tmp_path / "notes.txt", spark)


def test_a_folder_of_ticks_of_someone_else_is_not_a_flow(
    tmp_path: Path, spark: SparkSession
) -> None:
    (tmp_path / "ticks").mkdir()
    (tmp_path / "ticks" / "2024.csv").write_text("1")
    with pytest.raises(NotAFlow, match=r"ticks/2024\.csv"):
        IncrementalFlow.open(tmp_path, spark)


def test_a_delta_table_is_not_a_flow(tmp_path: Path, spark: SparkSession) -> None:
    place = tmp_path / "table"
    spark.range(3).write.format("delta").save(str(place))
    with pytest.raises(NotAFlow):
        IncrementalFlow.open(place, spark)


@pytest.mark.parametrize("nothing", ["", "  ", None, 7])
def test_what_is_no_place_is_refused(nothing: object, spark: SparkSession) -> None:
    with pytest.raises(UserError):
        IncrementalFlow.open(nothing, spark)  # type: ignore[arg-type]


def test_a_flow_of_a_newer_version_is_refused(place: Path, spark: SparkSession) -> None:
    IncrementalFlow.open(place, spark).close()
    first = place / "ticks" / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            line["metaData"]["configuration"]["tideview.format"] = "99"
    first.write_text("\n".join(json.dumps(line) for line in lines))
    with pytest.raises(NewerFormat, match="format 99"):
        IncrementalFlow.open(place, spark)


def test_a_closed_flow_says_so(place: Path, spark: SparkSession) -> None:
    with IncrementalFlow.open(place, spark) as flow:
        declare_shop(flow)
        watch = flow.watch_output("large")
    flow.close()
    for use in (
        flow.tick,
        lambda: flow.snapshot("large"),
        lambda: flow.current_tick,
        lambda: flow.watch_output("large"),
        lambda: flow.register_source("orders", "id INT"),
        lambda: flow.explain("large"),
        lambda: flow.views,
    ):
        with pytest.raises(ClosedFlow):
            use()
    assert list(watch) == []
    assert "tick 0" in repr(flow)
    assert spark.range(2).count() == 2


def test_another_thread_is_refused(shop: IncrementalFlow) -> None:
    for use in (shop.tick, lambda: shop.snapshot("large"), lambda: shop.current_tick):
        with pytest.raises(WrongThread):
            in_thread(use)
    assert shop.current_tick == 0


def test_a_thread_may_open_a_flow_of_its_own(place: Path, spark: SparkSession) -> None:
    def work() -> int:
        with IncrementalFlow.open(place, spark) as flow:
            declare_shop(flow)
            return flow.tick("orders", [(1, "ann", 20)]).tick

    assert in_thread(work) == 1


def test_an_exception_in_the_block_closes_the_flow(place: Path, spark: SparkSession) -> None:
    with pytest.raises(ZeroDivisionError), IncrementalFlow.open(place, spark) as flow:  # noqa: PT012
        declare_shop(flow)
        raise ZeroDivisionError
    with IncrementalFlow.open(place, spark) as again:
        assert again.tick("orders", [(1, "ann", 20)]).tick == 1


def test_a_flow_that_is_only_read_writes_nothing(place: Path, spark: SparkSession) -> None:
    with pytest.raises(NotAFlow):
        IncrementalFlow.open(place, spark, read_only=True)
    assert not place.exists()
    with IncrementalFlow.open(place, spark) as flow:
        declare_shop(flow)
        flow.tick("orders", [(1, "ann", 20)])
        with IncrementalFlow.open(place, spark, read_only=True) as reader:
            assert rows(reader.snapshot("large")) == [(1, "ann")]
            declare_shop(reader)
            for write in (reader.tick, lambda: reader.register_source("more", "x INT")):
                with pytest.raises(UserError, match="read only"):
                    write()
            assert flow.tick("orders", [(2, "bob", 30)]).tick == 2
            assert reader.current_tick == 2


def test_what_is_declared_is_in_the_log_once(place: Path, spark: SparkSession) -> None:
    for _ in range(2):
        with IncrementalFlow.open(place, spark) as flow:
            declare_shop(flow)
            entries = log_of(flow)
    assert entries == [("source", 0)] * 2 + [("view", 0)] * 3
    with (
        IncrementalFlow.open(place, spark) as flow,
        pytest.raises(DefinitionConflict, match="declared differently"),
    ):
        flow.register_source("orders", "id BIGINT", primary_key=["id"])
