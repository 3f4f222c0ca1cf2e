"""Followed tables without Spark: versions, classification by actions, deltas, lost history."""

from __future__ import annotations

import json
import shutil
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from ivm_core.model.errors import HistoryLost, SourceReplaced, Unsupported, UserError
from ivm_core.store.followed import FollowedTable, SourceVersion
from ivm_core.store.followed_retention import deadline, interval
from ivm_core.store.limit import Limit
from ivm_core.store.location import Location
from tests.store.bags import bag, difference
from tests.store.places import AsObjectStore

if TYPE_CHECKING:
    from pathlib import Path

FEED = {"delta.enableChangeDataFeed": "true"}


def rows(*ids: int, name: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [name] * len(ids)})


def versions(table: FollowedTable, since: int, until: int) -> tuple[SourceVersion, SourceVersion]:
    table_id = table.head().table_id
    return SourceVersion(table_id, since), SourceVersion(table_id, until)


def check_every_range(table: FollowedTable) -> set[str]:
    """Each range's delta is the difference of its ends; the ways that were taken."""
    ways = set()
    newest = table.head().version
    for since in range(newest):
        for until in range(since + 1, newest + 1):
            found = table.change_rows(table.classify(*versions(table, since, until)))
            assert found.rows is not None
            expected = difference(bag(table.read(until)), bag(table.read(since)))
            assert bag(found.rows) == expected, (since, until)
            ways.add(found.way)
    return ways


@pytest.mark.parametrize("kind", [Location, AsObjectStore])
@pytest.mark.parametrize("feed", [True, False])
@pytest.mark.parametrize("partitioned", [True, False])
def test_every_range_is_the_difference_of_its_ends(
    tmp_path: Path, feed: bool, partitioned: bool, kind: type[Location]
) -> None:
    path = str(tmp_path / "orders")
    table = FollowedTable(kind(path))
    make_history(path, feed, partitioned, "b")
    assert table.head().version == 7
    ways = check_every_range(table)
    assert ways == {"added files", "change data feed" if feed else "snapshot difference"}


@pytest.mark.parametrize("feed", [True, False])
def test_partition_values_that_paths_escape(tmp_path: Path, feed: bool) -> None:
    make_history(str(tmp_path), feed, True, "b c/ü=1%")
    ways = check_every_range(FollowedTable(Location(tmp_path)))
    assert ways - {"change data feed"} == {"added files", "snapshot difference"}


def make_history(path: str, feed: bool, partitioned: bool, name: str) -> None:
    """Eight versions with every kind of commit that `deltalake` writes."""
    write_deltalake(
        path,
        rows(1, 2, 3),
        partition_by=["name"] if partitioned else None,
        configuration=FEED if feed else None,
    )
    write_deltalake(path, rows(4, 4, name=name), mode="append")
    DeltaTable(path).update(updates={"id": "id + 10"}, predicate="id = 2")
    write_deltalake(path, rows(5), mode="append")
    DeltaTable(path).optimize.compact()
    DeltaTable(path).delete("id = 4")
    DeltaTable(path).restore(2)
    write_deltalake(path, rows(8, 9), mode="overwrite")


def test_commits_are_classified_by_their_actions(tmp_path: Path) -> None:
    path = str(tmp_path)
    write_deltalake(path, rows(1))
    write_deltalake(path, rows(2), mode="append")
    DeltaTable(path).optimize.compact()
    DeltaTable(path).delete("id = 1")
    DeltaTable(path).alter.set_table_properties(FEED)
    write_deltalake(path, rows(3), mode="append")
    DeltaTable(path).delete("id = 3")
    table = FollowedTable(Location(path))

    def kind(since: int, until: int) -> tuple[str, bool]:
        change = table.classify(*versions(table, since, until))
        return change.kind, change.change_feed

    assert kind(0, 0) == ("nothing", False)
    assert kind(0, 1) == ("insert_only", False)
    assert kind(1, 2) == ("nothing", False)
    assert kind(0, 2) == ("insert_only", False)
    assert kind(2, 3) == ("changed", False)
    assert kind(3, 4) == ("nothing", False)
    assert kind(4, 5) == ("insert_only", True)
    assert kind(4, 6) == ("changed", True)
    assert kind(0, 6) == ("changed", False)
    assert table.classify(*versions(table, 0, 2)).rows_added == 1
    check_every_range(table)


