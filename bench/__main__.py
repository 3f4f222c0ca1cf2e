"""`python -m bench`: the speed bars, as a table on stdout and a JSON file."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import (
    change,
    checkpoints,
    dagster_load,
    dagster_run,
    dedup,
    durability,
    fixed,
    hydration,
    long_run,
    recursion,
)
from bench.dataset import Datasets
from bench.machine import describe, start_spark
from bench.measure import STARTED, Plan, Section, progress
from bench.report import table
from bench.tpch import program as tpch

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

RESULTS = Path(__file__).parent / "results"
PROGRAMS = (
    "fixed",
    "change",
    "hydration",
    "long",
    "checkpoints",
    "durability",
    "dedup",
    "dagster-load",
    "dagster-run",
    "recursion",
    "tpch",
)
FULL = Plan(rows=(100_000, 1_000_000, 10_000_000))
QUICK = Plan(rows=(100_000, 1_000_000), repeats=3, ticks=80, scale=0.1)


def main(words: list[str] | None = None) -> int:
    """Measure and report; 1 for wrong results and failures, with --strict for missed bars too."""
    options = _options(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    plan = _plan(options)
    chosen = [name for name in PROGRAMS if name in (options.only or PROGRAMS)]
    started = datetime.now(UTC).isoformat(timespec="seconds")
    folder = Path(tempfile.mkdtemp(prefix="tideview-bench-"))
    spark: SparkSession | None = None
    try:
        progress("starting Spark")
        spark = start_spark(options.memory)
        about: dict[str, Any] = {"started": started, **describe(spark)}
        datasets = Datasets(spark, folder / "orders")
        sections = [_run(name, datasets, folder, plan) for name in chosen]
    finally:
        try:
            if spark is not None:
                spark.stop()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    about["seconds"] = time.perf_counter() - STARTED
    about["load_average_at_the_end"] = os.getloadavg()
    about["plan"] = {**vars(plan), "only": chosen, "is_full": plan == FULL}
    print(table(sections, about))
    file = options.json or RESULTS / f"{_name(options, chosen)}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {**about, "sections": [section.as_json() for section in sections]}
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    progress(f"written to {file}")
    if not all(section.is_right for section in sections):
        return 1
    missed = [bar for section in sections for bar in section.bars if not bar.met]
    return 1 if missed and options.strict else 0


def _run(name: str, datasets: Datasets, folder: Path, plan: Plan) -> Section:
    """One of the programs; what goes wrong in it is part of the result."""
    spark = datasets.spark
    runs: dict[str, Callable[[], Section]] = {
        "fixed": lambda: fixed.run(spark, folder / "fixed", plan),
        "change": lambda: change.run(spark, datasets, plan),
        "hydration": lambda: hydration.run(spark, datasets, plan),
        "long": lambda: long_run.run(spark, datasets, plan),
        "checkpoints": lambda: checkpoints.run(spark, datasets, plan),
        "durability": lambda: durability.run(spark, datasets, plan),
        "dedup": lambda: dedup.run(spark, folder / "dedup", plan),
        "dagster-load": lambda: dagster_load.run(folder / "dagster-load", plan),
        "dagster-run": lambda: dagster_run.run(spark, folder / "dagster-run", plan),
        "recursion": lambda: recursion.run(spark, folder / "recursion", plan),
        "tpch": lambda: tpch.run(spark, folder / "tpch", plan),
    }
    try:
        return runs[name]()
    except Exception as error:
        traceback.print_exc()
        return Section(name, name, error=f"{type(error).__name__}: {error}".splitlines()[0])


def _plan(options: argparse.Namespace) -> Plan:
    base = QUICK if options.quick else FULL
    return Plan(
        rows=options.rows or base.rows,
        repeats=options.repeats or base.repeats,
        warm_ups=base.warm_ups,
        ticks=options.ticks or base.ticks,
        scale=options.scale or base.scale,
        queries=tuple(options.query or ()),
    )


def _name(options: argparse.Namespace, chosen: list[str]) -> str:
    parts = ["quick" if options.quick else "full"]
    if options.rows:
        parts = ["rows", *map(str, options.rows)]
    if options.only:
        parts += chosen
    return "-".join(parts)


def _options(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measures ticks against Spark's own work in one warm session, and holds the "
        "ratios to their bars. Results are compared with Spark's. The full run takes long.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="100k and 1M orders, fewer repeats: some minutes"
    )
    parser.add_argument(
        "--only", action="append", choices=PROGRAMS, help="just this one; may be given again"
    )
    parser.add_argument(
        "--rows",
        type=_sizes,
        metavar="N[,N…]",
        help="sizes of orders instead of 100k, 1M and 10M; ratios are of the largest to the "
        "smallest, the long run takes the second largest",
    )
    parser.add_argument("--repeats", type=_positive, metavar="N", help="samples of each kind")
    parser.add_argument("--ticks", type=_ticks, metavar="N", help="length of the long run")
    parser.add_argument("--scale", type=float, metavar="S", help="TPC-H's scale (1; quick 0.1)")
    parser.add_argument(
        "--query", action="append", metavar="qNN", help="just this query of TPC-H; may repeat"
    )
    parser.add_argument("--memory", default="8g", help="heap of Spark's JVM (default %(default)s)")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="where the figures go (default bench/results/…)"
    )
    parser.add_argument(
        "--strict", action="store_true", help="a missed bar is an exit code of 1, as errors are"
    )
    return parser.parse_args(words)


def _positive(text: str) -> int:
    number = int(text.replace("_", ""))
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _ticks(text: str) -> int:
    number = _positive(text)
    if number < 4:
        raise argparse.ArgumentTypeError("at least 4, so that early and late ones are apart")
    return number


def _sizes(text: str) -> tuple[int, ...]:
    sizes = sorted({_positive(each) for each in text.split(",")})
    if sizes[0] < 5_000:
        raise argparse.ArgumentTypeError("at least 5000 orders, else there is nothing to scatter")
    return tuple(sizes)


if __name__ == "__main__":
    sys.exit(main())
