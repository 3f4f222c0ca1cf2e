"""A small story that a flow lives through, in this process or in one that is killed on the way."""

from __future__ import annotations

import gc
import sys
import traceback
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ivm_core import DeltaBatch, IncrementalFlow
from ivm_core.engine import maintenance
from ivm_core.store import faults, ticklog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

VIEWS = {
    "large": "SELECT id, k, x FROM facts WHERE x > 1",
    "top": "SELECT k, COUNT(*) AS n, MAX(x) AS m FROM large GROUP BY k",
    "named": "SELECT t.k, n.name, t.n FROM top t JOIN names n ON t.k = n.k",
}
TICKS: dict[int, dict[str, Any]] = {
    1: {"facts": [(1, "a", 10), (2, "b", 20), (3, "a", 30), (4, None, 1)]},
    2: {
        "facts": DeltaBatch.delete_keys([3]) + DeltaBatch.inserts([(5, "b", 5)]),
        "names": [("a", "Ann"), ("b", "Bob")],
    },
    3: {
        "facts": DeltaBatch.upserts([(1, "b", 11), (6, "c", 60)]) + DeltaBatch.delete_keys([2]),
        "names": DeltaBatch.upserts([("c", "Cleo"), ("b", "Ben")]),
    },
    4: {
        "facts": DeltaBatch.delete_keys([6]) + DeltaBatch.inserts([(7, "b", 70)]),
        "names": DeltaBatch.delete_keys(["a"]),
    },
}
LAST = max(TICKS)


class Killed(BaseException):
    """The process would be dead by now."""


def compact_early() -> None:
    """Compact and fold after a few ticks, so that a short story has it too."""
    maintenance.SMALL_FILES = 1
    ticklog.FOLD_EVERY = 4


def declare(flow: IncrementalFlow) -> None:
    flow.register_source("facts", "id INT, k STRING, x INT", primary_key=["id"])
    flow.register_source("names", "k STRING, name STRING", primary_key=["k"])
    for name, sql in VIEWS.items():
        flow.register_view(name, sql)


def tick(flow: IncrementalFlow, number: int) -> None:
    time = datetime(2024, 1, number, tzinfo=UTC)
    summary = flow.tick(TICKS[number], logical_time=time, batch_id=f"batch {number}")
    assert summary.tick == number, summary


def finish(flow: IncrementalFlow) -> None:
    """Whatever of the story is missing."""
    declare(flow)
    for number in TICKS:
        if number > flow.current_tick:
            tick(flow, number)


def told(flow: IncrementalFlow) -> dict[str, Any]:
    """All that a reader can see of it: changes tick by tick, digests, times, rows."""
    commits = flow._engine.history.commits
    return {
        "changes": {
            name: [
                (tick, sorted(map(repr, batch.to_arrow().to_pylist())))
                for tick, batch in flow.watch_output(name, since=0)
            ]
            for name in (*flow.sources, *flow.views)
        },
        "digests": {
            tick: {
                kind: {
                    name: (each["digest"], each["state_digest"], each["rows"])
                    for name, each in body[kind].items()
                }
                for kind in ("sources", "views")
            }
            for tick, body in commits.items()
        },
        "times": {tick: body["logical_time"] for tick, body in commits.items()},
    }


@contextmanager
def killed_at(number: int | None, points: list[str] | None = None) -> Iterator[None]:
    """End what runs in here at the n-th fault point, counted from 0; None: note points only.

    Once dead nothing more is written: every later point, in a `finally` perhaps, raises again.
    Nothing that it had survives it, a flow and its lock least of all.
    """
    passed = points if points is not None else []

    def at_point(name: str) -> None:
        passed.append(name)
        if number is not None and len(passed) > number:
            raise Killed(name)

    faults.on_fault_point = at_point
    try:
        yield
    except Killed as death:
        ended: BaseException | None = death
        while ended is not None:
            traceback.clear_frames(ended.__traceback__)
            ended = ended.__context__
    finally:
        faults.on_fault_point = None
        gc.collect()


def live(place: Path, spark: SparkSession, work: Callable[[IncrementalFlow], None]) -> None:
    """Open the flow and do the work; if it is killed, nothing closes the flow."""
    flow = IncrementalFlow.open(place, spark)
    work(flow)
    flow.close()


if __name__ == "__main__":
    compact_early()
    with IncrementalFlow.open(sys.argv[1]) as opened:
        tick(opened, int(sys.argv[2]))
