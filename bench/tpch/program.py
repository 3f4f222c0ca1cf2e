"""TPC-H: every query as a view, ticks of a small change against Spark's full refresh.

A view is measured in a flow of its own, and at last all of them in one flow and one tick.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from statistics import geometric_mean
from typing import TYPE_CHECKING

from pyarrow import parquet

from bench.dataset import copy_of, same_rows
from bench.machine import jobs_run
from bench.measure import Samples, Section, progress
from bench.tpch.changes import Changes, Where
from bench.tpch.generate import tables
from bench.tpch.queries import queries
from bench.tpch.schema import PRIMARY_KEYS, SCHEMAS
from ivm_core import IncrementalFlow

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from bench.measure import Plan
    from ivm_core import StepSummary

SHARE = 0.001
LIMITS: dict[Where, float] = {"clustered": 5.0, "scattered": 2.5}
TOGETHER = 8.0
NO_SLOWER = 1.0


@dataclass
class Stock:
    """The tables of one scale: for Spark as Delta tables, and in a flow."""

    spark: SparkSession
    folder: Path
    rows: dict[str, pa.Table]

    def delta_table(self, name: str) -> str:
        """Where Spark's copy of a table is."""
        return str(self.folder / "delta" / name)

    def load(self) -> None:
        """Write both copies."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, table in self.rows.items():
            progress(f"tpch: writing {name}, {table.num_rows} rows")
            # by way of one file, which Spark reads and writes in a few large parts: a table made
            # from rows on the driver would have hundreds of small ones, and slow its refreshes
            whole = str(self.folder / f"{name}.parquet")
            parquet.write_table(table, whole)
            frame = self.spark.read.schema(SCHEMAS[name]).parquet(whole)
            frame.write.format("delta").save(self.delta_table(name))
            os.remove(whole)
        with IncrementalFlow.open(self.folder / "flow", self.spark) as flow:
            for name, schema in SCHEMAS.items():
                flow.register_source(name, schema, primary_key=list(PRIMARY_KEYS[name]))
            for name in self.rows:
                progress(f"tpch: loading {name} into a flow")
                flow.tick(name, self.spark.read.format("delta").load(self.delta_table(name)))

    def open_copy(self, name: str) -> IncrementalFlow:
        """A flow of its own that has the tables and no view yet."""
        return IncrementalFlow.open(copy_of(self.folder / "flow", self.folder / name), self.spark)

    def remove(self, name: str) -> None:
        """Give back the room of a copy."""
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def refresh(self, name: str, sql: str) -> None:
        """Spark's full refresh of a view into Delta."""
        for table in SCHEMAS:
            frame = self.spark.read.format("delta").load(self.delta_table(table))
            frame.createOrReplaceTempView(table)
        target = str(self.folder / "refreshed" / name)
        self.spark.sql(sql).write.format("delta").mode("overwrite").save(target)


def run(spark: SparkSession, folder: Path, plan: Plan) -> Section:
    """Each view alone, then all together."""
    section = Section("tpch", f"TPC-H at scale {plan.scale:g}, {SHARE:.1%} of the orders changed")
    progress(f"tpch: generating scale {plan.scale:g}")
    stock = Stock(spark, folder, tables(plan.scale))
    stock.load()
    texts = {
        name: sql
        for name, sql in queries(plan.scale).items()
        if not plan.queries or name in plan.queries
    }
    gains: dict[Where, dict[str, float]] = {"clustered": {}, "scattered": {}}
    refreshed: dict[str, float] = {}
    for name, sql in texts.items():
        refresh = section.sample(f"{name}: Spark's full refresh")
        for keep in (False, *([True] * plan.refreshes)):
            progress(f"tpch: {name}, full refresh")
            refresh.time(stock.refresh, name, sql, keep=keep)
        refreshed[name] = refresh.median
        for where, seconds in _alone(section, stock, name, sql, plan).items():
            gains[where][name] = refresh.median / seconds
    for where, limit in LIMITS.items():
        found = gains[where]
        section.bar(
            f"{where}: full refresh / tick, geometric mean",
            geometric_mean(found.values()),
            ">=",
            limit,
        )
        worst = min(found, key=lambda name: found[name])
        section.bar(
            f"{where}: full refresh / tick, worst is {worst}", found[worst], ">=", NO_SLOWER
        )
    for where, seconds in _together(section, stock, texts, plan).items():
        gain = sum(refreshed.values()) / seconds
        section.bar(f"{where}: all in one tick, full refreshes / tick", gain, ">=", TOGETHER)
    return section


def _alone(section: Section, stock: Stock, name: str, sql: str, plan: Plan) -> dict[Where, float]:
    progress(f"tpch: {name}, hydrating")
    copy = f"alone-{name}"
    changes = Changes(stock.rows, SHARE)
    with stock.open_copy(copy) as flow:
        flow.register_view(name, sql, hydrate=True)
        seconds = _ticked(section, flow, changes, name, plan)
        section.check(f"{name} equals its query", flow.check(name).equal)
        if plan.is_compared_plainly:
            section.check(f"{name} equals Spark's result", _is_sparks(stock, flow, name, sql))
    stock.remove(copy)
    return seconds


def _ticked(
    section: Section, flow: IncrementalFlow, changes: Changes, name: str, plan: Plan
) -> dict[Where, float]:
    samples: dict[Where, Samples] = {
        where: section.sample(f"{name}: tick, {where}") for where in LIMITS
    }
    for keep in (False, *([True] * plan.refresh_ticks)):
        for where, sample in samples.items():
            batch = changes.next(where)
            before = jobs_run(flow.spark)
            summary = sample.time(flow.tick, batch, keep=keep)
            if keep:
                sample.note(
                    statements=summary.statements,
                    jobs=jobs_run(flow.spark) - before,
                    commits=summary.commits,
                )
    for where, sample in samples.items():
        progress(f"tpch: {name}, {where}: {sample.median:.2f} s")
    section.notes += _ways(name, summary)
    return {where: sample.median for where, sample in samples.items()}


def _ways(name: str, summary: StepSummary) -> list[str]:
    """Nodes that were not maintained by rows on the driver, and why."""
    found = []
    for view, each in summary.views.items():
        for node, way in each.ways.items():
            if "low gear" not in way and not way.startswith("skipped"):
                found.append(f"{name}: {node if node != view else view} {way}")
    return found


def _together(
    section: Section, stock: Stock, texts: dict[str, str], plan: Plan
) -> dict[Where, float]:
    changes = Changes(stock.rows, SHARE)
    with stock.open_copy("together") as flow:
        flow.register_views(texts)
        progress("tpch: hydrating all views in one flow")
        flow.tick()
        found = _ticked(section, flow, changes, "all views", plan)
        for name in texts:
            section.check(f"{name} of all equals its query", flow.check(name).equal)
    stock.remove("together")
    return found


def _is_sparks(stock: Stock, flow: IncrementalFlow, name: str, sql: str) -> bool:
    """Whether the view is what Spark makes of the user's text over the sources as they are."""
    for table in SCHEMAS:
        flow.snapshot(table).createOrReplaceTempView(table)
    return same_rows(flow.snapshot(name), stock.spark.sql(sql))
