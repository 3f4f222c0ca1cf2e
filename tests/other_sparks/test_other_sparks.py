"""The same story on a cluster and over Spark Connect comes to the same digests as on a local Spark.

One short story on each every time; longer ones, and workers and executors that are killed in the
middle of a tick, are nightly.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import IncrementalFlow
from tests.faults.long_story import LongStory, compact_often, declare, digests
from tests.other_sparks.living import SLOW
from tests.other_sparks.servers import Cluster, cluster, connect_server, environment
from tests.processes import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

SEED = 11
SHORT, LONG = 2, 12
# one cluster and one server at a time, whoever runs the tests
pytestmark = pytest.mark.xdist_group("other sparks")


def expected(
    folder: Path, spark: SparkSession, steps: int, patch: pytest.MonkeyPatch, *, slow: bool = False
) -> dict[str, Any]:
    """What the story comes to on the test's own Spark, as JSON has it."""
    compact_often(patch)
    with IncrementalFlow.open(folder / "on a local spark", spark) as flow:
        declare(flow)
        LongStory(SEED, steps).go_on(flow)
        if slow:
            flow.register_view("slow", SLOW, hydrate=True)
        found: dict[str, Any] = json.loads(json.dumps(digests(flow)))
        return found


@contextmanager
def begun(folder: Path, url: str, steps: int, *more: str) -> Iterator[subprocess.Popen[str]]:
    """The story in a process of its own, which ends with the test in any case."""
    words = [str(folder / "flow"), str(SEED), str(steps), url, str(folder / "report.json"), *more]
    living = subprocess.Popen(
        [sys.executable, "-m", "tests.other_sparks.living", *words],
        env=environment(folder),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield living
    finally:
        living.kill()
        living.wait(30)


def assert_same(living: subprocess.Popen[str], folder: Path, wanted: dict[str, Any]) -> None:
    _, said = living.communicate(timeout=900)
    assert living.returncode == 0, said[-3000:]
    found = json.loads((folder / "report.json").read_text())
    assert found["digests"] == wanted
    assert all(found["equal"].values()), found["equal"]
    assert found["replay"]
    assert found["replayed"] >= len(wanted)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path / "cluster") as found:
        yield found


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("steps", [SHORT, pytest.param(LONG, marks=pytest.mark.nightly)])
def test_over_spark_connect(
    steps: int, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect_server(tmp_path / "server") as url, begun(tmp_path, url, steps) as living:
        wanted = expected(tmp_path, spark, steps, monkeypatch)
        assert_same(living, tmp_path, wanted)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("steps", [SHORT, pytest.param(LONG, marks=pytest.mark.nightly)])
def test_on_a_cluster(
    steps: int,
    running: Cluster,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with begun(tmp_path, running.url, steps) as living:
        wanted = expected(tmp_path, spark, steps, monkeypatch)
        assert_same(living, tmp_path, wanted)


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("what", ["worker", "executor"])
def test_what_is_killed_in_the_middle_of_a_tick_changes_nothing(
    what: str,
    running: Cluster,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with begun(tmp_path, running.url, LONG, "--slow") as living:
        assert living.stdout is not None
        assert living.stdout.readline().strip() == "begun"
        if what == "worker":
            running.workers[0].kill()
        else:
            running.executors()[0].kill()
        wanted = expected(tmp_path, spark, LONG, monkeypatch, slow=True)
        assert_same(living, tmp_path, wanted)
