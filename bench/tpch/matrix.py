"""TPC-H under changes of every size and kind: some queries in one flow, against full refreshes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.measure import Plan, Samples, Section, progress
from bench.ticking import timed_tick
from bench.tpch.changes import KINDS, Changes, Where
from bench.tpch.first_rows import equals_spark
from bench.tpch.landing import Landing
from bench.tpch.queries import queries
from bench.tpch.schema import SCHEMAS

if TYPE_CHECKING:
    from bench.tpch.changes import Kind
    from bench.tpch.stock import Stock, Stocks
    from ivm_core import IncrementalFlow

QUERIES = ("q01", "q03", "q05", "q13", "q18")
"""An aggregate of all lines, joins, an outer join, a semi join; `--query` takes others."""
WHERE: tuple[Where, ...] = ("clustered", "scattered")
WARM_UPS, REPEATS = 1, 2
LIMIT = 1.0
LARGE = 0.05
"""From this share on, what Spark takes to bring the change into its tables is measured too."""


def run(stocks: Stocks, plan: Plan) -> Section:
    """All shares, kinds and places in one flow, one after the other."""
    section = Section("tpch-changes", f"TPC-H at scale {plan.scale:g}: sizes and kinds of changes")
    if plan.scale != Plan.scale:
        section.options = f"--scale {plan.scale:g}"
    stock = stocks.of(plan.scale)
    chosen = plan.queries or QUERIES
    texts = {name: sql for name, sql in queries(plan.scale).items() if name in chosen}
    section.notes.append(f"views in one tick: {', '.join(texts)}")
    refresh = section.sample("Spark's full refreshes")
    for keep in (False, *[True] * plan.refreshes):
        progress("tpch-changes: Spark's full refreshes")
        refresh.time(_refresh, stock, texts, keep=keep)
    landing = None if plan.is_quick else Landing(stock)
    with stock.open_copy("matrix") as flow:
        flow.register_views(texts)
        progress("tpch-changes: hydrating")
        flow.tick()
        found, landed = _ticked(section, flow, stock, plan, landing)
        _compare(section, flow, stock, texts)
    if landing is not None:
        section.check("tables that Spark merged into have their rows", landing.is_right)
    stock.remove("matrix")
    stock.remove("landed")
    _verdicts(section, found, refresh, stock)
    for key, sample in landed.items():
        name = f"{found[key].name}: (merge + full refreshes) / tick"
        section.compare(name, sample.median + refresh.median, found[key].median)
    return section


Key = tuple[float, "Kind", Where]


def _ticked(
    section: Section, flow: IncrementalFlow, stock: Stock, plan: Plan, landing: Landing | None
) -> tuple[dict[Key, Samples], dict[Key, Samples]]:
    """Ticks, and merges by Spark; one source of changes, so that no order is deleted twice."""
    found: dict[Key, Samples] = {}
    landed: dict[Key, Samples] = {}
    changes = Changes(stock.held, 0.0)
    one = section.sample("tick of one order")
    for keep in (False, *[True] * REPEATS):
        timed_tick(one, flow, changes.next("scattered", 1), keep=keep)
    for share in plan.shares:
        orders = max(1, round(stock.held.all_orders * share / 2))
        if 2 * orders > len(stock.held.tables["orders"]):
            section.notes.append(
                f"{share:.3%} of the orders: not measured, fewer of this scale are held in memory"
            )
            continue
        for kind in KINDS:
            for where in WHERE:
                key = share, kind, where
                sample = section.sample(f"{share:.3%} of the orders, {kind}, {where}")
                found[key] = sample
                if landing is not None and share >= LARGE:
                    landed[key] = section.sample(f"Spark brings into its tables: {sample.name}")
                for keep in (*[False] * WARM_UPS, *[True] * REPEATS):
                    batch = changes.next(where, orders, kind)
                    timed_tick(sample, flow, batch, keep=keep)
                    if landing is not None and key in landed:
                        landing.land(landed[key], batch, keep=keep)
                for each in (sample, *([landed[key]] if key in landed else [])):
                    progress(f"tpch-changes: {each.name}, {each.median:.2f} s")
    return found, landed


def _refresh(stock: Stock, texts: dict[str, str]) -> None:
    for name, sql in texts.items():
        stock.refresh(name, sql)


def _compare(section: Section, flow: IncrementalFlow, stock: Stock, texts: dict[str, str]) -> None:
    for table in SCHEMAS:
        target = str(stock.folder / "after-matrix" / table)
        flow.snapshot(table).write.parquet(target)
        stock.spark.read.parquet(target).createOrReplaceTempView(table)
    for name, sql in texts.items():
        progress(f"tpch-changes: comparing {name} with Spark's result")
        section.check(f"{name} equals its query", flow.check(name).equal)
        same = equals_spark(flow.snapshot(name), stock.spark, sql)
        section.check(f"{name} equals Spark's result", same)
    stock.remove("after-matrix")


def _verdicts(section: Section, found: dict[Key, Samples], refresh: Samples, stock: Stock) -> None:
    one = next(each for each in section.samples if each.name == "tick of one order")
    fixed = refresh.median + one.median
    lines: dict[str, list[tuple[float, float]]] = {}
    for (share, kind, where), sample in found.items():
        name = f"{sample.name}: full refreshes / tick"
        section.compare(name, refresh.median, sample.median)
        line = lines.setdefault(f"{kind}, {where}", [])
        line.append((max(1, stock.held.all_orders * share), sample.median))
    slowest = max(found.values(), key=lambda sample: sample.median)
    section.bar(
        f"tick / (full refreshes + tick of one order), worst: {slowest.name}",
        slowest.median / fixed,
        "<=",
        LIMIT,
    )
    ends = [point[0] for line in lines.values() for point in line]
    lines["Spark's full refreshes"] = [(each, refresh.median) for each in (min(ends), max(ends))]
    section.plot(
        "size",
        f"TPC-H at scale {stock.scale:g}: cost against change size",
        "changed orders",
        "seconds",
        lines,
        log_x=True,
        log_y=True,
    )
