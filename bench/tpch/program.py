"""TPC-H: every query as a view, ticks of a small change against Spark's full refresh.

A view is measured in a flow of its own, and at last all of them in one flow and one tick.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import geometric_mean
from typing import TYPE_CHECKING

from bench.dataset import same_rows
from bench.machine import jobs_run
from bench.measure import Samples, Section, progress
from bench.tpch.changes import Changes, Where
from bench.tpch.queries import queries
from bench.tpch.schema import SCHEMAS

if TYPE_CHECKING:
    from bench.measure import Plan
    from bench.tpch.stock import Stock, Stocks
    from ivm_core import IncrementalFlow, StepSummary

SHARE = 0.001
LIMITS: dict[Where, float] = {"clustered": 8.0, "scattered": 3.0}
TOGETHER = 12.0
LARGE_SCALE, LARGEST = 10.0, 5
LARGE_LIMITS: dict[Where, float] = {"clustered": 25.0}
"""From this scale on the few queries with the largest full refresh are measured."""
QUICK_QUERIES = ("q01", "q03", "q06", "q13", "q18")
NO_SLOWER = 1.0


def run(stocks: Stocks, plan: Plan) -> Section:
    """Each view alone, then all together."""
    section = Section("tpch", f"TPC-H at scale {plan.scale:g}, {SHARE:.1%} of the orders changed")
    if plan.scale != 1:
        section.options = f"--scale {plan.scale:g}"
    stock = stocks.of(plan.scale)
    texts = _chosen(section, stock, plan)
    is_large = plan.scale >= LARGE_SCALE
    alone: dict[str, Measured] = {}
    refreshed: dict[str, float] = {}
    if not is_large:
        # one of a large scale takes long enough to be warm
        for name, sql in texts.items():
            progress(f"tpch: warming {name}")
            stock.refresh(name, sql)
    warm_ups, kept = (1, plan.refreshes) if is_large else (plan.warm_ups - 1, plan.refresh_ticks)
    for name, sql in texts.items():
        refresh = section.sample(f"{name}: Spark's full refresh")
        for keep in (*([False] * warm_ups), *([True] * kept)):
            refresh.time(stock.refresh, name, sql, keep=keep)
        refreshed[name] = refresh.median
        alone[name] = _alone(section, stock, name, sql, plan)
        told = ", ".join(f"{where} {s:.2f} s" for where, s in alone[name].seconds.items())
        progress(f"tpch: {name}, full refresh {refresh.median:.2f} s, {told}")
    for where, limit in (LARGE_LIMITS if is_large else LIMITS).items():
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
    section.plot(
        "gain",
        f"Spark's full refresh / tick, by query, scale {plan.scale:g}",
        "number of the query",
        "times faster",
        {
            where: [
                (int(name[1:]), refreshed[name] / each.seconds[where])
                for name, each in alone.items()
            ]
            for where in LIMITS
        },
        log_y=True,
    )
    together = _together(section, stock, texts, plan, alone)
    for where, seconds in together.seconds.items():
        gain = sum(refreshed.values()) / seconds
        section.bar(f"{where}: all in one tick, full refreshes / tick", gain, ">=", TOGETHER)
    return section


def _chosen(section: Section, stock: Stock, plan: Plan) -> dict[str, str]:
    """The queries that were asked for; of a large scale those with the largest full refresh."""
    texts = queries(plan.scale)
    named = plan.queries or (QUICK_QUERIES if plan.is_quick else ())
    if named:
        return {name: sql for name, sql in texts.items() if name in named}
    if plan.scale < LARGE_SCALE:
        return texts
    took = {}
    for name, sql in texts.items():
        sample = Samples(name)
        sample.time(stock.refresh, name, sql)
        took[name] = sample.median
        progress(f"tpch: {name}, full refresh {sample.median:.1f} s")
    largest = sorted(sorted(took, key=lambda name: -took[name])[:LARGEST])
    section.notes.append(f"the {LARGEST} with the largest full refresh: {', '.join(largest)}")
    return {name: texts[name] for name in largest}


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
        measured = _ticked(section, flow, Changes(stock.held, SHARE), name, plan)
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
        found = _ticked(section, flow, Changes(stock.held, SHARE), "all views", plan)
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
