"""Recursion: one changed edge, or a hundred, against evaluating all of it.

The same changes go into two flows: one folds them, the other recomputes all rows and compares. Both
emit the same digests. Closures and components are of many moderate parts, none of which is large.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

from bench.machine import Peak, jobs_run
from bench.measure import Plan, Section, progress
from ivm_core import DeltaBatch, IncrementalFlow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from bench.measure import Samples
    from ivm_core import StepSummary

NODES = 46
"""Of one part of the closure's graph: a chain with a chord every seven nodes, 1,035 pairs."""
CHORD = 7
PARTS = 1_000
COMPONENTS, COMPONENT_NODES, COMPONENT_EDGES = 10_000, 40, 100
CLOSURE = "SELECT x, y FROM edge UNION SELECT t.x, e.y FROM closure t JOIN edge e ON t.y = e.x"
LABELS = (
    "SELECT n, MIN(l) AS l FROM (SELECT x AS n, x AS l FROM edge UNION ALL SELECT y, y FROM edge "
    "UNION ALL SELECT e.y, c.l FROM labels c JOIN edge e ON c.n = e.x "
    "UNION ALL SELECT e.x, c.l FROM labels c JOIN edge e ON c.n = e.y) GROUP BY n"
)
BARS = {"one edge in": 10.0, "one edge out": 10.0, "100 edges": 5.0}
BATCHES = 2
"""Rounds in which all rows are recomputed: it takes long, and varies little."""
MEMORY = 2.0
ITERATIONS = re.compile(r"(\d+) iterations|(\d+) to (?:overdelete|rederive|insert)")

Edge = tuple[int, int]


def run(spark: SparkSession, folder: Path, plan: Plan) -> Section:
    """Both graphs, both ways."""
    section = Section("recursion", "recursion: a changed edge against evaluating all of it")
    parts, components = (max(20, int(each * plan.scale)) for each in (PARTS, COMPONENTS))
    closure = _Graph(spark, folder / "closure", "closure", CLOSURE, _closure(spark, parts))
    labels = _Graph(spark, folder / "labels", "labels", LABELS, _components(spark, components))
    source = random.Random(5)
    with closure:
        count = closure.measure(section, "closure")
        for keep in plan.rounds:
            part, node = source.randrange(parts), source.randrange(NODES - 3)
            edge = (part * 1_000 + node, part * 1_000 + node + 3)
            closure.step(section, "one edge in", [edge], [], keep=keep)
            gone = (part * 1_000 + node, part * 1_000 + node + 1)
            closure.step(section, "one edge out", [], [gone], keep=keep)
        section.notes.append(f"closure: {count:,} rows over {parts:,} parts")
        closure.tell(section)
    with labels:
        count = labels.measure(section, "labels")
        for keep in plan.rounds:
            come, go = _changes(components, source)
            labels.step(section, "100 edges", come, go, keep=keep)
        section.notes.append(f"labels: {count:,} nodes in {components:,} components")
        labels.tell(section)
    return section


def _closure(spark: SparkSession, parts: int) -> DataFrame:
    """Every part a chain with chords, in numbers of its own."""
    nodes = spark.range(parts).selectExpr("id * 1000 AS part")
    nodes = nodes.selectExpr("part", f"explode(sequence(0, {NODES - 2})) AS n")
    chain = nodes.selectExpr("part + n AS x", "part + n + 1 AS y")
    chords = nodes.where(f"n % {CHORD} = 0 AND n + {CHORD} < {NODES}")
    return chain.unionAll(chords.selectExpr("part + n AS x", f"part + n + {CHORD} AS y"))


def _components(spark: SparkSession, components: int) -> DataFrame:
    """Every component a ring with edges across it; none twice."""
    rows = spark.range(components * COMPONENT_EDGES)
    part, n = f"(id DIV {COMPONENT_EDGES}) * 1000", f"id % {COMPONENT_EDGES}"
    first, step = f"({n}) % {COMPONENT_NODES}", f"1 + 6 * (({n}) DIV {COMPONENT_NODES})"
    other = f"(({first}) + {step}) % {COMPONENT_NODES}"
    return rows.selectExpr(f"{part} + {first} AS x", f"{part} + {other} AS y")


def _changes(components: int, source: random.Random) -> tuple[list[Edge], list[Edge]]:
    """Fifty edges that come and fifty that go, each in a component of its own."""
    chosen = source.sample(range(components), min(100, components))
    come, go = [], []
    for number, part in enumerate(chosen):
        node = source.randrange(COMPONENT_NODES)
        if number % 2:
            come.append((part * 1_000 + node, part * 1_000 + (node + 3) % COMPONENT_NODES))
        else:
            go.append((part * 1_000 + node, part * 1_000 + (node + 1) % COMPONENT_NODES))
    return come, go


