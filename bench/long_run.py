"""Bar 4: after many ticks neither memory nor the time of a tick has grown."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from bench.machine import heap_used, jobs_run, python_memory
from bench.measure import Plan, Section, progress, size_text
from bench.orders import VIEWS, Trade

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bench.dataset import Datasets

MEMORY_LIMIT = 1.1
TIME_LIMIT = 1.3
WINDOW = 20
"""Memory is first looked at after this many ticks; times are compared over as many."""


def run(spark: SparkSession, datasets: Datasets, plan: Plan) -> Section:
    """One flow with both views, tick after tick."""
    rows = plan.rows[-2] if len(plan.rows) > 1 else plan.largest
    window = min(WINDOW, plan.ticks // 4)
    section = Section("long", f"{plan.ticks} ticks over {size_text(rows)} orders")
    dataset = datasets.of(rows)
    trade = Trade(rows)
    progress("long: hydrating")
    flow = dataset.open_copy("long")
    names = {view.replace(" ", "_").replace("-", "_"): sql for view, sql in VIEWS.items()}
    for name, sql in names.items():
        flow.register_view(name, sql)
    flow.tick(views=list(names))

    every = section.sample(f"tick of {trade.rows} scattered, all {plan.ticks}")
    early = section.sample(f"ticks {window + 1} to {2 * window}")
    late = section.sample(f"the last {window} ticks")
    memory: dict[int, tuple[int, int]] = {}
    for number in range(1, plan.ticks + 1):
        batch = trade.next("scattered").batch()
        before = jobs_run(spark)
        summary = every.time(flow.tick, "orders", batch)
        every.note(
            statements=summary.statements, jobs=jobs_run(spark) - before, commits=summary.commits
        )
        if number % window == 0 or number == plan.ticks:
            memory[number] = (python_memory(), heap_used(spark))
            python, heap = (each / 2**20 for each in memory[number])
            recent = median(every.seconds[-window:])
            progress(
                f"long: tick {number}: {recent:.3f} s a tick, Python {python:.0f} MiB, "
                f"heap {heap:.0f} MiB"
            )
    early.seconds = every.seconds[window : 2 * window]
    late.seconds = every.seconds[-window:]
    progress("long: comparing results")
    for name in names:
        section.check(f"{name} equals its query", flow.check(name).equal)
    flow.close()
    dataset.remove("long")

    first, last = memory[window], memory[plan.ticks]
    after = f"after tick {plan.ticks} / after tick {window}"
    section.bar(f"Python's resident memory {after}", last[0] / first[0], "<=", MEMORY_LIMIT)
    section.bar(f"JVM heap in use {after}", last[1] / first[1], "<=", MEMORY_LIMIT)
    section.bar(f"{late.name} / {early.name}", late.median / early.median, "<=", TIME_LIMIT)
    section.plot(
        "ticks",
        f"{plan.ticks} ticks in a row",
        "tick",
        "seconds",
        {every.name: list(enumerate(every.seconds, 1))},
    )
    section.raw["memory"] = [
        {"tick": tick, "python_bytes": python, "heap_bytes": heap}
        for tick, (python, heap) in memory.items()
    ]
    section.notes.append(
        "memory after tick "
        + "; ".join(
            f"{tick}: Python {python / 2**20:.0f} MiB, heap {heap / 2**20:.0f} MiB"
            for tick, (python, heap) in memory.items()
            if tick in (window, plan.ticks)
        )
    )
    return section
