"""A long random story of a flow with five views, and a model that knows what must be there.

Every step is one tick: changes of two sources, now and then for some of the views only, or other
SQL for a view; some are preceded by a batch that a view fails on. What a step does depends on the
seed and its number alone, so a process that was killed goes on with the same story. Run as a
program it lives the story to its end: `python -m tests.faults.long_story PLACE SEED STEPS`.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from ivm_core import DeltaBatch, IncrementalFlow, TickFailed
from ivm_core.api.stored_rows import StoredRows
from ivm_core.engine import maintenance
from ivm_core.store import owned_table, ticklog

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

BY_KEY = "SELECT k, COUNT(*) AS n, SUM(x) AS s, MAX(x) AS m FROM facts GROUP BY k"
LARGE = "SELECT id, k, x, 100 / (x - 1013) AS q FROM facts WHERE x > "
VIEWS = {
    "large": f"{LARGE}20",
    "totals": BY_KEY,
    "named": f"SELECT n.name, t.n, t.s, t.m FROM ({BY_KEY}) t JOIN names n ON t.k = n.k",
    "first": "SELECT k, id, x FROM (SELECT k, id, x, row_number() OVER (PARTITION BY k "
    "ORDER BY x DESC) AS r FROM large) WHERE r <= 2",
    "unnamed": "SELECT f.id FROM facts f WHERE NOT EXISTS (SELECT 1 FROM names n WHERE n.k = f.k)",
}
KEYS = ("a", "b", "c", "d", None)
POISON = (-1, "a", 1013)  # the view large divides by zero on it
Rows = dict[str, dict[Any, tuple[Any, ...]]]


def compact_often(patch: Any = None) -> None:
    """Compact, fold and checkpoint after a few ticks; `patch` is pytest's monkeypatch."""
    settings = (
        (maintenance, "SMALL_FILES", 2),
        (ticklog, "FOLD_EVERY", 4),
        (owned_table, "CHECKPOINT_EVERY", 5),
    )
    for module, name, value in settings:
        if patch is None:
            setattr(module, name, value)
        else:
            patch.setattr(module, name, value)


@dataclass(frozen=True)
class Step:
    """One tick of the story, and the rows of the sources after it."""

    number: int
    batches: dict[str, DeltaBatch]
    rows: Rows
    views: list[str] | None = None
    large_above: int | None = None
    is_poisoned: bool = False

    def run(self, flow: IncrementalFlow) -> None:
        """Do it; the flow is at the tick before."""
        if self.large_above is not None:
            report = flow.alter_view("large", f"{LARGE}{self.large_above}")
            assert report.tick == self.number, report
            return
        if self.is_poisoned:
            with pytest.raises(TickFailed, match="DIVIDE_BY_ZERO"):
                flow.tick("facts", [POISON])
        time = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=self.number)
        summary = flow.tick(
            self.batches, views=self.views, logical_time=time, batch_id=f"step {self.number}"
        )
        assert summary.tick == self.number, summary


@dataclass
class LongStory:
    """The steps of one seed."""

    seed: int
    length: int
    steps: dict[int, Step] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows: Rows = {"facts": {}, "names": {}}
        above = 20
        for number in range(1, self.length + 1):
            draw = random.Random(f"{self.seed}/{number}")
            # a view can be given other SQL at the newest frontier only
            alters = number > 2 and draw.random() < 0.15
            if alters:
                above = draw.choice([each for each in (5, 20, 40) if each != above])
                self.steps[number] = Step(number, {}, rows, large_above=above)
                continue
            rows = {name: dict(found) for name, found in rows.items()}
            batches = {"facts": _facts(draw, rows["facts"])}
            if draw.random() < 0.5:
                batches["names"] = _names(draw, rows["names"])
            some = draw.sample(sorted(VIEWS), 2) if draw.random() < 0.15 else None
            self.steps[number] = Step(
                number, batches, rows, some, is_poisoned=number > 1 and draw.random() < 0.1
            )

    def go_on(self, flow: IncrementalFlow) -> None:
        """Whatever is missing."""
        for number, step in self.steps.items():
            if number > flow.current_tick:
                step.run(flow)


