from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import IncrementalFlow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.cli.conftest import Tool


def test_status_tells_sources_views_and_how_far_they_are(tideview: Tool, shop: Path) -> None:
    shown = tideview("status", shop)
    assert shown.code == 0
    assert "tick 2, logical time" in shown.out
    assert "orders     fed   3" in shown.out
    assert "totals  2     2" in shown.out
    told = tideview("status", shop, "--json").json
    assert told["tick"] == 2
    assert told["pending"] is None
    assert told["up_to_date"] is True
    assert [each["name"] for each in told["sources"]] == ["orders", "customers"]
    views = {each["name"]: each for each in told["views"]}
    assert (views["totals"]["tick"], views["totals"]["rows"]) == (2, 2)
    assert views["totals"]["way"].startswith("delta")


def test_status_says_whether_a_tick_would_have_something_to_do(
    tideview: Tool, shop: Path, spark: SparkSession, tmp_path: Path
) -> None:
    assert tideview("status", shop, "--up-to-date").code == 0
    table = str(tmp_path / "events")
    spark.range(3).write.format("delta").save(table)
    with IncrementalFlow.open(shop, spark) as flow:
        flow.register_source("events", delta_table=table)
        flow.register_view("seen", "SELECT id FROM events")
    behind = tideview("status", shop, "--up-to-date", "--json")
    assert behind.code == 1
    [events] = [each for each in behind.json["sources"] if each["name"] == "events"]
    assert (events["read_version"], events["newest_version"], events["has_news"]) == (None, 0, True)
    assert "read nothing of 0" in tideview("status", shop).out
    assert "not yet" in tideview("status", shop).out
    assert tideview("tick", shop).code == 0
    assert tideview("status", shop, "--up-to-date").code == 0


def test_a_snapshot_is_shown_and_given(tideview: Tool, shop: Path) -> None:
    shown = tideview("snapshot", shop, "totals")
    assert "ann       2  27" in shown.out
    assert "2 rows as of tick 2" in shown.out
    told = tideview("snapshot", shop, "TOTALS", "--at", 1, "--json").json
    assert told["tick"] == 1
    assert [each["type"] for each in told["columns"]] == ["STRING", "BIGINT", "BIGINT"]
    assert sorted(each["total"] for each in told["rows"]) == [3, 20]
    few = tideview("snapshot", shop, "orders", "--limit", 1)
    assert "3 rows as of tick 2, 1 of them shown" in few.out


def test_rows_that_are_there_twice_are_shown_twice(
    tideview: Tool, shop: Path, spark: SparkSession
) -> None:
    with IncrementalFlow.open(shop, spark) as flow:
        flow.register_view("buyers", "SELECT customer FROM orders", hydrate=True)
    told = tideview("snapshot", shop, "buyers", "--json").json
    assert sorted(row["customer"] for row in told["rows"]) == ["ann", "ann", "bob"]


def test_changes_come_tick_by_tick(tideview: Tool, shop: Path) -> None:
    told = tideview("changes", shop, "totals", "--since", 1, "--json").json
    assert (told["since"], told["tick"]) == (1, 2)
    assert {
        (each["_tick"], each["customer"], each["total"], each["_weight"])
        for each in told["changes"]
    } == {
        (2, "ann", 20, -1),
        (2, "ann", 27, 1),
        (2, "bob", 3, -1),
        (2, "bob", 9, 1),
    }
    assert "6 changes after tick 0, up to tick 2" in tideview("changes", shop, "totals").out


def test_a_watch_ends_when_nothing_comes_and_says_where_to_go_on(
    tideview: Tool, shop: Path
) -> None:
    watched = tideview("watch", shop, "large", "--since", 0, "--for", 0.1, "--json")
    assert watched.code == 0
    assert watched.json == {
        "tick": 1,
        "view": "large",
        "changes": [{"id": 1, "customer": "ann", "_weight": 1}],
    }
    assert "go on with --since 2" in watched.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("snapshot", "totls"), "did you mean totals?"),
        (("changes", "nothing_like_it"), "there are: orders, customers, large"),
        (("watch", "totals", "--since", "9"), "give a tick from 0 to 2"),
        (("snapshot", "totals", "--at", "9"), "give a tick from 0 to 2"),
    ],
)
def test_wrong_names_and_ticks_are_user_errors(
    tideview: Tool, shop: Path, arguments: tuple[str, ...], told: str
) -> None:
    command, view, *more = arguments
    answer = tideview(command, shop, view, *more)
    assert answer.code == 3
    assert told in answer.err
    assert answer.out == ""
    assert told in tideview(command, shop, view, *more, "--json").json["error"]["fix"]


def test_a_wrong_path_says_what_may_have_been_meant(
    tideview: Tool, shop: Path, tmp_path: Path
) -> None:
    for path, told in (
        (shop.parent, f"did you mean {shop}?"),
        (shop.parent / "flwo", f"did you mean {shop}?"),
        (tmp_path / "no" / "where", "give the folder that a flow was made in"),
    ):
        for command in (("status", path), ("tick", path), ("snapshot", path, "v")):
            answer = tideview(*command)
            assert answer.code == 3
            assert told in answer.err
        assert not (path / "ticks").exists()


def test_a_replay_is_equal_or_the_answer_is_no(tideview: Tool, shop: Path) -> None:
    answer = tideview("replay", shop)
    assert answer.code == 0
    assert "2 ticks, 6 deltas replayed: equal" in answer.out
    told = tideview("replay", shop, "--from", 2, "--json").json
    assert told["equal"] is True
    assert {each["tick"] for each in told["deltas"]} == {2}
    newest = max((shop / "sources" / "orders" / "rows").glob("t*.parquet"))
    newest.write_bytes(min((shop / "sources" / "orders" / "rows").glob("t*.parquet")).read_bytes())
    differs = tideview("replay", shop)
    assert differs.code == 1
    assert "DIFFERENT" in differs.out
