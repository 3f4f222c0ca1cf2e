"""One writer at a time: the second gets TickConflict, and nothing is ever mixed."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ivm_core import IncrementalFlow, TickConflict
from ivm_core.engine import core
from ivm_core.engine.writer import WriterLock
from tests.flow.shop import assert_exact, declare_shop, log_of, rows
from tests.processes import ENVIRONMENT

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

WRITE_ELSEWHERE = """
import sys
from ivm_core import IncrementalFlow, TickConflict

flow = IncrementalFlow.open(sys.argv[1])
assert flow.current_tick == 1
try:
    flow.tick("customers", [("eve", "Bonn")])
except TickConflict as conflict:
    print("conflict")
print("ready", flush=True)
sys.stdin.readline()
assert flow.tick("customers", [("eve", "Bonn")], views=[]).tick == 3
"""


def test_a_second_handle_gets_a_conflict_until_the_first_is_closed(
    place: Path, spark: SparkSession
) -> None:
    first = IncrementalFlow.open(place, spark)
    declare_shop(first)
    second = IncrementalFlow.open(place, spark)
    first.tick("orders", [(1, "ann", 20)])
    before = log_of(first)
    with pytest.raises(TickConflict, match="another writer") as caught:
        second.tick("orders", [(1, "bob", 30)])
    assert "reopen" in caught.value.fix
    with pytest.raises(TickConflict):
        second.register_source("more", "x INT")
    assert log_of(first) == before
    assert second.current_tick == 1
    assert rows(second.snapshot("large")) == [(1, "ann")]
    first.close()
    assert second.tick("orders", [(2, "bob", 30)]).tick == 2
    second.close()
    with IncrementalFlow.open(place, spark) as third:
        assert rows(third.snapshot("large")) == [(1, "ann"), (2, "bob")]
        assert_exact(third)


def test_a_flow_that_is_dropped_lets_others_write(place: Path, spark: SparkSession) -> None:
    first = IncrementalFlow.open(place, spark)
    first.register_source("s", "x INT")
    del first
    with IncrementalFlow.open(place, spark) as second:
        assert second.tick("s", [(1,)]).tick == 1


def test_another_process_gets_a_conflict(place: Path, spark: SparkSession) -> None:
    with IncrementalFlow.open(place, spark) as flow:
        declare_shop(flow)
        flow.tick("customers", [("ann", "Rome")])
        other = subprocess.Popen(
            [sys.executable, "-c", WRITE_ELSEWHERE, str(place)],
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert other.stdout is not None
        assert other.stdout.readline() == "conflict\n"
        assert other.stdout.readline() == "ready\n"
        assert flow.tick("orders", [(1, "ann", 20)]).tick == 2
    other.communicate("go on\n", timeout=120)
    assert other.returncode == 0
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.tick().tick == 4
        assert rows(flow.snapshot("customers")) == [("ann", "Rome"), ("eve", "Bonn")]
        assert rows(flow.snapshot("cities")) == [("Rome", 20)]
        assert_exact(flow, "cities")


@pytest.fixture
def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on an object store, where a stalled writer can't be told from a dead one."""
    monkeypatch.setattr(WriterLock, "try_take", lambda lock: True)


@pytest.mark.usefixtures("without_locks")
def test_without_locks_the_later_epoch_wins(place: Path, spark: SparkSession) -> None:
    stale = IncrementalFlow.open(place, spark)
    declare_shop(stale)
    stale.tick("orders", [(1, "ann", 20)])
    newer = IncrementalFlow.open(place, spark)
    assert newer.tick("orders", [(2, "bob", 30)]).tick == 2
    with pytest.raises(TickConflict):
        stale.tick("orders", [(3, "stale", 40)])
    assert newer.tick("orders", [(4, "eve", 50)]).tick == 3
    assert rows(newer.snapshot("large")) == [(1, "ann"), (2, "bob"), (4, "eve")]
    # having lost, it starts again from what is there, and then the other one has to
    assert stale.tick("orders", [(5, "max", 60)]).tick == 4
    with pytest.raises(TickConflict):
        newer.tick("orders", [(5, "dup", 60)])
    assert newer.tick("orders", [(6, "dan", 70)]).tick == 5
    with IncrementalFlow.open(place, spark) as reader:
        assert rows(reader.snapshot("large").select("id")) == [(1,), (2,), (4,), (5,), (6,)]
        assert_exact(reader)
        assert reader.replay().equal


@pytest.mark.usefixtures("without_locks")
def test_a_writer_that_was_overtaken_in_the_middle_of_a_tick_cannot_commit(
    place: Path, spark: SparkSession
) -> None:
    patch = pytest.MonkeyPatch()
    stalled = IncrementalFlow.open(place, spark)
    declare_shop(stalled)
    stalled.tick("orders", [(1, "ann", 20)])

    class Overtaken(core.ViewEvaluation):
        def run(self) -> core.ViewResult:
            if self.program.name == "totals":
                patch.undo()
                with IncrementalFlow.open(place, spark) as overtaker:
                    overtaker.tick("orders", [(3, "eve", 30)])
            return super().run()

    patch.setattr(core, "ViewEvaluation", Overtaken)
    with pytest.raises(TickConflict):
        stalled.tick("orders", [(2, "bob", 20)])
    newer = IncrementalFlow.open(place, spark)
    assert newer.current_tick == 3
    assert rows(newer.snapshot("large")) == [(1, "ann"), (2, "bob"), (3, "eve")]
    assert rows(newer.snapshot("large", at=2)) == [(1, "ann"), (2, "bob")]
    kinds = [kind for kind, _ in log_of(newer)]
    assert kinds.count("commit") == 3
    assert "abort" not in kinds
    assert_exact(newer)
    assert stalled.tick("orders", [(4, "max", 1)]).tick == 4
    assert_exact(stalled)


def test_two_that_make_the_same_flow_share_it(place: Path, spark: SparkSession) -> None:
    one = IncrementalFlow.open(place, spark)
    two = IncrementalFlow.open(place, spark)
    one.register_source("s", "x INT")
    with pytest.raises(TickConflict):
        two.register_source("t", "x INT")
    two.register_source("s", "x INT")
    assert two.sources == ("s",)
    one.close()
    two.close()
