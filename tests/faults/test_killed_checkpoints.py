"""A checkpoint or restore that is killed: the checkpoints before stay, an empty flow is usable."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from datetime import date
from typing import TYPE_CHECKING

import pytest

from ivm_core import IncrementalFlow
from ivm_core.store import checkpoint_folder, faults
from ivm_core.store.checkpoint_folder import CheckpointFolder
from ivm_core.store.location import Location
from tests.faults import story
from tests.faults.story import killed_at, live, told
from tests.processes import ENVIRONMENT

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from pyspark.sql import SparkSession


def named(flow: IncrementalFlow) -> dict[str, Any]:
    said = told(flow)
    said.pop("changes")  # the digests have them
    return said


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """A flow of two ticks with both kinds of checkpoint, and the same flow after the third."""
    folder = tmp_path_factory.mktemp("killed")
    with IncrementalFlow.open(folder / "flow", spark) as flow:
        story.declare(flow)
        story.tick(flow, 1)
        story.tick(flow, 2)
        flow.checkpoint(folder / "delta")
        flow.checkpoint_full(folder / "full")
        story.tick(flow, 3)
    return folder


def made(flow: IncrementalFlow, folder: Path) -> None:
    """The next checkpoint in a folder."""
    (flow.checkpoint_full if folder.name == "full" else flow.checkpoint)(folder)


@pytest.mark.parametrize("kind", ["delta", "full"])
def test_a_checkpoint_that_is_killed_leaves_the_one_before(
    kind: str,
    place: Path,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points: list[str] = []
    rehearsal = shutil.copytree(place / kind, tmp_path / "rehearsal" / kind)
    with killed_at(None, points):
        live(place / "flow", spark, lambda flow: made(flow, rehearsal))
    own = [at for at, name in enumerate(points) if "checkpoint" in name]
    assert {points[at] for at in own} == {
        f"{when}:checkpoint.{what}" for when in ("before", "after") for what in ("part", "manifest")
    }
    for number in [*own[:-3:4], *own[-3:]]:
        folder = shutil.copytree(place / kind, tmp_path / str(number) / kind)
        with killed_at(number):
            live(place / "flow", spark, lambda flow, folder=folder: made(flow, folder))
        whole = CheckpointFolder(Location(folder)).chain()
        is_done = points[number] == "after:checkpoint.manifest"
        assert [each.tick for each in whole] == ([2, 3] if is_done else [2]), points[number]
        for each in whole:
            CheckpointFolder(Location(folder)).verify(each.parts)
        left = set((folder / "parts").iterdir())
        for each in left:
            os.utime(each, (1, 1))
        monkeypatch.setattr(checkpoint_folder, "ABANDONED_SECONDS", 60.0)
        live(place / "flow", spark, lambda flow, folder=folder: made(flow, folder))
        newest = CheckpointFolder(Location(folder)).chain()[-1]
        assert newest.tick == 3
        # what the killed one left is gone
        assert len(set((folder / "parts").iterdir())) == newest.number


@pytest.mark.parametrize("kind", ["full", pytest.param("delta", marks=pytest.mark.nightly)])
def test_a_restore_that_is_killed_leaves_an_empty_flow_or_a_whole_one(
    kind: str, place: Path, tmp_path: Path, spark: SparkSession
) -> None:
    points: list[str] = []
    with killed_at(None, points):
        live(tmp_path / "whole", spark, lambda flow: flow.restore(place / kind))
    with IncrementalFlow.open(tmp_path / "whole", spark) as flow:
        expected = named(flow)
    done = len(points) - 1 - points[::-1].index("after:ticklog.commit")
    # nothing happens between the point after a write and the next; of the others some a day
    befores = [at for at, name in enumerate(points) if name.startswith("before:")]
    today = date.today().toordinal()
    for number in (*befores[today % 4 :: 4], done):
        folder = tmp_path / str(number)
        with killed_at(number):
            live(folder, spark, lambda flow: flow.restore(place / kind))
        with IncrementalFlow.open(folder, spark) as flow:
            assert flow.current_tick == (2 if number >= done else 0), points[number]
            if number < done:
                assert not flow.sources
                if number % 3:
                    flow.restore(place / kind)
                else:  # or it becomes another flow, which has nothing of the one that was begun
                    story.declare(flow)
                    story.tick(flow, 1)
                    continue
            assert named(flow) == expected, points[number]
            story.tick(flow, 3)
            assert not (folder / "restoring").exists()
        shutil.rmtree(folder)


def test_a_process_that_is_killed_while_it_restores(
    place: Path, tmp_path: Path, spark: SparkSession
) -> None:
    script = (
        "import sys\nfrom ivm_core import IncrementalFlow\n"
        "with IncrementalFlow.open(sys.argv[1]) as flow:\n    flow.restore(sys.argv[2])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "flow"), str(place / "full")],
        env=ENVIRONMENT | {faults.KILL_AT: "before:restore.trace:3"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with IncrementalFlow.open(tmp_path / "flow", spark) as flow:
        assert flow.restore(place / "full").tick == 2
        story.tick(flow, 3)
        assert all(flow.check(view).equal for view in flow.views)