def _facts(draw: random.Random, rows: dict[Any, tuple[Any, ...]]) -> DeltaBatch:
    gone = draw.sample(sorted(rows), min(len(rows), draw.randrange(4)))
    for key in gone:
        del rows[key]
    put = {}
    for _ in range(draw.randrange(1, 9)):
        key = draw.randrange(60)
        if key not in gone:
            put[key] = (key, draw.choice(KEYS), draw.choice([1, 7, 14, 22, 22, 30, 45, 60]))
    rows |= put
    return DeltaBatch.delete_keys(gone) + DeltaBatch.upserts(list(put.values()))


def _names(draw: random.Random, rows: dict[Any, tuple[Any, ...]]) -> DeltaBatch:
    key = draw.choice(KEYS[:-1])
    if key in rows and draw.random() < 0.5:
        del rows[key]
        return DeltaBatch.delete_keys([key])
    rows[key] = (key, draw.choice(["Ann", "Bob", "Cleo"]))
    return DeltaBatch.upserts([rows[key]])


def declare(flow: IncrementalFlow) -> None:
    """What the flow is made of; again it is nothing."""
    flow.register_source("facts", "id INT, k STRING, x INT", primary_key=["id"])
    flow.register_source("names", "k STRING, name STRING", primary_key=["k"])
    if set(flow.views) != set(VIEWS):
        flow.register_views(VIEWS)


def reopened(place: Path, spark: SparkSession | None = None) -> IncrementalFlow:
    """Open the flow; a killed tick that a view fails on is aborted by that, and told."""
    try:
        return IncrementalFlow.open(place, spark)
    except TickFailed as error:
        if "DIVIDE_BY_ZERO" not in str(error):
            raise
    return IncrementalFlow.open(place, spark)


# --- what must be there ---


@dataclass(frozen=True)
class LogTail:
    """The tick log as another Delta reader sees it: the last tick, and one that was begun."""

    committed: int
    pending: int | None

    @classmethod
    def of(cls, place: Path) -> LogTail:
        table = DeltaTable(place / "ticks").to_pyarrow_table(columns=["seq", "kind", "tick"])
        committed, pending = 0, None
        for entry in table.sort_by("seq").to_pylist():
            if entry["kind"] == "commit":
                committed, pending = entry["tick"], None
            elif entry["kind"] == "intent":
                pending = entry["tick"]
            elif entry["kind"] == "abort":
                pending = None
        return cls(committed, pending)


def digests(flow: IncrementalFlow) -> dict[int, Any]:
    """Digest of every delta and state, tick by tick, shared nodes included."""
    return {
        tick: {
            kind: {
                name: (each["digest"], each["state_digest"], each["rows"])
                for name, each in body.get(kind, {}).items()
            }
            for kind in ("sources", "shared", "views")
        }
        for tick, body in flow._engine.history.commits.items()
    }


def told(flow: IncrementalFlow) -> dict[str, Any]:
    """All that a reader can see: every change of everything, and all digests."""
    changes = {
        name: [
            (tick, sorted(map(repr, batch.to_arrow().to_pylist())))
            for tick, batch in flow.watch_output(name, since=0)
        ]
        for name in (*flow.sources, *flow.views)
    }
    return {"changes": changes, "digests": digests(flow)}


def source_rows(place: Path) -> Rows:
    """The rows of the sources, by key."""
    stored = StoredRows(place)
    found: Rows = {}
    for name in ("facts", "names"):
        rows = [tuple(row.values()) for row in stored.snapshot(name)[1].to_pylist()]
        assert len({row[0] for row in rows}) == len(rows), f"a key of {name} is there twice"
        found[name] = {row[0]: row for row in rows}
    return found


if __name__ == "__main__":
    compact_often()
    with reopened(sys.argv[1]) as opened:  # type: ignore[arg-type]
        declare(opened)
        opened.spark.sql("SELECT 1").collect()
        print("ready", flush=True)  # noqa: T201
        LongStory(int(sys.argv[2]), int(sys.argv[3])).go_on(opened)
