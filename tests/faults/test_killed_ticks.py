"""A tick that is killed at any durable write is finished by the next start, as if nothing had been.

In this process a fault point raises instead, and the flow is abandoned where it stands; a sample of
the points (all of them in nightly runs) is done for real, with a process that ends by SIGKILL.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import IncrementalFlow
from ivm_core.engine import maintenance
from ivm_core.store import faults, ticklog
from tests.faults import story
from tests.faults.story import killed_at, live, told
from tests.processes import ENVIRONMENT

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

KILLED_TICK = 3


@pytest.fixture(autouse=True)
def _compacted_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "SMALL_FILES", maintenance.SMALL_FILES)
    monkeypatch.setattr(ticklog, "FOLD_EVERY", ticklog.FOLD_EVERY)
    story.compact_early()


class Undisturbed:
    """The story without a kill: what it comes to, and the fault points of its third tick."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.before = folder / "before"
        with IncrementalFlow.open(self.before, spark) as flow:
            story.declare(flow)
            for number in range(1, KILLED_TICK):
                story.tick(flow, number)
        self.points: list[str] = []
        whole = folder / "whole"
        shutil.copytree(self.before, whole)
        with killed_at(None, self.points):
            live(whole, spark, lambda flow: story.tick(flow, KILLED_TICK))
        with IncrementalFlow.open(whole, spark) as flow:
            story.finish(flow)
            assert all(flow.check(view).equal for view in flow.views)
            self.told = told(flow)
        commits = [at for at, name in enumerate(self.points) if name == "after:ticklog.commit"]
        _epoch, self.intent, self.commit = commits[:3]

    def copy(self, place: Path) -> Path:
        shutil.copytree(self.before, place)
        return place


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Undisturbed:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maintenance, "SMALL_FILES", maintenance.SMALL_FILES)
        patch.setattr(ticklog, "FOLD_EVERY", ticklog.FOLD_EVERY)
        story.compact_early()
        return Undisturbed(tmp_path_factory.mktemp("undisturbed"), spark)


def finished(place: Path, spark: SparkSession) -> dict[str, Any]:
    with IncrementalFlow.open(place, spark) as flow:
        story.finish(flow)
        return told(flow)


def test_the_points_cover_every_durable_write_of_a_tick(undisturbed: Undisturbed) -> None:
    """With compaction; what makes a flow and what Spark writes has tests of its own below."""
    missing = set(faults.FAULT_POINTS) - set(undisturbed.points)
    writes = {name.partition(":")[2] for name in missing}
    elsewhere = {"table.create", "table.columns", "ticklog.create", "trace.adopt", "trace.sweep"}
    elsewhere |= {"dedup.fold", "checkpoint.part", "checkpoint.manifest", "publish.file"}
    elsewhere |= {"restore.mark", "restore.trace", "restore.done", "publish.commit"}
    elsewhere |= {"table.checkpoint", "ticklog.sweep", "views.leftovers"}
    assert writes <= elsewhere
    befores = [name for name in undisturbed.points if name.startswith("before:")]
    assert len(befores) * 2 == len(undisturbed.points)


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_tick_killed_at_any_point_ends_as_if_it_had_not_been(
    every: bool, part: int, undisturbed: Undisturbed, tmp_path: Path, spark: SparkSession
) -> None:
    """Between the point after a write and the one before the next nothing happens: one will do.

    Of these one half a day.
    """
    numbers = [
        number
        for number, name in enumerate(undisturbed.points)
        if every
        or (name.startswith("before:") and name != "before:table.draft")
        or number == len(undisturbed.points) - 1
    ]
    if not every:
        numbers = numbers[date.today().toordinal() % 2 :: 2]
    wrong = {}
    for number in numbers[part::4]:
        name = undisturbed.points[number]
        place = undisturbed.copy(tmp_path / str(number))
        with killed_at(number):
            live(place, spark, lambda flow: story.tick(flow, KILLED_TICK))
        with IncrementalFlow.open(place, spark) as flow:
            visible = flow.current_tick
            assert visible == (KILLED_TICK if number >= undisturbed.intent else KILLED_TICK - 1), (
                name
            )
            recovered = flow._engine.history.commits[visible]["recovered"]
            assert recovered == (undisturbed.intent <= number < undisturbed.commit), name
            story.finish(flow)
            if told(flow) != undisturbed.told:
                wrong[number] = name
        shutil.rmtree(place)
    assert not wrong