def test_a_schema_change_is_where_reading_stops(tmp_path: Path) -> None:
    path = str(tmp_path)
    write_deltalake(path, rows(1))
    write_deltalake(path, rows(2), mode="append")
    wider = rows(3).append_column("more", pa.array([1.5]))
    write_deltalake(path, wider, mode="append", schema_mode="merge")
    table = FollowedTable(Location(path))
    change = table.classify(*versions(table, 0, 2))
    assert (change.kind, change.until) == ("insert_only", 1)
    assert change.stopped_by == "the schema changed at version 2"
    assert bag(table.change_rows(change).rows) == bag(rows(2))
    stopped = table.classify(*versions(table, 1, 2))
    assert (stopped.kind, stopped.until) == ("schema_changed", 1)
    with pytest.raises(SourceReplaced, match="the schema changed at version 2"):
        table.change_rows(stopped)
    with pytest.raises(SourceReplaced, match="the schema changed at version 2"):
        table.delta(0, 2)
    assert table.schema(1).names == ("id", "name")
    assert table.schema().ddl == "`id` BIGINT, `name` STRING, `more` DOUBLE"


def test_a_table_made_again_is_another(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, rows(1))
    table = FollowedTable(Location(path))
    before = table.head()
    assert bag(table.read(0)) == bag(rows(1))
    shutil.rmtree(path)
    time.sleep(0.01)
    write_deltalake(path, rows(2))
    after = table.head()
    assert after.version == before.version
    assert after.table_id != before.table_id
    assert bag(table.read(0)) == bag(rows(2))
    change = table.classify(before, after)
    assert change.kind == "replaced"
    with pytest.raises(SourceReplaced, match="register the table that is there now"):
        table.change_rows(change)


def test_lost_history_is_refused_with_the_way_out(tmp_path: Path) -> None:
    path = str(tmp_path)
    write_deltalake(path, rows(1))
    for each in range(2, 6):
        write_deltalake(path, rows(each), mode="append")
    DeltaTable(path).create_checkpoint()
    (tmp_path / "_delta_log" / f"{3:020d}.json").unlink()
    table = FollowedTable(Location(path))
    with pytest.raises(HistoryLost, match="version 3 is gone") as refusal:
        table.delta(2, 4)
    assert "register the table as a new source" in str(refusal.value)


def test_a_vacuumed_change_data_feed_is_lost_history(tmp_path: Path) -> None:
    make_history(str(tmp_path), True, False, "b")
    shutil.rmtree(tmp_path / "_change_data")
    with pytest.raises(HistoryLost, match="is gone"):
        FollowedTable(Location(tmp_path)).delta(1, 2)


def test_vacuumed_files_are_lost_history(tmp_path: Path) -> None:
    path = str(tmp_path)
    write_deltalake(path, rows(1))
    write_deltalake(path, rows(2), mode="overwrite")
    DeltaTable(path).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    table = FollowedTable(Location(path))
    with pytest.raises(HistoryLost, match="version 0 can't be read any more"):
        table.read(0)
    with pytest.raises(HistoryLost, match="version 0 can't be read any more"):
        table.delta(0, 1)
    with pytest.raises(HistoryLost, match="version 7"):
        table.read(7)


def test_a_version_before_the_one_that_was_read(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), rows(1))
    table = FollowedTable(Location(tmp_path))
    with pytest.raises(HistoryLost, match="version 5 was read before"):
        table.classify(*versions(table, 5, 0))


def test_head_is_cheap_when_nothing_is_new(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), rows(1))
    table = FollowedTable(Location(tmp_path))
    table.head()
    start = time.perf_counter()
    for _ in range(100):
        table.head()
    assert (time.perf_counter() - start) / 100 < 0.005
    write_deltalake(str(tmp_path), rows(1), mode="append")
    assert table.head().version == 1


def test_limited_reads_of_a_version(tmp_path: Path) -> None:
    path = str(tmp_path)
    write_deltalake(path, rows(1, 2, 3), partition_by=["name"])
    write_deltalake(path, rows(2, 7, name="b"), mode="append")
    table = FollowedTable(Location(path))
    found = table.read(1, ["name"], Limit.of("id", pa.array([2, 7])))
    assert sorted(found["name"].to_pylist()) == ["a", "b", "b"]
    by_partition = table.read(1, where=Limit.of("name", pa.array(["b"])))
    assert sorted(by_partition["id"].to_pylist()) == [2, 7]
    assert table.read(0, where=Limit(())).num_rows == 0
    assert table.rows(1) == 5
    assert table.bytes(1) > table.bytes(0) > 0


