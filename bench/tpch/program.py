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
    alone: dict[str, Measured] = {}
    refreshed: dict[str, float] = {}
    for name, sql in texts.items():
        refresh = section.sample(f"{name}: Spark's full refresh")
        for keep in (False, *([True] * plan.refreshes)):
            refresh.time(stock.refresh, name, sql, keep=keep)
        refreshed[name] = refresh.median
        alone[name] = _alone(section, stock, name, sql, plan)
        told = ", ".join(f"{where} {s:.2f} s" for where, s in alone[name].seconds.items())
        progress(f"tpch: {name}, full refresh {refresh.median:.2f} s, {told}")
    for where, limit in LIMITS.items():
        ticks = {name: each.seconds[where] for name, each in alone.items()}
        gains = {name: refreshed[name] / ticks[name] for name in texts}
        mean = geometric_mean(gains.values())
        section.bar(f"{where}: full refresh / tick, geometric mean", mean, ">=", limit)
        fixed = {name: refreshed[name] + each.one_order for name, each in alone.items()}
        slowest = max(texts, key=lambda name: ticks[name] / fixed[name])
        section.bar(
            f"{where}: tick / (full refresh + tick of one order), worst is {slowest}",
            ticks[slowest] / fixed[slowest],
            "<=",
            NO_SLOWER,
        )
    together = _together(section, stock, texts, plan, alone)
    for where, seconds in together.seconds.items():
        gain = sum(refreshed.values()) / seconds
        section.bar(f"{where}: all in one tick, full refreshes / tick", gain, ">=", TOGETHER)
    return section


@dataclass(frozen=True)
class Measured:
    """Ticks of one flow: their median time, and the digests of its views after the last."""

    seconds: dict[Where, float]
    one_order: float
    digests: dict[str, str]


def _alone(section: Section, stock: Stock, name: str, sql: str, plan: Plan) -> Measured:
    copy = f"alone-{name}"
    with stock.open_copy(copy) as flow:
        flow.register_view(name, sql, hydrate=True)
        measured = _ticked(section, flow, Changes(stock.rows, SHARE), name, plan)
    stock.remove(copy)
    return measured


def _ticked(
    section: Section, flow: IncrementalFlow, changes: Changes, name: str, plan: Plan
) -> Measured:
    samples: dict[Where, Samples] = {
        where: section.sample(f"{name}: tick, {where}") for where in LIMITS
    }
    one_order = section.sample(f"{name}: tick, one order")
    for keep in (*([False] * plan.warm_ups), *([True] * plan.refresh_ticks)):
        one_order.time(flow.tick, changes.next("scattered", 1), keep=keep)
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
    section.notes += _ways(name, summary)
    return Measured(
        {where: sample.median for where, sample in samples.items()},
        one_order.median,
        {view: each.state_digest for view, each in summary.views.items()},
    )


def _ways(name: str, summary: StepSummary) -> list[str]:
    """Nodes that were not maintained by rows on the driver, and why."""
    found = []
    for view, each in summary.views.items():
        for node, way in each.ways.items():
            if "low gear" not in way and not way.startswith("skipped"):
                found.append(f"{name}: {node if node != view else view} {way}")
    return found


def _together(
    section: Section,
    stock: Stock,
    texts: dict[str, str],
    plan: Plan,
    alone: dict[str, Measured],
) -> Measured:
    """All views in one flow, with the same changes; both must give what Spark makes of the SQL."""
    with stock.open_copy("together") as flow:
        flow.register_views(texts)
        progress("tpch: hydrating all views in one flow")
        flow.tick()
        found = _ticked(section, flow, Changes(stock.rows, SHARE), "all views", plan)
        told = ", ".join(f"{where} {s:.2f} s" for where, s in found.seconds.items())
        progress(f"tpch: all views in one tick, {told}")
        for name in texts:
            same = alone[name].digests[name] == found.digests[name]
            section.check(f"{name} alone is as among all", same)
        for table in SCHEMAS:
            target = str(stock.folder / "after" / table)
            flow.snapshot(table).write.parquet(target)
            stock.spark.read.parquet(target).createOrReplaceTempView(table)
        for name, sql in texts.items():
            progress(f"tpch: comparing {name} with Spark's result")
            same = same_rows(flow.snapshot(name), stock.spark.sql(sql))
            section.check(f"{name} equals Spark's result", same)
    stock.remove("together")
    return found