def some(points: list[int], count: int) -> list[int]:
    """A few of them, others every day."""
    today = date.today().toordinal()
    return [
        points[(today * count + each * len(points) // count) % len(points)] for each in range(count)
    ]


@pytest.mark.parametrize("count", [3, pytest.param(None, marks=pytest.mark.nightly)])
def test_a_process_killed_at_a_point_is_survived(
    count: int | None, undisturbed: Undisturbed, tmp_path: Path, spark: SparkSession
) -> None:
    every = list(range(len(undisturbed.points)))
    for number in every if count is None else some(every, count):
        name = undisturbed.points[number]
        nth = undisturbed.points[: number + 1].count(name)
        place = undisturbed.copy(tmp_path / str(number))
        done = subprocess.run(
            [sys.executable, "-m", "tests.faults.story", str(place), str(KILLED_TICK)],
            env=ENVIRONMENT | {faults.KILL_AT: f"{name}:{nth}"},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, (name, nth, done.stderr)
        assert finished(place, spark) == undisturbed.told, (name, nth)
        shutil.rmtree(place)


@pytest.mark.parametrize("count", [6, pytest.param(None, marks=pytest.mark.nightly)])
def test_a_recovery_that_is_killed_is_recovered_from(
    count: int | None, undisturbed: Undisturbed, tmp_path: Path, spark: SparkSession
) -> None:
    """Killed right before the commit, then at a point of the recovery, then once more."""
    pending = undisturbed.copy(tmp_path / "pending")
    with killed_at(undisturbed.commit - 1):
        live(pending, spark, lambda flow: story.tick(flow, KILLED_TICK))
    points: list[str] = []
    rehearsal = tmp_path / "rehearsal"
    shutil.copytree(pending, rehearsal)
    with killed_at(None, points):
        live(rehearsal, spark, lambda flow: None)
    assert points.count("after:ticklog.commit") == 3
    every = list(range(len(points)))
    for number in every if count is None else some(every, count):
        place = tmp_path / str(number)
        shutil.copytree(pending, place)
        with killed_at(number):
            live(place, spark, lambda flow: None)
        with killed_at(len(points) // 2):
            live(place, spark, lambda flow: None)
        assert finished(place, spark) == undisturbed.told, points[number]
        shutil.rmtree(place)


def test_a_flow_that_is_killed_while_it_is_made_is_made_by_the_next_start(
    tmp_path: Path, spark: SparkSession
) -> None:
    points: list[str] = []
    with killed_at(None, points):
        live(tmp_path / "whole", spark, story.declare)
    assert {"before:ticklog.create", "before:table.create"} <= set(points)
    for number, name in enumerate(points):
        place = tmp_path / str(number)
        with killed_at(number):
            live(place, spark, story.declare)
        with IncrementalFlow.open(place, spark) as flow:
            story.declare(flow)
            assert flow.views == tuple(story.VIEWS), name
            entries = [entry.kind for entry in flow._engine.log.entries]
            assert entries.count("source") == 2, name
            assert entries.count("view") == len(story.VIEWS), name
            assert flow.tick("names", [("a", "Ann")], views=[]).tick == 1


def test_a_first_tick_that_makes_its_tables_and_takes_a_frame_may_be_killed(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Spark writes the batch, and every trace is made on the way."""
    rows = spark.createDataFrame([(1, "a", 10), (2, "b", 20)], "id INT, k STRING, x INT")

    def first(flow: IncrementalFlow) -> None:
        flow.tick("facts", rows)

    declared = tmp_path / "declared"
    live(declared, spark, story.declare)
    whole = tmp_path / "whole"
    shutil.copytree(declared, whole)
    points: list[str] = []
    with killed_at(None, points):
        live(whole, spark, first)
    assert {"before:trace.adopt", "after:trace.adopt", "before:table.create"} <= set(points)
    with IncrementalFlow.open(whole) as flow:
        expected = told(flow)["changes"]
    intent = [at for at, name in enumerate(points) if name == "after:ticklog.commit"][1]
    # every second write one day, the others on the next
    for number in range(2 * (date.today().toordinal() % 2), len(points), 4):
        place = tmp_path / str(number)
        shutil.copytree(declared, place)
        with killed_at(number):
            live(place, spark, first)
        with IncrementalFlow.open(place, spark) as flow:
            assert flow.current_tick == (1 if number >= intent else 0), points[number]
            if not flow.current_tick:
                first(flow)
            assert told(flow)["changes"] == expected, points[number]
        shutil.rmtree(place)
