"""Published views: plain Delta tables that are the view, as of the tick that they name."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars
import pytest
from deltalake import DeltaTable

from ivm_core import CorruptStore, DeltaBatch, IncrementalFlow, UserError
from ivm_core.cli.main import main
from ivm_core.engine import publishing
from tests.faults.story import killed_at, live
from tests.flow.shop import VIEWS, declare_shop

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def assert_published(flow: IncrementalFlow, place: Path, *views: str, at: int | None = None) -> int:
    """Each table is its view at the tick that it names, to two readers; that tick of the last."""
    tick = 0
    for view in views:
        table = DeltaTable(place / "published" / view)
        tick = int(table.metadata().configuration["tideview.tick"])
        frame = flow.snapshot(view, at=tick)
        expected = Counter(repr(row.asDict()) for row in frame.collect())
        names = frame.columns
        read = table.to_pyarrow_table().select(names).to_pylist()
        assert Counter(map(repr, read)) == expected, view
        by_polars = polars.read_delta(str(place / "published" / view)).select(names)
        assert Counter(map(repr, by_polars.to_dicts())) == expected, view
        assert at is None or tick == at, view
    return tick


def test_views_are_published_and_kept_so(
    place: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with IncrementalFlow.open(place, spark) as flow:
        declare_shop(flow)
        with pytest.raises(UserError, match="has no rows yet"):
            flow.publish("totals")
        flow.tick({"orders": [(1, "ann", 10), (2, "bob", 4), (3, "ann", 7)]})
        with pytest.raises(UserError, match="lag="):
            flow.publish("totals", lag=-1)
        assert not (place / "published").exists()
        flow.tick({"customers": [("ann", "Rome"), ("bob", "Rome")]})
        assert {each.view: each.way for each in flow.publish()} == dict.fromkeys(VIEWS, "all of it")
        assert_published(flow, place, *VIEWS, at=2)
        assert {each.way for each in flow.publish()} == {"nothing new"}

        # a tick brings them along; one without a change for a view leaves its table alone
        flow.tick("orders", DeltaBatch.delete_keys([3]) + DeltaBatch.inserts([(4, "bob", 12)]))
        flow.tick("customers", [("eve", "Oslo")])
        assert assert_published(flow, place, "large") == 3
        assert assert_published(flow, place, "totals") == 3
        versions = DeltaTable(place / "published" / "large").version()
        assert versions == 2  # made, published, brought along: one commit each
        flow.publish("large")
        assert_published(flow, place, "large", at=4)

        # how far it may be behind
        flow.publish("totals", lag=1)
        flow.tick("orders", [(5, "ann", 1)])
        assert assert_published(flow, place, "totals") == 4
        flow.tick("orders", [(6, "ann", 1)])
        assert assert_published(flow, place, "totals") == 6
        with monkeypatch.context() as patch:
            patch.setattr(publishing, "ROWS_PER_MS", 0)
            patch.setattr(publishing, "PAYS_FROM", 1000)
            flow.publish("totals", lag="auto")
            flow.tick("orders", [(7, "ann", 1)])
            assert assert_published(flow, place, "totals") == 6  # it would cost more than the tick
        patch.undo()
        with monkeypatch.context() as patch:
            patch.setattr(publishing, "ON_DRIVER", -1)
            assert [each.way for each in flow.publish("totals")] == ["all of it"]  # by Spark
            assert_published(flow, place, "totals", at=7)

        # other columns, other names, none at all
        flow.alter_view("large", "SELECT id, amount, amount > 11 AS is_huge FROM orders")
        flow.tick("orders", [(8, "bob", 40)])
        assert_published(flow, place, "large", at=9)
        flow.rename_view("large", "orders_seen")
        flow.tick("orders", [(9, "bob", 41)])
        assert_published(flow, place, "orders_seen", at=10)
        assert not (place / "published" / "large").exists()
        flow.drop_view("cities")
        flow.tick("orders", [(10, "bob", 41)])
        assert sorted(each.name for each in (place / "published").iterdir()) == [
            "orders_seen",
            "totals",
        ]

        # ticks since then that are folded are no way back: all of it is written
        flow.publish("totals", lag=100)
        flow.tick("orders", [(11, "bob", 41)])
        flow.tick("orders", [(12, "bob", 41)])
        flow.set_retention(ticks=1)
        assert any("totals folded" in said for said in flow.compact())
        assert [each.way for each in flow.publish("totals")] == ["all of it"]
        assert_published(flow, place, "totals", at=13)

        # what someone else removed is made again, and told where it can't be
        for file in (place / "published" / "totals").glob("*.parquet"):
            file.unlink()
        flow.tick("orders", DeltaBatch.delete_keys([12]))
        assert [each.way for each in flow.publish("totals")] == ["all of it"]
        assert_published(flow, place, "totals", at=14)
        assert flow.unpublish("orders_seen", "totals") == ("orders_seen", "totals")
        flow.tick("orders", [(13, "bob", 1)])
        assert list((place / "published").iterdir()) == []
    assert main(["publish", str(place), "totals", "--lag", "5", "--quiet"]) == 0
    assert main(["publish", str(place), "totals", "--stop", "--quiet"]) == 0


def test_other_columns_of_the_same_values_are_published(place: Path, spark: SparkSession) -> None:
    """Their rows have the same digest; what a reader sees by name and type is another table."""

    def columns() -> list[tuple[str, str]]:
        table = DeltaTable(place / "published" / "pairs")
        return [(each.name, each.type.type) for each in table.schema().fields]

    with IncrementalFlow.open(place, spark) as flow:
        flow.register_source("pair", "a INT, b INT")
        flow.register_view("pairs", "SELECT a AS x, b AS y FROM pair")
        flow.tick("pair", [(1, 2), (3, 4)])
        flow.publish(lag=0)
        flow.alter_view("pairs", "SELECT a AS y, b AS x FROM pair")  # a tick, which brings it along
        assert columns() == [("y", "integer"), ("x", "integer")]
        assert_published(flow, place, "pairs", at=2)
        assert [each.way for each in flow.publish()] == ["nothing new"]
        flow.publish(lag="auto")
        flow.alter_view("pairs", "SELECT a AS y, CAST(b AS BIGINT) AS x FROM pair")
        assert columns() == [("y", "integer"), ("x", "long")]
        flow.publish(lag=9)
        flow.drop_view("pairs")
        flow.register_view("pairs", "SELECT a AS p, CAST(b AS BIGINT) AS q FROM pair", hydrate=True)
        assert columns() == [("y", "integer"), ("x", "long")]  # it may be behind
        assert [each.way for each in flow.publish()] == ["all of it"]
        assert columns() == [("p", "integer"), ("q", "long")]
        assert_published(flow, place, "pairs", at=flow.current_tick)
        flow.alter_view("pairs", "SELECT a FROM pair WHERE a > 9")
        flow.publish()
        flow.alter_view("pairs", "SELECT a, b FROM pair WHERE a > 9")  # no rows, before and after
        flow.publish()
        assert columns() == [("a", "integer"), ("b", "integer")]


def lose(folder: Path) -> None:
    for file in folder.glob("*.parquet"):
        file.unlink()


def test_lost_files_of_a_published_table_are_noticed_and_made_again(
    place: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = place / "published" / "seen"
    with IncrementalFlow.open(place, spark) as flow:
        flow.register_source("visits", "page STRING, n INT")
        flow.register_view("seen", "SELECT page, n FROM visits")
        flow.tick("visits", [("a", 1)])
        flow.publish(lag=0)
        lose(table)
        flow.tick("visits", [("b", 2)])  # rows come, none go: no file has to be read for it
        assert_published(flow, place, "seen", at=2)
        monkeypatch.setattr(publishing, "LOOKED_AT_FILES", 0)  # as of a table with many files
        lose(table)
        flow.tick("visits", [("c", 3)])
        assert {each.trace for each in flow.verify()} == {"published/seen"}
        assert {each.problem for each in flow.verify()} == {"the file is gone"}
        assert [each.way for each in flow.publish()] == ["all of it"]
        assert_published(flow, place, "seen", at=3)
        assert flow.verify() == ()
        file = max(table.glob("*.parquet"), key=lambda each: each.stat().st_mtime_ns)
        file.write_bytes(file.read_bytes()[:-9])
        (damage,) = flow.verify()
        assert (damage.trace, damage.file) == ("published/seen", file.name)
        done = flow.repair()
        assert (done.traces, done.replayed_ticks) == (("published/seen",), 0)
        assert flow.verify() == ()
        assert_published(flow, place, "seen", at=3)


def test_a_published_table_without_its_log_is_told_in_one_line_and_begun_anew(
    place: Path, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    with IncrementalFlow.open(place, spark) as flow:
        flow.register_source("visits", "page STRING, n INT")
        flow.register_view("seen", "SELECT page, n FROM visits")
        flow.register_view("pages", "SELECT DISTINCT page FROM visits")
        flow.tick("visits", [("a", 1)])
        flow.publish(lag=0)
    commit = place / "published" / "seen" / "_delta_log" / f"{1:020d}.json"
    commit.write_text(commit.read_text()[:50])
    with IncrementalFlow.open(place, spark) as flow:
        caplog.clear()
        (note,) = flow.tick("visits", [("b", 2)]).notes
        assert note.startswith(f"publishing seen at {place}/published/seen is left for later: ")
        assert "CorruptStore: " in note
        assert note.endswith("flow.repair() makes it again")
        (record,) = [each for each in caplog.records if "publishing" in each.getMessage()]
        assert (record.getMessage(), record.exc_text) == (note, None)
        assert_published(flow, place, "pages", at=2)  # the others are brought along
        with pytest.raises(CorruptStore, match=r"published/seen[\s\S]*flow.repair\(\)"):
            flow.publish("seen")
        assert [each.trace for each in flow.verify()] == ["published/seen"]
        assert flow.repair().traces == ("published/seen",)
        assert_published(flow, place, "seen", at=2)
        assert flow.tick("visits", [("c", 3)]).notes == ()
        assert_published(flow, place, "seen", "pages", at=3)
        commit.write_text(commit.read_text()[:50])
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.unpublish("seen") == ("seen",)
        assert flow.tick("visits", [("d", 4)]).notes == ()


def test_killed_while_publishing_it_is_done_once(place: Path, spark: SparkSession) -> None:
    with IncrementalFlow.open(place, spark) as flow:
        declare_shop(flow)
        flow.tick({"orders": [(1, "ann", 10), (2, "bob", 14)]})
        flow.publish("large", lag=0)
    points: list[str] = []
    with killed_at(None, points):
        live(place, spark, lambda flow: sell(flow, "anna"))
    own = [at for at, name in enumerate(points) if "publish" in name]
    assert len(own) == 4  # before and after the file and the commit
    for turn, number in enumerate(own):
        with killed_at(number):
            live(place, spark, lambda flow, turn=turn: sell(flow, f"ann{turn}"))
        with IncrementalFlow.open(place, spark) as flow:
            behind = DeltaTable(place / "published" / "large").metadata().configuration
            is_done = points[number] == "after:publish.commit"
            assert int(behind["tideview.tick"]) == flow.current_tick - (not is_done)
            if turn % 2:
                flow.tick("orders", [(100 + turn, "eve", 50)])
            else:
                flow.publish()
            assert_published(flow, place, "large", at=flow.current_tick)


def sell(flow: IncrementalFlow, customer: str) -> None:
    flow.tick("orders", DeltaBatch.upserts([(1, customer, 12)]))
