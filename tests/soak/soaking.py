"""A flow that lives long: many ticks, five views, readers and watchers beside it, and what it costs.

    python -m tests.soak.soaking [--ticks 2000] [--place FOLDER]

With a place it goes on where it was stopped; memory and times are then those of what is left.
Prints its figures and ends with 1 if one of them is beyond its limit or a digest differs.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from bench.machine import heap_used, python_memory
from ivm_core import DeltaBatch, IncrementalFlow
from ivm_core.api.stored_rows import StoredRows
from ivm_core.engine.local_spark import local_spark
from ivm_core.model.digest import Digest
from ivm_core.operators.row_identity import digest_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY_LIMIT, TIME_LIMIT = 1.1, 1.3
KEYS, CHANGED, GROUPS = 4_000, 40, 50
KEPT_TICKS, CHECKPOINT_EVERY, STAYS = 50, 50, 3
BY_KEY = "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM facts GROUP BY k"
VIEWS = {
    "large": "SELECT id, k, x FROM facts WHERE x > 500",
    "totals": BY_KEY,
    "named": f"SELECT n.name, t.n, t.s FROM ({BY_KEY}) t JOIN names n ON t.k = n.k",
    "first": "SELECT k, id, x FROM (SELECT k, id, x, row_number() OVER (PARTITION BY k "
    "ORDER BY x DESC, id) AS r FROM facts) WHERE r <= 3",
    "unnamed": "SELECT f.id FROM facts f WHERE NOT EXISTS (SELECT 1 FROM names n WHERE n.k = f.k)",
}


def passing(tick: int) -> range:
    """Rows that come with a tick and go with a later one."""
    return range(KEYS + 10 * tick, KEYS + 10 * tick + 10)


def changes(tick: int) -> dict[str, DeltaBatch]:
    """What a tick brings; it follows from its number alone."""
    draw = random.Random(tick)
    ids = [*(range(KEYS) if tick == 1 else draw.sample(range(KEYS), CHANGED)), *passing(tick)]
    rows = [(each, draw.randrange(GROUPS), draw.randrange(1000)) for each in ids]
    gone = passing(tick - STAYS) if tick > STAYS else []
    facts = DeltaBatch.upserts(rows) + DeltaBatch.delete_keys(list(gone))
    if tick % 7:
        return {"facts": facts}
    key = draw.randrange(GROUPS)
    return {"facts": facts, "names": DeltaBatch.upserts([(key, f"name {tick}")])}


@dataclass
class Watcher:
    """Adds up what one view emits, in a thread of its own."""

    view: str
    start: Digest
    total: Digest = field(default_factory=Digest.zero)
    ticks: int = 0

    def run(self, flow: IncrementalFlow, until: int) -> threading.Thread:
        schema = flow._engine.catalog.schemas()[self.view]
        watch = flow.watch_output(self.view, wait=0.5)
        self.total = self.start

        def look() -> None:
            while watch.since < until and not STOP.is_set():
                for _, batch in watch:
                    self.total += digest_of(batch.to_arrow(), schema)
                    self.ticks += 1

        thread = threading.Thread(target=look, name=f"watch {self.view}")
        thread.start()
        return thread


@dataclass
class ReaderBeside:
    """Reads two views at one tick, again and again: both must be of that tick."""

    place: Path
    reads: int = 0
    wrong: str = ""

    def run(self) -> threading.Thread:
        def read() -> None:
            stored = StoredRows(self.place)
            while not STOP.is_set():
                stored._engine.refresh()
                tick = stored._engine.history.tick
                rows = stored.snapshot("facts", at=tick)[1]
                totals = stored.snapshot("totals", at=tick)[1]
                if (pc.sum(totals["n"]).as_py() or 0) != rows.num_rows:
                    self.wrong = f"tick {tick}: {rows.num_rows} rows"
                self.reads += 1
                STOP.wait(0.5)

        thread = threading.Thread(target=read, name="reader")
        thread.start()
        return thread


STOP = threading.Event()


@dataclass(frozen=True)
class Memory:
    """What both sides hold when nothing is under way."""

    heap: int
    python: int

    @classmethod
    def now(cls, spark: SparkSession) -> Memory:
        """Look."""
        return cls(heap_used(spark), python_memory())

    @property
    def total(self) -> int:
        """In bytes."""
        return self.heap + self.python

    def __str__(self) -> str:
        heap, python = self.heap / 2**20, self.python / 2**20
        return f"{heap + python:,.0f} MB ({heap:,.0f} of it heap, {python:,.0f} Python)"


@dataclass(frozen=True)
class Figures:
    """What a soak came to."""

    ticks: int
    early_ms: float
    late_ms: float
    early: Memory
    late: Memory
    reads: int
    watched: int
    problems: tuple[str, ...]

    def __str__(self) -> str:
        times = f"{self.early_ms:,.0f} ms → {self.late_ms:,.0f} ms ({self.slower:.2f}×)"
        memory = f"{self.early} → {self.late}"
        lines = [
            f"soak of {self.ticks} ticks: tick {times}, memory {memory} ({self.larger:.2f}×), "
            f"{self.reads} reads, {self.watched} watched deltas"
        ]
        return "\n".join([*lines, *(f"  WRONG: {each}" for each in self.problems)])

    @property
    def slower(self) -> float:
        return self.late_ms / self.early_ms

    @property
    def larger(self) -> float:
        return self.late.total / self.early.total

    @property
    def is_well(self) -> bool:
        return not self.problems and self.slower <= TIME_LIMIT and self.larger <= MEMORY_LIMIT


def soak(place: Path, spark: SparkSession, ticks: int) -> Figures:
    """Live up to a tick, with readers and watchers beside it."""
    STOP.clear()
    folder = place.with_name(f"{place.name}-checkpoints")
    times: list[float] = []
    with IncrementalFlow.open(place, spark) as flow:
        flow.register_source("facts", "id INT, k INT, x INT", primary_key=["id"])
        flow.register_source("names", "k INT, name STRING", primary_key=["k"])
        flow.register_views(VIEWS)
        flow.set_retention(ticks=KEPT_TICKS)
        while flow.current_tick < 5:  # warm
            flow.tick(changes(flow.current_tick + 1))
        begun = flow.current_tick
        tenth = begun + max((ticks - begun) // 10, 1)
        states = flow._engine.history.states
        watchers = [Watcher(view, Digest.parse(states[view].digest)) for view in VIEWS]
        readers = [ReaderBeside(place), ReaderBeside(place)]
        threads = [each.run(flow, ticks) for each in watchers]
        threads += [each.run() for each in readers]
        early = Memory.now(spark)
        try:
            for tick in range(begun + 1, ticks + 1):
                started = time.perf_counter()
                flow.tick(changes(tick))
                times.append((time.perf_counter() - started) * 1000)
                if tick % CHECKPOINT_EVERY == 0:
                    flow.checkpoint(folder)
                if tick == tenth:
                    early = Memory.now(spark)
                if tick % 100 == 0:
                    told = f"tick {tick}: {median(times[-50:]):.0f} ms"
                    if tick % 500 == 0:
                        told += f", {Memory.now(spark)}"
                    print(told, file=sys.stderr, flush=True)  # noqa: T201
            for thread in threads[: len(watchers)]:
                thread.join(120)
        finally:
            STOP.set()
            for thread in threads:
                thread.join(30)
        late = Memory.now(spark)
        problems = [each.wrong for each in readers if each.wrong]
        problems += [
            f"what {each.view} emitted adds up to {each.total.hex}"
            for each in watchers
            if each.total.hex != flow._engine.history.states[each.view].digest
        ]
        problems += [f"{view} is not its query" for view in VIEWS if not flow.check(view).equal]
    # a tenth at both ends; the very first ticks are the compiler's
    window = max(len(times) // 10, 5)
    return Figures(
        ticks,
        median(times[window : 2 * window]),
        median(times[-window:]),
        early,
        late,
        sum(each.reads for each in readers),
        sum(each.ticks for each in watchers),
        tuple(problems),
    )


def main() -> int:
    """Soak, and say what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.soaking")
    parser.add_argument("--ticks", type=int, default=2000)
    parser.add_argument("--place", type=Path)
    options = parser.parse_args()
    spark = local_spark("tideview-soak", fast_start=False)
    with tempfile.TemporaryDirectory(prefix="tideview-soak-") as scratch:
        found = soak(options.place or Path(scratch) / "flow", spark, options.ticks)
    print(found)  # noqa: T201
    return 0 if found.is_well else 1


if __name__ == "__main__":
    sys.exit(main())
