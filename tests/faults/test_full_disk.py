"""A place that takes nothing more: the tick fails whole, and goes through once there is room.

At every durable write of a tick the disk is full, from there on or for that one write; and for
real, on a small file system of the test's own, where such may be made.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from ivm_core import IncrementalFlow, SparkLost, WriteFailed
from ivm_core.store import faults
from tests.faults import story
from tests.faults.long_story import LogTail, compact_often
from tests.faults.story import killed_at, live, told
from tests.processes import ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

FAILING = 3


@contextmanager
def full_at(number: int, *, once: bool) -> Iterator[None]:
    """The n-th point and, unless it is `once`, all later ones find no room."""
    passed: list[str] = []

    def at_point(name: str) -> None:
        passed.append(name)
        is_full = len(passed) == number + 1 if once else len(passed) > number
        if is_full and name.startswith("before:"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)

    faults.on_fault_point = at_point
    try:
        yield
    finally:
        faults.on_fault_point = None


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_full_disk_fails_the_tick_whole(
    every: int, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    compact_often(monkeypatch)
    before = tmp_path / "before"
    with IncrementalFlow.open(before, spark) as flow:
        story.declare(flow)
        for number in range(1, FAILING):
            story.tick(flow, number)
    points: list[str] = []
    whole = tmp_path / "whole"
    shutil.copytree(before, whole)
    with killed_at(None, points):
        live(whole, spark, lambda flow: story.tick(flow, FAILING))
    with IncrementalFlow.open(whole, spark) as flow:
        story.finish(flow)
        expected = told(flow)
    commit = [at for at, name in enumerate(points) if name == "before:ticklog.commit"][2]
    decides = points.index("before:table.draft", commit)
    chosen = [at for at, name in enumerate(points) if name.startswith("before:")][::every]
    for turn, number in enumerate(chosen):
        place = tmp_path / str(number)
        shutil.copytree(before, place)
        once = turn % 2 == 1
        with IncrementalFlow.open(place, spark) as flow:
            with full_at(number, once=once):
                if number <= decides and not (once and _can_wait(points, number)):
                    with pytest.raises(WriteFailed, match="No space left"):
                        story.tick(flow, FAILING)
                    assert flow.current_tick == FAILING - 1, points[number]
                else:
                    story.tick(flow, FAILING)
            story.finish(flow)
            assert told(flow) == expected, points[number]
        shutil.rmtree(place)


def _can_wait(points: list[str], number: int) -> bool:
    """Whether the tick goes on without it, where there is room again: what only makes reads fast."""
    folds = [name for name in points[: number + 1] if name.endswith(":ticklog.fold")]
    is_folding = bool(folds) and folds[-1].startswith("before:")
    return is_folding or points[number] == "before:table.checkpoint"


def test_a_killed_tick_waits_until_there_is_room(tmp_path: Path, spark: SparkSession) -> None:
    """It is not given up: nobody was told that it failed."""
    place = tmp_path / "flow"
    with IncrementalFlow.open(place, spark) as flow:
        story.declare(flow)
        story.tick(flow, 1)
    points: list[str] = []
    shutil.copytree(place, tmp_path / "rehearsal")
    with killed_at(None, points):
        live(tmp_path / "rehearsal", spark, lambda flow: story.tick(flow, 2))
    commit = [at for at, name in enumerate(points) if name == "before:ticklog.commit"][2]
    with killed_at(commit):
        live(place, spark, lambda flow: story.tick(flow, 2))
    for full in (0, 8, commit):
        with full_at(full, once=full == 8), pytest.raises(WriteFailed, match="No space left"):
            IncrementalFlow.open(place, spark)
        assert LogTail.of(place) == LogTail(1, 2)
        with IncrementalFlow.open(place, spark, read_only=True) as reader:
            assert reader.current_tick == 1
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.current_tick == 2
        story.finish(flow)
        assert all(flow.check(view).equal for view in flow.views)


def test_a_full_disk_fails_what_is_done_in_steps(tmp_path: Path, spark: SparkSession) -> None:
    """Compaction and publication: as it was, or done, table by table."""
    place = tmp_path / "flow"
    with IncrementalFlow.open(place, spark) as flow:
        story.finish(flow)
        rows = {view: sorted(map(repr, flow.snapshot(view).collect())) for view in flow.views}
        flow.set_retention(ticks=1)
        for call in (flow.publish, flow.compact):
            told_so: list[str] = []
            for number in range(0, 60, 4):
                try:
                    with full_at(number, once=False):
                        call()
                except WriteFailed as error:
                    told_so.append(str(error))
                assert flow.verify() == ()
            assert len(told_so) > 1, call
            assert all("what was done until then stays so: No space left" in e for e in told_so)
            call()
        assert flow._engine.layout.source_rows(
            "facts", flow._engine.history.sources["facts"].schema
        ).base_tick
        for view, expected in rows.items():
            assert sorted(map(repr, flow.snapshot(view).collect())) == expected
            assert DeltaTable(place / "published" / view).to_pyarrow_table().num_rows == len(
                expected
            )


def _may_mount(folder: Path) -> bool:
    folder.mkdir(exist_ok=True)
    words = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def test_a_small_file_system_and_a_spark_that_dies(tmp_path: Path, spark: SparkSession) -> None:
    """One child for both: it fills its disk again and again, then kills its Spark in a tick."""
    mounted, kept = tmp_path / "small", tmp_path / "kept"
    command = [sys.executable, "-m", "tests.faults.hard_times", str(mounted / "flow"), str(kept)]
    is_small = _may_mount(mounted)
    if is_small:
        mount = 'mount -t tmpfs -o size=1m none "$0" && exec "$@"'
        command = ["unshare", "-rm", "sh", "-c", mount, str(mounted), *command]
    done = subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    if is_small:
        assert sum(line.startswith("WriteFailed: ") for line in lines) >= 3, lines
    assert lines[-1].startswith(f"{SparkLost.__name__}: Spark ended in the middle of tick"), lines
    left = LogTail.of(kept)
    assert left.pending == left.committed + 1
    with IncrementalFlow.open(kept, spark) as flow:
        assert flow.current_tick == left.pending
        story.finish(flow)
        whole = told(flow)
        assert all(flow.check(view).equal for view in flow.views)
    with IncrementalFlow.open(tmp_path / "undisturbed", spark) as flow:
        story.finish(flow)
        assert whole == told(flow)
