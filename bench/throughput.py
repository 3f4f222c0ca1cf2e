"""A stream: filter → project → count per key and tumbling window, in ticks of millions of events.

Events come in two ways: as new files of a Delta table that the flow follows, which is where a
stream is durable before any view has seen it; and fed to the flow, which then stores them itself.
"""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING

from bench.dataset import same_rows
from bench.measure import Plan, Section, progress, size_text
from bench.ticking import timed_tick
from ivm_core import IncrementalFlow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

PER_SECOND = 1_000_000
KEYS = 1_000
MICROSECONDS = 10
"""Between two events."""
SCHEMA = "id BIGINT, device BIGINT, at TIMESTAMP, kind INT, reading BIGINT"
VIEW = (
    "SELECT device, window.start AS start, COUNT(*) AS events "
    "FROM (SELECT device, at FROM events WHERE kind < 90) "
    "GROUP BY device, window(at, '10 seconds')"
)
WARM_UPS, REPEATS = 2, 5


def events(spark: SparkSession, first: int, count: int) -> DataFrame:
    """Events by number; nine of ten pass the filter."""
    return spark.range(first, first + count).selectExpr(
        "id",
        f"pmod(xxhash64(id, 1), {KEYS}) AS device",
        f"timestamp_micros(1700000000000000 + id * {MICROSECONDS}) AS at",
        "CAST(pmod(xxhash64(id, 2), 100) AS INT) AS kind",
        "pmod(xxhash64(id, 3), 1000000) AS reading",
    )


def run(spark: SparkSession, folder: Path, plan: Plan) -> Section:
    """Every size of tick, both ways; Spark's own batch over the same events beside them."""
    section = Section("throughput", "throughput: events through filter, projection, window count")
    repeats = min(REPEATS, plan.repeats)
    for size in plan.tick_events:
        _measure(section, spark, folder / size_text(size), size, repeats)
    section.notes.append(
        f"{KEYS:,} keys, windows of 10 seconds, an event every {MICROSECONDS} µs; followed events "
        "are in a Delta table before the clock starts, fed ones in Parquet files"
    )
    return section


def _measure(section: Section, spark: SparkSession, folder: Path, size: int, repeats: int) -> None:
    told = size_text(size)
    batch = section.sample(f"Spark counts {told} events, and appends the counts to Delta")
    followed = section.sample(f"tick of {told}, followed")
    fed = section.sample(f"tick of {told}, fed")
    table, files, counts = (str(folder / name) for name in ("table", "files", "counts"))
    events(spark, 0, 1).limit(0).write.format("delta").save(table)
    with (
        IncrementalFlow.open(folder / "following", spark) as following,
        IncrementalFlow.open(folder / "feeding", spark) as feeding,
    ):
        following.register_source("events", delta_table=table)
        feeding.register_source("events", SCHEMA)
        for flow in (following, feeding):
            flow.register_view("counts", VIEW)
        for number in range(WARM_UPS + repeats):
            keep = number >= WARM_UPS
            progress(f"throughput: {told}, round {number + 1} of {WARM_UPS + repeats}")
            made = events(spark, number * size, size)
            made.write.format("delta").mode("append").save(table)
            made.write.mode("overwrite").parquet(files)
            stored = spark.read.schema(SCHEMA).parquet(files)
            batch.time(partial(_count, spark, stored, counts), keep=keep)
            timed_tick(followed, following, keep=keep)
            timed_tick(fed, feeding, "events", stored, keep=keep)
        spark.read.format("delta").load(table).createOrReplaceTempView("events")
        expected = spark.sql(VIEW)
        for name, flow in (("followed", following), ("fed", feeding)):
            right = same_rows(flow.snapshot("counts"), expected)
            section.check(f"{told}, {name}: counts equal Spark's", right)
    shutil.rmtree(folder)
    for name, sample in (("followed", followed), ("fed", fed)):
        rate = size / sample.median
        sample.note(events_per_second=rate)
        section.notes.append(f"{told}, {name}: {rate:,.0f} events a second")
        if name == "followed":
            ratio = rate / PER_SECOND
            section.bar(f"ticks of {told}, {name}: events a second / 1M", ratio, ">=", 1.0)
        section.notes.append(
            f"{told}, {name}: Spark's count of the new events alone, put together with nothing, "
            f"takes {batch.median / sample.median:.2f} of a tick"
        )


def _count(spark: SparkSession, stored: DataFrame, target: str) -> None:
    """What any way has to do at least: read, count, write; nothing is put together with before."""
    stored.createOrReplaceTempView("events")
    spark.sql(VIEW).write.format("delta").mode("append").save(target)
