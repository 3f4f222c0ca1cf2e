"""Kernel costs: what a tick asks of Spark, of the disk and of memory, tick by tick."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.machine import Peak
from bench.measure import Plan, Section, progress, size_text
from bench.orders import VIEWS, Trade
from bench.spark_costs import SparkCosts, bytes_read_by_python, folder_contents
from bench.ticking import timed_tick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bench.dataset import Datasets
    from bench.measure import Samples
    from bench.orders import Where

WARM_UPS = 5
WHERE: tuple[Where, ...] = ("scattered", "recent")
TOLD = (
    ("statements", "{:g} statements"),
    ("jobs", "{:g} jobs"),
    ("stages", "{:g} stages"),
    ("tasks", "{:g} tasks"),
    ("commits", "{:g} Delta commits"),
    ("files_written", "{:g} files written"),
    ("bytes_written", "{:,.0f} bytes written"),
    ("spark_files_read", "{:g} files read by Spark"),
    ("spark_bytes_read", "{:,.0f} bytes read by Spark"),
    ("python_bytes_read", "{:,.0f} bytes read by Python"),
    ("in_jobs_ms", "{:.0f} ms in Spark's jobs"),
    ("planning_ms", "{:.0f} ms in its statements outside of jobs"),
    ("collections_ms", "{:.0f} ms of garbage collection"),
)


def run(spark: SparkSession, datasets: Datasets, plan: Plan) -> Section:
    """One flow with both views of the orders; what is counted is counted off the clock."""
    section = Section("kernel", f"kernel costs of a tick, {size_text(plan.smallest)} orders")
    dataset, trade = datasets.of(plan.smallest), Trade(plan.smallest)
    flow = dataset.open_copy("kernel")
    place = dataset.folder / "kernel"
    names = {view.replace(" ", "_").replace("-", "_"): sql for view, sql in VIEWS.items()}
    flow.register_views(names)
    flow.tick(views=list(names))
    ticks = {where: section.sample(f"tick of {trade.rows} {where}") for where in WHERE}
    costs = SparkCosts(spark)
    count = max(plan.repeats, plan.ticks // 4)
    for number in range(WARM_UPS + count):
        for where, sample in ticks.items():
            keep = number >= WARM_UPS
            batch = trade.next(where).batch()
            before, read = folder_contents(place), bytes_read_by_python()
            costs.look()
            with Peak() as peak:
                summary = timed_tick(sample, flow, "orders", batch, keep=keep)
            seen = costs.look().facts
            read = bytes_read_by_python() - read
            new = {
                name: size for name, size in folder_contents(place).items() if name not in before
            }
            if keep:
                sample.note(
                    **seen,
                    files_written=len(new),
                    bytes_written=sum(new.values()),
                    python_bytes_read=read,
                    peak_mb=peak.bytes / 2**20,
                    **{f"{name}_ms": value for name, value in summary.phases_ms.items()},
                )
    progress("kernel: comparing results")
    for name in names:
        section.check(f"{name} equals its query", flow.check(name).equal)
    flow.close()
    dataset.remove("kernel")
    for sample in ticks.values():
        _tell(section, sample)
    section.plot(
        "ticks",
        "Time of a tick, and how much of it Spark's jobs run",
        "tick",
        "milliseconds",
        _lines(ticks),
    )
    return section


def _tell(section: Section, sample: Samples) -> None:
    middle = sample.per_sample
    wall = sum(sample.seconds) * 1_000
    told = [text.format(middle[name]) for name, text in TOLD if name in middle]
    section.notes.append(f"{sample.name}: {', '.join(told)}")
    share = sum(sample.facts.get("collections_ms", [0.0])) / wall
    section.notes.append(
        f"{sample.name}: p50 {sample.median * 1_000:.0f} ms, p99 "
        f"{sample.percentile(0.99) * 1_000:.0f} ms, most memory "
        f"{max(sample.facts['peak_mb']):,.0f} MiB, garbage collection {share:.1%} of the time"
    )


def _lines(ticks: dict[Where, Samples]) -> dict[str, list[tuple[float, float]]]:
    found = {}
    for where, sample in ticks.items():
        milliseconds = [seconds * 1_000 for seconds in sample.seconds]
        found[f"{where}, all of it"] = list(enumerate(milliseconds, 1))
        found[f"{where}, in jobs"] = list(enumerate(sample.facts.get("in_jobs_ms", []), 1))
    return {name: [(float(x), y) for x, y in points] for name, points in found.items()}
