"""`python -m bench.profile`: where the time of a tick goes.

Ticks of one workload, warmed up, then looked at: phases and views as the tick tells them, Spark's
statements and how much of them are jobs, and our functions by what they wait for.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from itertools import count
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bench.dataset import Datasets
from bench.machine import start_spark
from bench.measure import Samples, progress, size_text
from bench.nexmark.program import Site
from bench.nexmark.program import queries as nexmark_queries
from bench.orders import VIEWS, Trade
from bench.report import aligned
from bench.sampling import StackSampler
from bench.spark_costs import Costs, SparkCosts
from bench.ticking import timed_tick
from bench.tpch.changes import KINDS, Changes
from bench.tpch.queries import queries
from bench.tpch.stock import Stocks
from bench.warehouse import Warehouse

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pyspark.sql import SparkSession

    from ivm_core import IncrementalFlow, StepSummary

    Workload = tuple[IncrementalFlow, Callable[[], Any]]
    """A flow that is hydrated, and what makes its next change."""

SHOWN = 15


def main(words: list[str] | None = None) -> int:
    """Print the profile."""
    options = _options(words)
    folder = Path(tempfile.mkdtemp(prefix="tideview-profile-"))
    try:
        progress("starting Spark")
        spark = start_spark(options.memory)
        try:
            print(_profile(spark, folder, options))
        finally:
            spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _profile(spark: SparkSession, folder: Path, options: argparse.Namespace) -> str:
    flow, change = WORKLOADS[options.workload](spark, folder, options)
    costs, sampler = SparkCosts(spark), StackSampler()
    samples = Samples("tick")
    summaries, seen = [], []
    for number in range(options.warm_ups + options.ticks):
        given = change()
        costs.look()
        if number < options.warm_ups:
            timed_tick(samples, flow, given, keep=False)
            continue
        with sampler:
            summaries.append(timed_tick(samples, flow, given))
        seen.append(costs.look())
    flow.close()
    head = f"{options.workload}, {options.ticks} ticks of {options.change} changed rows"
    parts = [
        f"{head}: p50 {samples.median * 1000:.0f} ms, p99 {samples.percentile(0.99) * 1000:.0f} ms",
        *_counts(samples, seen),
        *_phases(summaries),
        *_views(summaries[-1]),
        *_statements(seen[-1]),
        *_places(sampler),
    ]
    return "\n".join(parts)


def _counts(samples: Samples, seen: list[Costs]) -> list[str]:
    names = list(seen[0].facts)
    rows = [(name.replace("_", " "), f"{value:g}") for name, value in samples.per_sample.items()]
    rows += [
        (name.replace("_", " "), f"{median(each.facts[name] for each in seen):,.0f}")
        for name in names
    ]
    return ["", "A tick, medians", *aligned([("", "count"), *rows])]


def _phases(summaries: list[StepSummary]) -> list[str]:
    rows = [
        (name, f"{median(each.phases_ms[name] for each in summaries):.1f}")
        for name in summaries[0].phases_ms
    ]
    return ["", "Phases of a tick, medians", *aligned([("", "ms"), *rows])]


def _views(summary: StepSummary) -> list[str]:
    every = {**summary.views, **summary.shared}
    rows = [
        (name, f"{each.duration_ms:.1f}", str(each.rows_out), "; ".join(set(each.ways.values())))
        for name, each in sorted(every.items(), key=lambda pair: -pair[1].duration_ms)
        if not each.skipped
    ]
    return ["", "Views of the last tick", *aligned([("", "ms", "rows out", "ways"), *rows])]


def _statements(costs: Costs) -> list[str]:
    rows = [
        (
            " ".join(each.text.split())[:60],
            f"{each.milliseconds:.0f}",
            f"{each.in_jobs:.0f}",
            str(each.files),
        )
        for each in sorted(costs.statements, key=lambda each: -each.milliseconds)[:SHOWN]
    ]
    header = ("", "ms", "of it in jobs", "files read")
    return ["", "Spark's statements of the last tick", *aligned([header, *rows])]


def _places(sampler: StackSampler) -> list[str]:
    rows = [
        (place, what, f"{share:.1%}") for share, place, what in sampler.shares()[:SHOWN] if share
    ]
    title = "Our functions, by what they wait for (several threads can make more than 100 %)"
    return ["", title, *aligned([("", "at", "of the time"), *rows])]


# --- workloads ---


def _orders(spark: SparkSession, folder: Path, options: argparse.Namespace) -> Workload:
    trade = Trade(options.rows)
    trade.rows = options.change
    flow = Datasets(spark, folder).of(options.rows).open_copy("profiled")
    names = {view.replace(" ", "_").replace("-", "_"): sql for view, sql in VIEWS.items()}
    flow.register_views(names)
    flow.tick(views=list(names))
    progress(f"two views over {size_text(options.rows)} orders are hydrated")
    return flow, lambda: {"orders": trade.next("scattered").batch()}


def _warehouse(spark: SparkSession, folder: Path, options: argparse.Namespace) -> Workload:
    warehouse = Warehouse(options.rows)
    flow = warehouse.open(folder / "flow", spark)
    flow.register_views(warehouse.views)
    flow.tick(warehouse.tables())
    progress("the warehouse is hydrated")
    return flow, lambda: warehouse.change(options.change)


def _tpch(spark: SparkSession, folder: Path, options: argparse.Namespace) -> Workload:
    stock = Stocks(spark, folder).of(options.scale)
    texts = queries(options.scale)
    flow = stock.open_copy("profiled")
    flow.register_views({name: texts[name] for name in options.query or texts})
    flow.tick()
    progress("TPC-H is hydrated")
    changes = Changes(stock.held, 0.0)
    # an order has four lines on average
    orders = max(1, options.change // 10)
    return flow, lambda: changes.next(options.where, orders, options.kind)


def _nexmark(spark: SparkSession, folder: Path, options: argparse.Namespace) -> Workload:
    site = Site(spark, folder, options.rows)
    site.size = options.change
    flow = site.open_copy("profiled")
    flow.register_views(nexmark_queries(tuple(options.query or ())))
    flow.tick()
    progress(f"Nexmark over {size_text(options.rows)} events is hydrated")
    numbers = count()
    return flow, lambda: site.batch(next(numbers))


WORKLOADS: dict[str, Callable[[SparkSession, Path, argparse.Namespace], Workload]] = {
    "orders": _orders,
    "warehouse": _warehouse,
    "tpch": _tpch,
    "nexmark": _nexmark,
}


def _options(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("workload", nargs="?", default="orders", choices=list(WORKLOADS))
    parser.add_argument("--rows", type=int, default=100_000, metavar="N", help="orders, or events")
    parser.add_argument("--scale", type=float, default=0.1, metavar="S", help="of TPC-H")
    parser.add_argument(
        "--query", action="append", metavar="qNN", help="of TPC-H or Nexmark; else all"
    )
    parser.add_argument(
        "--change", type=int, default=1_000, metavar="N", help="changed rows a tick"
    )
    parser.add_argument(
        "--where", choices=["clustered", "scattered"], default="scattered", help="of TPC-H"
    )
    parser.add_argument(
        "--kind", choices=KINDS, default="inserts and deletes", help="of TPC-H's changes"
    )
    parser.add_argument("--warm-ups", type=int, default=5, metavar="N", help="ticks before those")
    parser.add_argument("--ticks", type=int, default=20, metavar="N", help="that are looked at")
    parser.add_argument("--memory", default="4g", help="heap of Spark's JVM (%(default)s)")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
