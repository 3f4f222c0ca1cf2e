"""One wide aggregate: sums, averages and counts of forty columns, extremes of some."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from bench.dataset import same_rows
from bench.measure import Plan, Section, progress, size_text
from bench.numbers import below
from bench.ticking import timed_tick
from ivm_core import DeltaBatch, IncrementalFlow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

COLUMNS = 40
EXTREMES = 5
GROUPS = 2_000
CHANGED = 1_000
SCHEMA = "id BIGINT, device BIGINT, " + ", ".join(f"m{n:02d} BIGINT" for n in range(COLUMNS))
_FOLDED = ", ".join(
    f"SUM(m{n:02d}) AS sum_{n:02d}, AVG(m{n:02d}) AS avg_{n:02d}, COUNT(m{n:02d}) AS count_{n:02d}"
    for n in range(COLUMNS)
)
_EXTREMES = ", ".join(
    f"MIN(m{n:02d}) AS min_{n:02d}, MAX(m{n:02d}) AS max_{n:02d}" for n in range(EXTREMES)
)
VIEWS = {
    "sums": f"SELECT device, {_FOLDED} FROM readings GROUP BY device",
    "sums_and_extremes": f"SELECT device, {_FOLDED}, {_EXTREMES} FROM readings GROUP BY device",
}


def run(spark: SparkSession, folder: Path, plan: Plan) -> Section:
    """Each view (quick: the first) in a flow of its own, a thousand readings changed by a tick."""
    rows = plan.rows[-2] if len(plan.rows) > 1 else plan.largest
    section = Section("wide", f"a wide aggregate over {size_text(rows)} rows, {COLUMNS} columns")
    stored = str(folder / "readings")
    progress("wide: writing rows")
    _frame(spark, rows).write.format("delta").save(stored)
    for view, sql in list(VIEWS.items())[: 1 if plan.is_quick else None]:
        progress(f"wide: hydrating {view}")
        flow = IncrementalFlow.open(folder / view, spark)
        flow.register_source("readings", SCHEMA, primary_key=["id"])
        flow.register_view(view, sql)
        readings = spark.read.format("delta").load(stored)
        flow.tick("readings", readings)
        ticks = section.sample(f"{view}: tick of {CHANGED:,}")
        refresh = section.sample(f"{view}: Spark's full refresh")
        for number, keep in enumerate(plan.rounds):
            timed_tick(ticks, flow, "readings", _changed(rows, number), keep=keep)
            if number >= plan.warm_ups - 1 and len(refresh.seconds) < plan.refreshes:
                readings.createOrReplaceTempView("readings")
                write = spark.sql(sql).write.format("delta").mode("overwrite")
                refresh.time(write.save, str(folder / f"{view}-refreshed"), keep=keep)
        flow.snapshot("readings").createOrReplaceTempView("readings")
        right = same_rows(flow.snapshot(view), spark.sql(sql))
        section.check(f"{view} equals Spark's result", right)
        flow.close()
        section.compare(f"{view}: full refresh / tick", refresh.median, ticks.median)
    return section


def _frame(spark: SparkSession, rows: int) -> DataFrame:
    measures = [f"pmod(xxhash64(id, {n}), 100000) AS m{n:02d}" for n in range(COLUMNS)]
    device = f"pmod(xxhash64(id, 100), {GROUPS}) AS device"
    return spark.range(rows).selectExpr("id", device, *measures)


def _changed(rows: int, step: int) -> DeltaBatch:
    """New values for readings anywhere; none is met twice by one batch."""
    numbers = np.arange(step * CHANGED, (step + 1) * CHANGED)
    keys = np.unique(numbers * 7_368_787 % rows)
    columns = {"id": pa.array(keys), "device": pa.array(below(keys, step, GROUPS))}
    for n in range(COLUMNS):
        columns[f"m{n:02d}"] = pa.array(below(keys, 1_000 * (step + 1) + n, 100_000))
    return DeltaBatch.upserts(pa.table(columns))
