"""A flow that is abandoned or killed at random, again and again, is as if it had never been.

Abandoned: in this process a fault point raises, the flow is dropped where it stands with every
handle that it had, and opened again. Killed: a child ends by SIGKILL, at a point or at whatever
moment it is. What recovers from it is abandoned and killed too. A part of a nightly run passes on
its own, so `make nightly` goes on with those that are missing.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from ivm_core import IncrementalFlow
from ivm_core.store import faults
from tests.faults.long_story import (
    LogTail,
    LongStory,
    compact_often,
    declare,
    digests,
    reopened,
    source_rows,
    told,
)
from tests.faults.story import killed_at
from tests.processes import ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

STEPS = 20
ABANDONED_A_PART = 50
ABANDONED_PARTS = 20
KILLED_A_PART = 5
KILLED_PARTS = 10


@pytest.fixture(autouse=True)
def _compacted_often(monkeypatch: pytest.MonkeyPatch) -> None:
    compact_often(monkeypatch)


class Undisturbed:
    """The story as it goes when nobody disturbs it, and how many points each step passes."""

    def __init__(self, place: Path, story: LongStory, spark: SparkSession) -> None:
        self.points: dict[int, list[str]] = {}
        with IncrementalFlow.open(place, spark) as flow:
            declare(flow)
            for number, step in story.steps.items():
                with killed_at(None, self.points.setdefault(number, [])):
                    step.run(flow)
                assert flow.current_tick == number
            self.told = told(flow)
            self.shared = len(flow._engine.history.shared)
        self.digests = self.told["digests"]


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Callable[[LongStory], Undisturbed]:
    """Stories as they go when nobody disturbs them, each lived once."""
    lived: dict[tuple[int, int], Undisturbed] = {}

    def of(story: LongStory) -> Undisturbed:
        key = (story.seed, story.length)
        if key not in lived:
            place = tmp_path_factory.mktemp("undisturbed") / "flow"
            lived[key] = Undisturbed(place, story, spark)
        return lived[key]

    return of


class Disturbed:
    """The same story with a flow that is abandoned on the way."""

    def __init__(
        self, place: Path, story: LongStory, expected: Undisturbed, spark: SparkSession
    ) -> None:
        self.place, self.story, self.expected, self.spark = place, story, expected, spark
        self.abandoned: Counter[str] = Counter()
        self.in_recovery = 0
        with IncrementalFlow.open(place, spark) as flow:
            declare(flow)

    def abandon(self, at: int, work: Callable[[IncrementalFlow], None]) -> bool:
        """Open the flow and work, and leave it at the n-th point; whether it came to that."""
        points: list[str] = []
        began = LogTail.of(self.place)
        with killed_at(at, points):
            work(reopened(self.place, self.spark))
        if len(points) <= at:
            return False
        self.abandoned[points[at]] += 1
        # it was left before what was pending at the start had been finished
        self.in_recovery += began.pending is not None and LogTail.of(self.place) == began
        return True

    def look(self) -> None:
        """Open it again: what was begun is finished now, and all is as it was undisturbed."""
        left = LogTail.of(self.place)
        with reopened(self.place, self.spark) as flow:
            self.as_expected(flow, left)

    def as_expected(self, flow: IncrementalFlow, left: LogTail) -> None:
        tick = flow.current_tick
        if left.pending is None:
            assert tick == left.committed
        else:
            step = self.story.steps[left.pending]
            assert tick == left.pending or (step.is_poisoned and tick == left.committed)
        assert digests(flow) == {at: self.expected.digests[at] for at in range(1, tick + 1)}
        if tick:
            assert source_rows(self.place) == self.story.steps[tick].rows

    def live(self, draw: random.Random, at_least: int) -> None:
        """Every step is disturbed, some more than once, until there were enough."""
        for number, step in self.story.steps.items():
            wanted = -(-(at_least - self.abandoned.total()) // (len(self.story.steps) - number + 1))
            most = len(self.expected.points[number])
            for _ in range(max(1, wanted)):
                # opening takes an epoch, whose points come before those of the step
                if not self.abandon(draw.randrange(most + 8), self.one(number)):
                    break
                if draw.random() < 0.4:
                    self.abandon(draw.randrange(most + 8), lambda flow: None)
                self.look()
            with reopened(self.place, self.spark) as flow:
                if flow.current_tick < number:
                    step.run(flow)
        while self.abandoned.total() < at_least:
            self.abandon(draw.randrange(4), self.one(0))
        self.look()

    def one(self, number: int) -> Callable[[IncrementalFlow], None]:
        def run(flow: IncrementalFlow) -> None:
            if flow.current_tick < number:
                self.story.steps[number].run(flow)
            else:  # the step is done: what is left to be disturbed is being the writer
                flow._engine.begin_writing()

        return run


@pytest.mark.parametrize(
    ("part", "steps", "at_least"),
    [
        pytest.param(0, 4, 6, id="sample"),
        *(
            pytest.param(part, STEPS, ABANDONED_A_PART, marks=pytest.mark.nightly, id=f"{part}")
            for part in range(1, ABANDONED_PARTS + 1)
        ),
    ],
)
def test_a_flow_abandoned_at_random_points_ends_as_if_it_had_not_been(
    part: int,
    steps: int,
    at_least: int,
    tmp_path: Path,
    spark: SparkSession,
    undisturbed: Callable[[LongStory], Undisturbed],
    record_property: Callable[[str, object], None],
) -> None:
    story = LongStory(part, steps)
    expected = undisturbed(story)
    assert expected.shared
    disturbed = Disturbed(tmp_path / "disturbed", story, expected, spark)
    disturbed.live(random.Random(f"abandon {part}"), at_least)
    with reopened(disturbed.place, spark) as flow:
        assert told(flow) == expected.told
        assert all(flow.check(view).equal for view in flow.views)
    found = disturbed.abandoned
    assert found.total() >= at_least
    record_property(
        "covered",
        f"abandoned, part {part:02}: {found.total()} times in {steps} ticks of 5 views, "
        f"{disturbed.in_recovery} of them in a recovery, at {len(found)} kinds of points: "
        f"{', '.join(f'{name} {count}' for name, count in sorted(found.items()))}",
    )


def killed_child(place: Path, story: LongStory, points: int, draw: random.Random) -> str:
    """Let a child live the story until it is killed; where, or nothing if it came to the end.

    `points` is how many are left in the story; half of the children are killed at one of the next.
    """
    told_to = (str(place), str(story.seed), str(story.length))
    command = [sys.executable, "-m", "tests.faults.long_story", *told_to]
    at_point = story.length < STEPS or draw.random() < 0.5
    setting = {faults.KILL_AT: f"any:{draw.randrange(1, min(points, 250))}"} if at_point else {}
    with subprocess.Popen(
        command,
        env=ENVIRONMENT | setting,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        if not at_point and child.stdout is not None:
            child.stdout.readline()
            time.sleep(draw.random() * 8)
            child.send_signal(signal.SIGKILL)
        _, errors = child.communicate(timeout=280)
    assert child.returncode in (0, -signal.SIGKILL), errors
    if child.returncode == 0:
        return ""
    return f"point {setting[faults.KILL_AT]}" if at_point else "moment"


@pytest.mark.parametrize(
    ("part", "steps", "at_least"),
    [
        pytest.param(0, 4, 1, id="sample"),
        *(
            pytest.param(100 + part, 40, KILLED_A_PART, marks=pytest.mark.nightly, id=f"{part}")
            for part in range(1, KILLED_PARTS + 1)
        ),
    ],
)
def test_a_process_killed_at_random_ends_as_if_it_had_not_been(
    part: int,
    steps: int,
    at_least: int,
    tmp_path: Path,
    spark: SparkSession,
    undisturbed: Callable[[LongStory], Undisturbed],
    record_property: Callable[[str, object], None],
) -> None:
    story = LongStory(part, steps)
    expected = undisturbed(story)
    place = tmp_path / "killed"
    disturbed = Disturbed(place, story, expected, spark)
    draw = random.Random(f"kill {part}")
    found = []
    while len(found) < at_least:
        done = LogTail.of(place).committed
        points = sum(len(each) for tick, each in expected.points.items() if tick > done)
        where = killed_child(place, story, points, draw)
        left = LogTail.of(place)
        with IncrementalFlow.open(place, spark, read_only=True) as flow:
            disturbed.as_expected(flow, LogTail(left.committed, None))
        if where:
            found.append(f"{where} in tick {left.pending or left.committed}")
        elif left.committed == steps:
            break
        else:
            pytest.fail(f"the child ended by itself at tick {left.committed}")
    with reopened(place, spark) as flow:
        story.go_on(flow)
        assert told(flow) == expected.told
    assert len(found) >= at_least, "the story is too short for so many kills"
    record_property("covered", f"killed, part {part}: {len(found)} processes: {'; '.join(found)}")
