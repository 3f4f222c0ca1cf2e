"""A warehouse of ten views, staging → facts → marts, one source of which changes.

Beside it what views cost that no change reaches: the same ticks in a flow with a hundred more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.dataset import same_rows
from bench.machine import jobs_run
from bench.measure import Plan, Section, progress, size_text
from bench.ticking import timed_tick
from bench.warehouse import Warehouse

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ivm_core import IncrementalFlow

APPEND_LIMIT = 5.0
CLEAN_LIMIT = 1.1
ORDERS, QUICK_ORDERS = 100_000, 10_000
CHANGES = {1: 4, 1_000: 1}
"""Changed rows, and ticks of a round: of short ticks it takes more to tell a tenth apart."""
CLEAN, QUICK_CLEAN = 100, 10
CLEAN_VIEW = (
    "SELECT category, SUM(price_cents) AS cents, COUNT(*) AS products "
    "FROM raw_products WHERE price_cents > {} GROUP BY category"
)


def run(spark: SparkSession, folder: Path, plan: Plan) -> Section:
    """One row and a thousand, in both flows in turn; an append and a full refresh beside them."""
    orders = QUICK_ORDERS if plan.is_quick else ORDERS
    clean = QUICK_CLEAN if plan.is_quick else CLEAN
    section = Section("dag", f"a warehouse of ten views over {size_text(orders)} orders")
    warehouse = Warehouse(orders)
    progress("dag: writing raw tables")
    for name, table in warehouse.tables().items():
        frame = spark.createDataFrame(table)
        frame.coalesce(2).write.format("delta").save(str(folder / "raw" / name))
    flows = {
        more: _hydrated(spark, folder / f"flow-{more}", warehouse, more) for more in (0, clean)
    }
    ticks = {
        (more, rows): section.sample(_tick_name(rows, more)) for more in flows for rows in CHANGES
    }
    append = section.sample("Spark: append of one row")
    refresh = section.sample("Spark: full refresh of the ten views")
    order = flows
    row = spark.createDataFrame(next(iter(warehouse.tables().values())).slice(0, 1))
    for number, keep in enumerate(plan.rounds):
        progress(f"dag: round {number + 1} of {len(plan.rounds)}")
        for rows, times in CHANGES.items():
            for _ in range(times):
                # neither flow is always the first one, which may be the colder
                order = dict(reversed(order.items()))
                change = warehouse.change(rows)
                digests = []
                for more, flow in order.items():
                    summary = timed_tick(ticks[more, rows], flow, change, keep=keep)
                    digests.append({n: summary.views[n].state_digest for n in warehouse.views})
                section.check("clean views make no difference", digests[0] == digests[1])
        before = jobs_run(spark)
        target = str(folder / "appended")
        append.time(row.write.format("delta").mode("append").save, target, keep=keep)
        if keep:
            append.note(jobs=jobs_run(spark) - before, commits=1)
    for keep in (False, *[True] * plan.refreshes):
        progress("dag: Spark's full refresh")
        refresh.time(warehouse.refresh, spark, folder / "raw", folder / "refreshed", keep=keep)

    progress("dag: comparing results")
    _compare(section, spark, flows, warehouse, folder)
    ours = ticks[0, 1]
    section.bar(f"{ours.name} / append", ours.median / append.median, "<=", APPEND_LIMIT)
    for rows in CHANGES:
        ratio = ticks[clean, rows].median / ticks[0, rows].median
        name = f"tick of {rows:,}: with {clean} clean views / without"
        section.bar(name, ratio, "<=", CLEAN_LIMIT)
        name = f"tick of {rows:,}: full refresh of the ten views / tick"
        section.compare(name, refresh.median, ticks[0, rows].median)
    return section


def _tick_name(rows: int, more: int) -> str:
    rows_text = "one row" if rows == 1 else f"{rows:,} rows"
    return f"tick of {rows_text}" + (f", {more} clean views more" if more else "")


def _hydrated(
    spark: SparkSession, folder: Path, warehouse: Warehouse, more: int
) -> IncrementalFlow:
    progress(f"dag: hydrating ten views and {more} more")
    flow = warehouse.open(folder, spark)
    flow.register_views(warehouse.views)
    if more:
        flow.register_views({f"clean_{n}": CLEAN_VIEW.format(n * 10) for n in range(more)})
    flow.tick(warehouse.tables())
    return flow


def _compare(
    section: Section,
    spark: SparkSession,
    flows: dict[int, IncrementalFlow],
    warehouse: Warehouse,
    folder: Path,
) -> None:
    plain = flows[0]
    for source in plain.sources:
        plain.snapshot(source).write.format("delta").save(str(folder / "after" / source))
    warehouse.refresh(spark, folder / "after", folder / "expected")
    for view in warehouse.views:
        expected = spark.read.format("delta").load(str(folder / "expected" / view))
        section.check(f"{view} equals Spark's result", same_rows(plain.snapshot(view), expected))
    for flow in flows.values():
        flow.close()
