"""The tick log: in order, at the expected version, for one writer at a time."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from ivm_core.model.errors import CorruptStore, NewerFormat, NotAFlow, TickConflict
from ivm_core.store.location import Location
from ivm_core.store.ticklog import FOLD_EVERY, TickLog
from tests.store.places import AsObjectStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@pytest.fixture(params=[Location, AsObjectStore])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    kind: type[Location] = request.param
    return kind(tmp_path / "ticks")


def test_entries_come_back_as_written(place: Location) -> None:
    log = TickLog.create(place, 1, {"name": "shop"})
    log.append("create", 0, 1, {})
    log.append("intent", 1, 1, {"pins": {"orders": 7}, "text": "Ünïcode ' \" \n"})
    again = TickLog.open(place, newest_format=1)
    assert again.entries == log.entries
    assert [(e.seq, e.kind, e.tick, e.epoch) for e in again.entries] == [
        (0, "create", 0, 1),
        (1, "intent", 1, 1),
    ]
    assert again.entries[1].body == {"pins": {"orders": 7}, "text": "Ünïcode ' \" \n"}
    assert again.meta == {"name": "shop"}
    assert again.format_version == 1


def test_a_handle_that_is_behind_cannot_append(place: Location) -> None:
    first = TickLog.create(place, 1, {})
    second = TickLog.open(place)
    first.append("commit", 1, 1, {"by": "first"})
    with pytest.raises(TickConflict, match="another writer has added"):
        second.append("commit", 1, 1, {"by": "second"})
    assert [entry.body["by"] for entry in TickLog.open(place).entries] == ["first"]
    assert second.refresh()
    second.append("commit", 2, 1, {"by": "second"})
    with pytest.raises(TickConflict):
        first.append("commit", 2, 1, {"by": "first"})
    assert [entry.body["by"] for entry in TickLog.open(place).entries] == ["first", "second"]


def test_a_refused_append_leaves_no_file(tmp_path: Path) -> None:
    first = TickLog.create(Location(tmp_path), 1, {})
    second = TickLog.open(Location(tmp_path))
    first.append("commit", 1, 1, {})
    with pytest.raises(TickConflict):
        second.append("commit", 1, 1, {})
    assert len(list(tmp_path.glob("*.parquet"))) == 1
    assert not list((tmp_path / "_delta_log").glob(".*"))


_RACER = """
import sys, time
from ivm_core.model.errors import TickConflict
from ivm_core.store.location import Location
from ivm_core.store.ticklog import TickLog
who, place, start = sys.argv[1], sys.argv[2], float(sys.argv[3])
log = TickLog.open(Location(place))
time.sleep(max(0, start - time.time()))
won = 0
while len(log.entries) < 300:
    try:
        log.append("commit", len(log.entries), 1, {"by": who})
        won += 1
    except TickConflict:
        log.refresh()
