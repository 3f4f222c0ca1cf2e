"""Bar 2: a tick's time follows the change, not the data; and it beats Spark's full refresh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.dataset import copy_of, same_rows
from bench.measure import Plan, Samples, Section, progress, size_text
from bench.orders import CHANGED_ROWS, SCHEMAS, VIEWS, Trade, Where, tables
from bench.ticking import timed_tick
from ivm_core import IncrementalFlow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from bench.dataset import Dataset, Datasets

GROWTH_LIMITS = {"grouped sum": 2.0, "three-way join": 3.0}
REFRESH_LIMIT = 5.0
WHERE: tuple[Where, ...] = ("scattered", "recent")
VIEW = "measured"


@dataclass
class Case:
    """One view over orders of one size."""

    dataset: Dataset
    view: str
    flow: IncrementalFlow
    trade: Trade
    ticks: dict[Where, Samples]


def run(spark: SparkSession, datasets: Datasets, plan: Plan) -> Section:
    """All sizes and views in turn, round by round, so that a noisy minute meets them all."""
    section = Section("change", "Change against data: changed rows of orders")
    cases = [_fed_case(section, datasets.of(rows), view) for view in VIEWS for rows in plan.rows]
    largest = datasets.of(plan.largest)
    targets = {view: largest.folder / f"refreshed-{view.replace(' ', '-')}" for view in VIEWS}
    refreshes = {
        view: section.sample(f"{view}, {size_text(plan.largest)}: Spark's full refresh")
        for view in VIEWS
    }
    for number, keep in enumerate(plan.rounds):
        progress(f"change: round {number + 1} of {len(plan.rounds)}")
        for case in cases:
            for where in WHERE:
                batch = case.trade.next(where).batch()
                timed_tick(case.ticks[where], case.flow, "orders", batch, keep=keep)
        for view, target in targets.items():
            refreshes[view].time(largest.refresh, view, target, keep=keep)

    progress("change: comparing results")
    for case in cases:
        name = f"{case.view}, {size_text(case.dataset.orders)}"
        section.check(f"{name} equals its query", case.flow.check(VIEW).equal)
        case.flow.close()
    _followed(section, spark, datasets, plan)
    _verdicts(section, cases, refreshes, plan)
    _plots(section, cases)
    return section


def _plots(section: Section, cases: list[Case]) -> None:
    lines: dict[str, list[tuple[float, float]]] = {}
    for case in cases:
        for where, ticks in case.ticks.items():
            line = lines.setdefault(f"{case.view}, {where}", [])
            line.append((case.dataset.orders, ticks.median))
    title = f"A tick of {CHANGED_ROWS:,} changed rows against the size of the data"
    section.plot("data", title, "rows of orders", "seconds a tick", lines, log_x=True)


def _fed_case(section: Section, dataset: Dataset, view: str) -> Case:
    size = size_text(dataset.orders)
    name = f"change-{view.replace(' ', '-')}"
    progress(f"change: hydrating {view} over {size} orders")
    flow = dataset.open_copy(name)
    flow.register_view(VIEW, VIEWS[view], hydrate=True)
    right = same_rows(flow.snapshot(VIEW), dataset.query(view))
    section.check(f"{view}, {size}: hydrated equals Spark's result", right)
    trade = Trade(dataset.orders)
    ticks = {
        where: section.sample(f"{view}, {size}: tick of {trade.rows} {where}") for where in WHERE
    }
    return Case(dataset, view, flow, trade, ticks)


def _verdicts(
    section: Section, cases: list[Case], refreshes: dict[str, Samples], plan: Plan
) -> None:
    small, large = size_text(plan.smallest), size_text(plan.largest)
    for view in VIEWS:
        by_size = {case.dataset.orders: case.ticks for case in cases if case.view == view}
        for where in WHERE:
            tick = by_size[plan.largest][where].median
            if plan.smallest != plan.largest:
                growth = tick / by_size[plan.smallest][where].median
                name = f"{view}, {where}: tick at {large} / tick at {small}"
                section.bar(name, growth, "<=", GROWTH_LIMITS[view])
            gain = refreshes[view].median / tick
            name = f"{view}, {where}, {large}: full refresh / tick"
            section.bar(name, gain, ">=", REFRESH_LIMIT)


# --- orders that the flow follows instead of being fed ---


def _followed(section: Section, spark: SparkSession, datasets: Datasets, plan: Plan) -> None:
    """The same changes merged into a Delta table with a change data feed; no bar."""
    for rows in sorted({plan.smallest, plan.largest}):
        dataset = datasets.of(rows)
        size = size_text(rows)
        orders = copy_of(dataset.delta_table("orders"), dataset.folder / "followed-orders")
        feed = "('delta.enableChangeDataFeed' = 'true')"
        spark.sql(f"ALTER TABLE delta.`{orders}` SET TBLPROPERTIES {feed}")
        trade = Trade(rows)
        cases = []
        for view in VIEWS:
            progress(f"change: hydrating {view} over {size} followed orders")
            flow = following(spark, dataset, view, orders)
            ticks = {
                where: section.sample(f"{view}, {size} followed: tick of {trade.rows} {where}")
                for where in WHERE
            }
            cases.append(Case(dataset, view, flow, trade, ticks))
        for number, keep in enumerate(plan.rounds):
            progress(f"change: followed, {size}, round {number + 1} of {len(plan.rounds)}")
            for where in WHERE:
                trade.next(where).merge_into(spark, str(orders))
                for case in cases:
                    timed_tick(case.ticks[where], case.flow, keep=keep)
        for case in cases:
            expected = dataset.query(case.view, orders)
            right = same_rows(case.flow.snapshot(VIEW), expected)
            section.check(f"{case.view}, {size} followed, equals Spark's result", right)
            case.flow.close()


def following(
    spark: SparkSession, dataset: Dataset, view: str, orders: Path, name: str = ""
) -> IncrementalFlow:
    """A flow that follows those orders, and has the view's rows."""
    name = name or f"followed-{view.replace(' ', '-')}"
    flow = IncrementalFlow.open(dataset.folder / name, spark)
    flow.register_source("orders", primary_key=["id"], delta_table=str(orders))
    frames = tables(spark, dataset.orders)
    fed = [name for name in SCHEMAS if name != "orders"]
    for name in fed:
        flow.register_source(name, SCHEMAS[name], primary_key=["id"])
    flow.tick({name: frames[name] for name in fed})
    flow.register_view(VIEW, VIEWS[view])
    flow.tick()
    return flow
