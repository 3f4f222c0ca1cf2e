"""Others at the same flow while a tick is under way: readers see whole ticks, one writer loses."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import IncrementalFlow, TickConflict
from ivm_core.api.stored_rows import StoredRows
from ivm_core.engine.writer import WriterLock
from ivm_core.store import faults
from tests.faults import story
from tests.faults.long_story import compact_often
from tests.faults.story import killed_at, live
from tests.flow.shop import log_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def rows_of(stored: StoredRows, name: str, at: int | None = None) -> tuple[int, list[str]]:
    tick, table = stored.snapshot(name, at)
    return tick, sorted(map(repr, table.to_pylist()))


def test_a_reader_sees_whole_ticks_at_any_moment(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that opens the flow right then, and one that has been there all the time."""
    compact_often(monkeypatch)
    place = tmp_path / "flow"
    names = ("facts", "names", *story.VIEWS)
    seen: list[tuple[str, dict[str, tuple[int, list[str]]]]] = []
    with IncrementalFlow.open(place, spark) as flow:
        story.declare(flow)
        story.tick(flow, 1)
        staying = IncrementalFlow.open(place, read_only=True)
        watches = {name: staying.watch_output(name, since=0) for name in names}
        watched: dict[str, dict[int, Any]] = {name: {} for name in names}
        is_reading = False

        def at_point(point: str) -> None:
            nonlocal is_reading
            if is_reading:
                return
            is_reading = True
            stored = StoredRows(place)
            seen.append((point, {name: rows_of(stored, name) for name in names}))
            for name, watch in watches.items():
                for tick, batch in watch:
                    assert tick not in watched[name]
                    watched[name][tick] = batch.to_arrow().to_pylist()
            is_reading = False

        faults.on_fault_point = at_point
        try:
            for number in (2, 3, 4):
                story.tick(flow, number)
        finally:
            faults.on_fault_point = None
        at_point("the end")
        for name in names:
            whole = {t: b.to_arrow().to_pylist() for t, b in flow.watch_output(name, since=0)}
            assert watched[name] == whole
    stored = StoredRows(place)
    expected = {(name, at): rows_of(stored, name, at) for name in names for at in range(1, 5)}
    for point, found in seen:
        ticks = {tick for tick, _ in found.values()}
        assert len(ticks) == 1, point
        assert found == {name: expected[name, *ticks] for name in names}, point
    assert {tick for _, found in seen for tick, _ in found.values()} == {1, 2, 3, 4}


def test_of_two_writers_one_gets_a_conflict_and_nothing_is_mixed(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without locks, as on an object store: the second comes in at a point of the first's tick."""
    monkeypatch.setattr(WriterLock, "try_take", lambda lock: True)
    start = tmp_path / "start"
    with IncrementalFlow.open(start, spark) as flow:
        story.declare(flow)
        story.tick(flow, 1)
    points: list[str] = []
    shutil.copytree(start, tmp_path / "rehearsal")
    with killed_at(None, points):
        live(tmp_path / "rehearsal", spark, lambda flow: story.tick(flow, 2))
    entries = [at for at, name in enumerate(points) if name == "before:ticklog.commit"]
    epoch, intent, commit = entries[:3]
    for number in (epoch + 3, intent, intent + 3, (intent + commit) // 2, commit):
        place = tmp_path / str(number)
        shutil.copytree(start, place)
        first = IncrementalFlow.open(place, spark)
        passed: list[str] = []

        def come_in(name: str, at: int = number, place: Path = place, passed: Any = passed) -> None:
            passed.append(name)
            if len(passed) == at + 1:
                faults.on_fault_point = None
                with IncrementalFlow.open(place, spark) as second:
                    second.tick("facts", [(99, "b", 990)])

        faults.on_fault_point = come_in
        try:
            with pytest.raises(TickConflict) as caught:
                story.tick(first, 2)
        finally:
            faults.on_fault_point = None
        had_begun = number > intent
        assert ("finishes tick 2" in str(caught.value)) == had_begun, points[number]
        first.close()
        with IncrementalFlow.open(place, spark) as flow:
            ticks = [tick for kind, tick in log_of(flow) if kind == "commit"]
            assert ticks == ([1, 2, 3] if had_begun else [1, 2]), points[number]
            keys = {row["id"] for row in flow.snapshot("facts").collect()}
            assert keys == ({1, 2, 4, 5, 99} if had_begun else {1, 2, 3, 4, 99}), points[number]
            assert all(flow.check(view).equal for view in flow.views), points[number]
        shutil.rmtree(place)
