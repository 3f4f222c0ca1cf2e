"""Bar 3: the first rows of a view, against Spark writing the same query's result to Delta."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bench.dataset import same_rows
from bench.machine import jobs_run
from bench.measure import Plan, Section, progress, size_text
from bench.orders import VIEWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bench.dataset import Datasets

LIMIT = 1.3
VIEW = "hydrated"


def run(spark: SparkSession, datasets: Datasets, plan: Plan) -> Section:
    """Each view into a flow that holds the orders already, and into a new Delta table, in turn."""
    size = size_text(plan.largest)
    section = Section(
        "hydration", f"Hydration over {size} orders, against Spark writing the result"
    )
    dataset = datasets.of(plan.largest)
    for view, sql in VIEWS.items():
        ticks = section.sample(f"{view}: hydrating tick")
        writes = section.sample(f"{view}: Spark writes the result to Delta")
        digests = set()
        for number, keep in enumerate(plan.rounds):
            progress(f"hydration: {view}, round {number + 1} of {len(plan.rounds)}")
            is_last = number == len(plan.rounds) - 1
            with dataset.open_copy("hydration") as flow:
                flow.register_view(VIEW, sql)
                before = jobs_run(spark)
                summary = ticks.time(partial(flow.tick, views=[VIEW]), keep=keep)
                if keep:
                    ticks.note(
                        statements=summary.statements,
                        jobs=jobs_run(spark) - before,
                        commits=summary.commits,
                        rows_out=summary.rows_out,
                    )
                digests.add(summary.views[VIEW].state_digest)
                target = dataset.folder / "written"
                writes.time(dataset.refresh, view, target, keep=keep)
                if is_last:
                    written = spark.read.format("delta").load(str(target))
                    right = same_rows(flow.snapshot(VIEW), written)
                    section.check(f"{view} equals what Spark wrote", right)
            dataset.remove("hydration")
            dataset.remove("written")
        section.check(f"{view}: every hydration has the same digest", len(digests) == 1)
        section.bar(f"{view}: tick / Spark", ticks.median / writes.median, "<=", LIMIT)
    return section