def test_large_ranges_are_left_to_spark(tmp_path: Path) -> None:
    path = str(tmp_path)
    write_deltalake(path, rows(1))
    write_deltalake(path, rows(2), mode="append")
    DeltaTable(path).delete("id = 1")
    table = FollowedTable(Location(path))
    added = table.change_rows(table.classify(*versions(table, 0, 1)), driver_bytes=1)
    assert (added.rows, added.way, added.reason) == (None, "added files", "too much for the driver")
    changed = table.change_rows(table.classify(*versions(table, 0, 2)), driver_bytes=1)
    assert (changed.rows, changed.way) == (None, "snapshot difference")
    assert "no change data feed" in changed.reason


def test_what_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no Delta table"):
        FollowedTable(Location(tmp_path / "missing")).head()
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_text(json.dumps({"nonsense": 1}))
    with pytest.raises(UserError):
        FollowedTable(Location(tmp_path)).head()


def test_types_that_cannot_be_in_a_z_set(tmp_path: Path) -> None:
    DeltaTable.create(str(tmp_path), pa.schema([("v", pa.string())]))
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    features = {name: ["variantType"] for name in ("readerFeatures", "writerFeatures")}
    lines = [{"protocol": protocol | features} if "protocol" in each else each for each in lines]
    text = "\n".join(map(json.dumps, lines))
    log.write_text(text.replace('\\"string\\"', '\\"variant\\"'))
    with pytest.raises(Unsupported, match="the type VARIANT"):
        FollowedTable(Location(tmp_path)).schema()


@pytest.mark.parametrize("feed", [True, False])
def test_columns_that_came_later_are_null_before(tmp_path: Path, feed: bool) -> None:
    path = str(tmp_path)
    settings = {"delta.enableChangeDataFeed": str(feed).lower()}
    write_deltalake(path, rows(1, 2), configuration=settings)
    wider = rows(3).append_column("more", pa.array([7]))
    write_deltalake(path, wider, mode="append", schema_mode="merge")
    DeltaTable(path).delete("id = 2")
    table = FollowedTable(Location(path))
    assert table.added_columns(0, 2) == ["more"]
    assert table.added_columns(2, 0) == []
    table.asked = table.own_schema()
    before = table.read(0)
    assert before["more"].to_pylist() == [None, None]
    assert table.read(0, ["id"], Limit.of("more", pa.array([7]))).num_rows == 0
    change = table.classify(*versions(table, 0, 2))
    assert change.stopped_by == ""
    found = table.change_rows(change)
    assert found.way == ("change data feed" if feed else "snapshot difference")
    assert found.rows is not None
    whole = [
        *before.append_column("_weight", pa.array([1, 1])).to_pylist(),
        *found.rows.to_pylist(),
    ]
    left: dict[tuple[int, int | None], int] = {}
    for row in whole:
        key = (row["id"], row["more"])
        left[key] = left.get(key, 0) + row["_weight"]
    assert {key for key, weight in left.items() if weight} == {(1, None), (3, 7)}
    # a column that is known, but comes as another one
    write_deltalake(path, rows(9), mode="overwrite", schema_mode="overwrite")
    assert "schema changed" in table.classify(*versions(table, 2, 3)).stopped_by


def test_when_a_table_may_let_go_of_what_was_not_read(tmp_path: Path) -> None:
    path = str(tmp_path)
    settings = {"delta.deletedFileRetentionDuration": "interval 2 days"}
    write_deltalake(path, rows(1), configuration=settings)
    write_deltalake(path, rows(2), mode="append")
    table = FollowedTable(Location(path))
    assert deadline(table, 1) is None
    now = datetime.now(UTC)
    log = deadline(table, 0)
    assert log is not None
    assert log.by == "the table's log"
    assert timedelta(days=29, hours=23) < log.at - now < timedelta(days=30, seconds=60)
    DeltaTable(path).delete("id = 1")
    files = deadline(table, 0)
    assert files is not None
    assert files.by == "VACUUM"
    assert timedelta(hours=47) < files.at - now < timedelta(hours=48, seconds=60)
    assert timedelta(hours=11) < files.at - files.warn_from < timedelta(hours=13)
    (tmp_path / "_delta_log" / f"{1:020d}.json").unlink()
    with pytest.raises(HistoryLost, match="version 1 is gone"):
        deadline(table, 0)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("interval 30 days", 30),
        ("INTERVAL 1 week", 7),
        ("36 hours", 1.5),
        ("interval 1 day 12 hours", 1.5),
        ("1 day or so", None),
        ("ever", None),
    ],
)
def test_durations_as_delta_writes_them(text: str, days: float | None) -> None:
    assert interval(text) == (None if days is None else timedelta(days=days))