class _Graph:
    """A flow that folds changes and one that recomputes, over the same edges."""

    def __init__(
        self, spark: SparkSession, folder: Path, view: str, sql: str, edges: DataFrame
    ) -> None:
        self._spark = spark
        self._view = view
        self._edges = edges
        self._flows = {
            way: IncrementalFlow.open(folder / way, spark) for way in ("delta", "all rows")
        }
        for flow in self._flows.values():
            flow.register_source("edge", "x BIGINT, y BIGINT")
            flow.register_views({view: sql})
        self._flows["all rows"].force_diff_based()
        self._samples: dict[str, dict[str, Samples]] = {}
        self._edited: set[tuple[Edge, bool]] = set()

    def __enter__(self) -> _Graph:
        return self

    def __exit__(self, *_: object) -> None:
        for flow in self._flows.values():
            flow.close()

    def measure(self, section: Section, name: str) -> int:
        """Load both; the first tick of each evaluates all of it."""
        hydrated = section.sample(f"{name}: all rows, from nothing")
        for way, flow in self._flows.items():
            progress(f"recursion: loading {name}, {way}")
            jobs = jobs_run(self._spark)
            with Peak() as peak:
                summary = hydrated.time(flow.tick, "edge", self._edges)
            told = summary.views[self._view].ways[self._view]
            iterations = _iterations(summary, self._view)
            jobs = jobs_run(self._spark) - jobs
            hydrated.note(
                jobs_an_iteration=jobs / max(1, iterations), peak_mb=peak.bytes / 1_048_576
            )
            progress(f"{name}: {told}")
        return int(summary.views[self._view].rows)

    def step(
        self, section: Section, name: str, come: list[Edge], go: list[Edge], *, keep: bool
    ) -> None:
        """The same change into both flows; the one that recomputes takes part in a few rounds."""
        come = [each for each in come if (each, True) not in self._edited]
        go = [each for each in go if (each, False) not in self._edited]
        self._edited |= {(each, True) for each in come} | {(each, False) for each in go}
        if not come and not go:
            return
        samples = self._samples.setdefault(name, {})
        digests = []
        batch = DeltaBatch.of([*come, *go], weights=[1] * len(come) + [-1] * len(go))
        for way, flow in self._flows.items():
            if way not in samples:
                samples[way] = section.sample(f"{name}, {way}")
            sample = samples[way]
            is_late = way == "all rows" and len(sample.seconds) >= BATCHES
            flow.force_diff_based(way == "all rows" and not is_late)
            jobs = jobs_run(self._spark)
            with Peak() as peak:
                summary = sample.time(flow.tick, "edge", batch, keep=keep and not is_late)
            digests.append(summary.views[self._view].state_digest)
            if keep and not is_late:
                iterations = _iterations(summary, self._view)
                jobs = jobs_run(self._spark) - jobs
                sample.note(
                    iterations=iterations,
                    jobs_an_iteration=jobs / max(1, iterations),
                    peak_mb=peak.bytes / 1_048_576,
                )
        section.check(f"{name}: both ways give the same", digests[0] == digests[1])
        self._judge(section, name)

    def tell(self, section: Section) -> None:
        """Spark's jobs an iteration, and the most memory, of every way."""
        for name, samples in self._samples.items():
            for way, sample in samples.items():
                facts = {each: max(seen) for each, seen in sample.facts.items()}
                section.notes.append(
                    f"{name}, {way}: at most {facts['iterations']:.0f} iterations, "
                    f"{facts['jobs_an_iteration']:.2f} jobs an iteration, "
                    f"{facts['peak_mb']:,.0f} MiB"
                )

    def _judge(self, section: Section, name: str) -> None:
        """Hold what is known so far to the bars; the last call counts."""
        samples = self._samples[name]
        if not all(each.seconds for each in samples.values()):
            return
        mine = f"{name}: all rows / delta"
        section.bars = [bar for bar in section.bars if not bar.name.startswith(f"{name}:")]
        ratio = samples["all rows"].median / samples["delta"].median
        section.bar(mine, ratio, ">=", BARS[name])
        peaks = {way: max(each.facts["peak_mb"]) for way, each in samples.items()}
        memory = peaks["delta"] / peaks["all rows"]
        section.bar(f"{name}: peak memory, delta / all rows", memory, "<=", MEMORY)


def _iterations(summary: StepSummary, view: str) -> int:
    told = summary.views[view].ways[view]
    return sum(int(a or b) for a, b in ITERATIONS.findall(told))
