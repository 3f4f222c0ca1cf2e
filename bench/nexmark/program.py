"""Nexmark's queries as views: ticks of new events against Spark's full refresh.

`q12` counts by the clock of the machine that runs it, so it has no one result and is left out.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import parquet

from bench.dataset import copy_of, same_rows
from bench.measure import Plan, Section, progress, size_text
from bench.nexmark.generate import SCHEMAS, Nexmark
from bench.ticking import timed_tick
from ivm_core import IncrementalFlow, IvmError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERIES = Path(__file__).with_name("queries")
KEYS = {"person": ["id"], "auction": ["id"]}
SIDE_ROWS = 10_000
TICK_SHARE = 100
"""A tick brings one event to so many that are there."""
WARM_UPS, REPEATS = 1, 3
QUICK_QUERIES = ("q1", "q3", "q4", "q5", "q8", "q9", "q11", "q16", "q19", "q20")
LEFT_OUT = "q12: counts by the clock of the machine that runs it, so it has no one result"


class Site:
    """Events on disk for Spark, and in a flow without views."""

    def __init__(self, spark: SparkSession, folder: Path, events: int) -> None:
        """Written and loaded at once."""
        self.spark = spark
        self._folder = folder
        self._made = Nexmark()
        self.loaded = events
        self.size = max(500, events // TICK_SHARE)
        first = self._made.events(0, events)
        first["side_input"] = pa.table(
            {"key": range(SIDE_ROWS), "value": [f"value {n}" for n in range(SIDE_ROWS)]}
        )
        for name, table in first.items():
            (folder / "delta").mkdir(parents=True, exist_ok=True)
            whole = str(folder / f"{name}.parquet")
            parquet.write_table(table, whole)
            spark.read.parquet(whole).write.format("delta").save(self._delta(name))
        with IncrementalFlow.open(folder / "flow", spark) as flow:
            flow.register_source("side_input", "key BIGINT, value STRING", primary_key=["key"])
            for name, schema in SCHEMAS.items():
                flow.register_source(name, schema, primary_key=KEYS.get(name))
            flow.tick({name: self._frame(name) for name in first})

    def batch(self, number: int) -> dict[str, pa.Table]:
        """The events of a tick."""
        first = self.loaded + number * self.size
        return self._made.events(first, first + self.size)

    def open_copy(self, name: str) -> IncrementalFlow:
        """A flow of its own that has the events."""
        target = self._folder / name
        return IncrementalFlow.open(copy_of(self._folder / "flow", target), self.spark)

    def remove(self, name: str) -> None:
        """Give back the room of a copy."""
        shutil.rmtree(self._folder / name, ignore_errors=True)

    def refresh(self, name: str, sql: str) -> None:
        """Spark's full refresh of a view over the events that were there at first."""
        for table in (*SCHEMAS, "side_input"):
            self._frame(table).createOrReplaceTempView(table)
        target = str(self._folder / "refreshed" / name)
        self.spark.sql(sql).write.format("delta").mode("overwrite").save(target)

    def _delta(self, name: str) -> str:
        return str(self._folder / "delta" / name)

    def _frame(self, name: str) -> DataFrame:
        return self.spark.read.format("delta").load(self._delta(name))


def queries(chosen: tuple[str, ...] = ()) -> dict[str, str]:
    """The texts by name, `q0` to `q22`; all, or those that are named."""
    texts = {
        f"q{int(path.stem[1:])}": path.read_text(encoding="utf-8")
        for path in sorted(QUERIES.glob("*.sql"))
    }
    return {name: sql for name, sql in texts.items() if not chosen or name in chosen}


def run(spark: SparkSession, folder: Path, plan: Plan) -> Section:
    """Each view alone (not in a quick run), then all in one tick."""
    events = size_text(plan.events)
    section = Section("nexmark", f"Nexmark over {events} events")
    progress(f"nexmark: loading {events} events")
    site = Site(spark, folder, plan.events)
    chosen = plan.queries or (QUICK_QUERIES if plan.is_quick else ())
    texts = _maintained(section, site, queries(chosen))
    refreshed, gains = {}, {}
    for name, sql in texts.items():
        refresh = section.sample(f"{name}: Spark's full refresh")
        for keep in (False, *[True] * plan.refreshes):
            refresh.time(site.refresh, name, sql, keep=keep)
        refreshed[name] = refresh.median
        if plan.is_quick and not plan.queries:
            continue
        took = _alone(section, site, name, sql)
        gains[name] = refreshed[name] / took
        progress(f"nexmark: {name}, full refresh {refreshed[name]:.2f} s, tick {took:.2f} s")
    for name, gain in gains.items():
        section.compare(f"{name}: full refresh / tick", gain, 1.0)
    if gains:
        mean = geometric_mean(gains.values())
        section.notes.append(f"full refresh / tick, geometric mean: {mean:.2f}×")
        points = [(int(name[1:]), gain) for name, gain in gains.items()]
        title = f"Nexmark over {events} events: Spark's full refresh / tick"
        section.plot(
            "gain", title, "number of the query", "times faster", {"gain": points}, log_y=True
        )
    _together(section, site, texts, sum(refreshed.values()))
    return section


def _maintained(section: Section, site: Site, texts: dict[str, str]) -> dict[str, str]:
    """Those that can be registered; what is refused is said with its reason."""
    section.notes.append(LEFT_OUT)
    found = {}
    with site.open_copy("trying") as flow:
        for name, sql in texts.items():
            try:
                flow.register_view(name, sql)
            except IvmError as error:
                section.notes.append(f"{name}: refused, {str(error).splitlines()[0]}")
            else:
                found[name] = sql
    site.remove("trying")
    return found


def _alone(section: Section, site: Site, name: str, sql: str) -> float:
    ticks = section.sample(f"{name}: tick of {site.size:,} events")
    with site.open_copy("alone") as flow:
        flow.register_view(name, sql, hydrate=True)
        for number in range(WARM_UPS + REPEATS):
            timed_tick(ticks, flow, site.batch(number), keep=number >= WARM_UPS)
    site.remove("alone")
    return ticks.median


def _together(section: Section, site: Site, texts: dict[str, str], refreshes: float) -> None:
    ticks = section.sample(f"all {len(texts)} views: tick of {site.size:,} events")
    with site.open_copy("together") as flow:
        flow.register_views(texts)
        progress("nexmark: hydrating all views in one flow")
        flow.tick(views=list(texts))
        for number in range(WARM_UPS + REPEATS):
            timed_tick(ticks, flow, site.batch(number), keep=number >= WARM_UPS)
        name = f"all {len(texts)} in one tick: full refreshes / tick"
        section.compare(name, refreshes, ticks.median)
        section.notes.append(f"{site.size / ticks.median:,.0f} events a second through all views")
        for table in flow.sources:
            flow.snapshot(table).createOrReplaceTempView(table)
        for name, sql in texts.items():
            progress(f"nexmark: comparing {name}")
            right = same_rows(flow.snapshot(name), site.spark.sql(sql))
            section.check(f"{name} equals Spark's result", right)
    site.remove("together")
