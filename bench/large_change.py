"""Nine tenths of the orders change: a tick is then a full refresh, by choice, and says so.

The orders are in a Delta table with a change data feed that the flow follows; Spark refreshes the
same view from the same table. A tick of one changed order is the fixed cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.change import VIEW, following
from bench.dataset import copy_of, same_rows
from bench.measure import Plan, Section, progress, size_text
from bench.orders import VIEWS
from bench.ticking import timed_tick, ways_taken

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from bench.dataset import Dataset, Datasets

LIMIT = 1.0
WARM_UPS, REPEATS = 1, 3
SHARES = {"0.1 %": 1, "1 %": 10, "10 %": 100, "50 %": 500, "90 %": 900}
"""Of a thousand orders so many are changed."""
QUICK_SHARES = ("1 %", "90 %")


def run(spark: SparkSession, datasets: Datasets, plan: Plan) -> Section:
    """Growing shares of the second largest number of orders; the bar is on the last."""
    rows = plan.rows[-2] if len(plan.rows) > 1 else plan.largest
    section = Section("large-change", f"large changes to {size_text(rows)} orders, followed")
    dataset = datasets.of(rows)
    for view in VIEWS:
        _measure(section, spark, dataset, view, plan)
    return section


def _measure(
    section: Section, spark: SparkSession, dataset: Dataset, view: str, plan: Plan
) -> None:
    name = f"large-{view.replace(' ', '-')}"
    orders = copy_of(dataset.delta_table("orders"), dataset.folder / f"{name}-orders")
    feed = "('delta.enableChangeDataFeed' = 'true')"
    spark.sql(f"ALTER TABLE delta.`{orders}` SET TBLPROPERTIES {feed}")
    progress(f"large-change: hydrating {view}")
    flow = following(spark, dataset, view, orders, name)
    refresh = section.sample(f"{view}: Spark's full refresh")
    one = section.sample(f"{view}: tick of one order")
    shares = QUICK_SHARES if plan.is_quick else tuple(SHARES)
    ticks = {share: section.sample(f"{view}: tick of {share}") for share in shares}
    target = str(dataset.folder / f"{name}-refreshed")
    ways: dict[str, str] = {}
    for number in range(WARM_UPS + min(REPEATS, plan.repeats)):
        keep = number >= WARM_UPS
        for share, sample in ticks.items():
            progress(f"large-change: {view}, {share}, round {number + 1}")
            _raise(spark, orders, f"pmod(id, 1000) < {SHARES[share]}")
            summary = timed_tick(sample, flow, keep=keep)
            ways[share] = ways_taken(summary).get(VIEW, "")
        _raise(spark, orders, f"id = {number}")
        timed_tick(one, flow, keep=keep)
        refresh.time(_refresh, dataset.query(view, orders), target, keep=keep)
    expected = dataset.query(view, orders)
    section.check(f"{view} equals Spark's result", same_rows(flow.snapshot(VIEW), expected))
    flow.close()
    fixed = refresh.median + one.median
    for share, sample in ticks.items():
        told = f"{view}, {share}: tick / (full refresh + tick of one order)"
        if share == "90 %":
            section.bar(told, sample.median / fixed, "<=", LIMIT)
        else:
            section.notes.append(f"{told}: {sample.median / fixed:.2f}×, no bar")
        section.notes.append(f"{view}, {share}: {ways[share]}")
    section.plot(
        view.replace(" ", "-"),
        f"{view}: cost against change size, {size_text(dataset.orders)} orders",
        "changed orders",
        "seconds",
        {
            "tick": [
                (dataset.orders * SHARES[share] / 1_000, sample.median)
                for share, sample in ticks.items()
            ],
            "Spark's full refresh": [
                (dataset.orders * each / 1_000, refresh.median) for each in (1, 900)
            ],
        },
        log_x=True,
        log_y=True,
    )


def _raise(spark: SparkSession, orders: Path, where: str) -> None:
    spark.sql(f"UPDATE delta.`{orders}` SET amount = amount + 0.01 WHERE {where}")


def _refresh(query: DataFrame, target: str) -> None:
    query.write.format("delta").mode("overwrite").save(target)