print(won)
"""


def test_processes_that_race_never_share_an_entry(tmp_path: Path) -> None:
    TickLog.create(Location(tmp_path), 1, {})
    start = time.time() + 2
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _RACER, who, str(tmp_path), str(start)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for who in ("a", "b", "c")
    ]
    wins = [int(racer.communicate(timeout=120)[0]) for racer in racers]
    log = TickLog.open(Location(tmp_path))
    assert sum(wins) == len(log.entries)
    assert [entry.tick for entry in log.entries] == list(range(len(log.entries)))
    for who, won in zip("abc", wins, strict=True):
        assert sum(entry.body["by"] == who for entry in log.entries) == won


def test_long_logs_are_folded_and_stay_a_plain_delta_table(tmp_path: Path) -> None:
    place = Location(tmp_path)
    log = TickLog.create(place, 1, {})
    reader = TickLog.open(place)
    for tick in range(3 * FOLD_EVERY + 5):
        log.append("commit", tick, 1, {"tick": tick})
    reader.refresh()
    again = TickLog.open(place)
    assert again.entries == log.entries == reader.entries
    table = DeltaTable(str(tmp_path))
    assert len(table.file_uris()) == 3 + 5
    rows = table.to_pyarrow_table().sort_by("seq")
    assert rows["tick"].to_pylist() == list(range(3 * FOLD_EVERY + 5))
    assert rows.schema.field("at").type == pa.timestamp("us", "UTC")
    again.append("commit", 999, 1, {})
    with pytest.raises(TickConflict):
        log.append("commit", 999, 1, {})


def test_what_json_cannot_carry_is_refused_and_nothing_written(tmp_path: Path) -> None:
    log = TickLog.create(Location(tmp_path), 1, {})
    with pytest.raises(ValueError, match="not JSON compliant"):
        log.append("commit", 1, 1, {"x": float("nan")})
    assert TickLog.open(Location(tmp_path)).entries == []


def test_making_a_log_twice_is_a_conflict(place: Location) -> None:
    TickLog.create(place, 1, {})
    with pytest.raises(TickConflict, match="made here in the meantime"):
        TickLog.create(place, 1, {})


def test_directories_that_are_no_flow(tmp_path: Path) -> None:
    with pytest.raises(NotAFlow, match="there is no flow here"):
        TickLog.open(Location(tmp_path))
    with pytest.raises(NotAFlow):
        TickLog.open(Location(tmp_path / "missing"))
    write_deltalake(str(tmp_path / "other"), pa.table({"a": [1]}))
    with pytest.raises(NotAFlow, match="not a flow's tick log"):
        TickLog.open(Location(tmp_path / "other"))


def test_newer_formats_are_refused(tmp_path: Path) -> None:
    TickLog.create(Location(tmp_path), 7, {})
    with pytest.raises(NewerFormat, match="has format 7, this version knows formats up to 6"):
        TickLog.open(Location(tmp_path), newest_format=6)
    assert TickLog.open(Location(tmp_path), newest_format=7).entries == []


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_lost_checkpoint_is_made_again_from_the_commits(
    is_cut: bool, place: Location, tmp_path: Path
) -> None:
    log = TickLog.create(place, 1, {})
    for tick in range(40):
        log.append("commit", tick, 1, {})
    files = tmp_path / "ticks" / "_delta_log"
    for checkpoint in list(files.glob("*.checkpoint.parquet")):
        content = checkpoint.read_bytes()
        checkpoint.unlink()
        if is_cut:
            checkpoint.write_bytes(content[: len(content) // 2])
    again = TickLog.open(place)
    assert again.entries == log.entries
    assert [each.name for each in files.glob("*.checkpoint.parquet")] == [
        f"{40:020d}.checkpoint.parquet"
    ]
    again.append("commit", 40, 1, {})
    assert len(TickLog.open(place).entries) == 41
    assert DeltaTable(tmp_path / "ticks").to_pyarrow_table().num_rows == 41


@pytest.mark.parametrize("lost", [[5], range(30, 41)])
def test_a_checkpoint_that_commits_cannot_make_is_named(
    lost: Sequence[int], tmp_path: Path
) -> None:
    """One in the middle is gone, or the newest ones: a shorter log would be another one."""
    log = TickLog.create(Location(tmp_path), 1, {})
    for tick in range(40):
        log.append("commit", tick, 1, {})
    files = tmp_path / "_delta_log"
    names = [f"{16:020d}.checkpoint.parquet", f"{32:020d}.checkpoint.parquet"]
    for name in [*names, *(f"{version:020d}.json" for version in lost)]:
        (files / name).unlink()
    before = sorted(each.name for each in files.iterdir())
    with pytest.raises(CorruptStore, match=rf"{names[1]} is gone[\s\S]*restore the flow"):
        TickLog.open(Location(tmp_path))
    assert sorted(each.name for each in files.iterdir()) == before


def test_damage_is_named(tmp_path: Path) -> None:
    log = TickLog.create(Location(tmp_path), 1, {})
    log.append("commit", 1, 1, {})
    file = next(tmp_path.glob("*.parquet"))
    content = file.read_bytes()
    file.write_bytes(content[:50])
    with pytest.raises(CorruptStore, match="can't be read"):
        TickLog.open(Location(tmp_path))
    file.unlink()
    with pytest.raises(CorruptStore, match="can't be read"):
        TickLog.open(Location(tmp_path))
    (tmp_path / "_delta_log" / "00000000000000000001.json").write_text("{nonsense")
    with pytest.raises(CorruptStore):
        TickLog.open(Location(tmp_path))


def test_handles_of_one_log_share_its_entries(tmp_path: Path) -> None:
    log = TickLog.create(Location(tmp_path / "ticks"), 1, {})
    for tick in range(70):
        log.append("commit", tick, 1, {"tick": tick})
    other = TickLog.open(Location(tmp_path / "ticks"))
    assert all(ours is theirs for ours, theirs in zip(log.entries, other.entries, strict=True))
    assert log.entries[0].packed.pack is other.entries[63].packed.pack


def test_a_log_that_is_made_again_shares_nothing_with_the_one_before(tmp_path: Path) -> None:
    old = TickLog.create(Location(tmp_path / "ticks"), 1, {})
    old.append("commit", 1, 1, {"is": "old"})
    shutil.rmtree(tmp_path / "ticks")
    new = TickLog.create(Location(tmp_path / "ticks"), 1, {})
    new.append("commit", 1, 1, {"is": "new"})
    assert [entry.body for entry in (*old.entries, *new.entries)] == [{"is": "old"}, {"is": "new"}]
