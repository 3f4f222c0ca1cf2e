"""Sessions that come and go leave nothing behind: no objects, threads, open files, folders."""

from __future__ import annotations

import gc
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from ivm_core import Session
from ivm_core.engine.core import Engine
from ivm_core.engine.gears import Gears

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = """
.decl a(x: number) .input a
.decl b(x: number) .output b
b(x + 1) :- a(x), !a(-x).
"""
WARM = 2
MOST_HEAP = 64 << 20
"""Bytes that Java's heap may have grown by; what it keeps of statements it has seen is less."""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of other tests that run at the same time are elsewhere."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def one_life(spark: SparkSession) -> None:
    with Session.create(PROGRAM, spark=spark) as session:
        session.insert("a", [(1,), (2,), (-2,)])
        assert session.step_async().result()["b"] == [((2,), 1)]
        session.remove("a", [(1,)])
        assert session.step()["b"] == [((2,), -1)]


def left() -> tuple[int, int, set[str], int]:
    """Objects, threads, folders and open files."""
    gc.collect()
    alive = [each for each in gc.get_objects() if isinstance(each, Session | Engine | Gears)]
    folders = {each.name for each in Path(tempfile.gettempdir()).glob("tideview-session-*")}
    return len(alive), threading.active_count(), folders, psutil.Process().num_fds()


def used_heap(spark: SparkSession) -> int:
    java = spark.sparkContext._jvm.java.lang  # type: ignore[union-attr]
    for _ in range(3):
        # what Spark holds weakly goes once its cleaner, a thread of its own, has come by
        java.System.gc()
        time.sleep(1)
    runtime = java.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


def lives_leave_nothing(spark: SparkSession, count: int) -> int:
    for _ in range(WARM):
        one_life(spark)
    objects, threads, folders, files = left()
    heap = used_heap(spark)
    for _ in range(count):
        one_life(spark)
    after = left()
    assert after[0] <= objects
    assert after[1] <= threads
    assert after[2] == folders == set()
    assert after[3] <= files + 2  # a connection to Java that is being closed
    return used_heap(spark) - heap


def test_a_few_sessions_leave_nothing_behind(spark: SparkSession) -> None:
    lives_leave_nothing(spark, 2)


@pytest.mark.nightly
def test_many_sessions_leave_nothing_behind(
    spark: SparkSession, record_property: pytest.RecordProperty
) -> None:
    grown = lives_leave_nothing(spark, 200)
    record_property("covered", f"200 sessions: Java's heap grew by {grown / (1 << 20):.1f} MiB")
    assert grown < MOST_HEAP
