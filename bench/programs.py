"""The programs by name, in the order in which they run."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench import (
    change,
    checkpoints,
    cold,
    dag,
    dagster_load,
    dagster_run,
    dedup,
    durability,
    fixed,
    flat,
    hydration,
    kernel,
    large_change,
    long_run,
    recursion,
    state,
    throughput,
    wide,
)
from bench.measure import Section, progress
from bench.nexmark import program as nexmark
from bench.peers import program as peers
from bench.tpch import matrix, program

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from bench.dataset import Datasets
    from bench.measure import Plan
    from bench.tpch.stock import Stocks


@dataclass(frozen=True)
class Bench:
    """What a program is given."""

    spark: SparkSession
    datasets: Datasets
    stocks: Stocks
    folder: Path
    """Of its own."""
    plan: Plan


PROGRAMS: dict[str, Callable[[Bench], Section]] = {
    "fixed": lambda b: fixed.run(b.spark, b.folder, b.plan),
    "dag": lambda b: dag.run(b.spark, b.folder, b.plan),
    "cold": lambda b: cold.run(b.folder, b.plan),
    "change": lambda b: change.run(b.spark, b.datasets, b.plan),
    "large-change": lambda b: large_change.run(b.spark, b.datasets, b.plan),
    "hydration": lambda b: hydration.run(b.spark, b.datasets, b.plan),
    "long": lambda b: long_run.run(b.spark, b.datasets, b.plan),
    "state": lambda b: state.run(b.spark, b.datasets, b.plan),
    "kernel": lambda b: kernel.run(b.spark, b.datasets, b.plan),
    "wide": lambda b: wide.run(b.spark, b.folder, b.plan),
    "throughput": lambda b: throughput.run(b.spark, b.folder, b.plan),
    "checkpoints": lambda b: checkpoints.run(b.spark, b.datasets, b.plan),
    "durability": lambda b: durability.run(b.spark, b.datasets, b.plan),
    "dedup": lambda b: dedup.run(b.spark, b.folder, b.plan),
    "dagster-load": lambda b: dagster_load.run(b.folder, b.plan),
    "dagster-run": lambda b: dagster_run.run(b.spark, b.folder, b.plan),
    "recursion": lambda b: recursion.run(b.spark, b.folder, b.plan),
    "peers": lambda b: peers.run(b.spark, b.datasets, b.plan),
    "nexmark": lambda b: nexmark.run(b.spark, b.folder, b.plan),
    "flat": lambda b: flat.run(b.stocks, b.plan),
    "tpch-changes": lambda b: matrix.run(b.stocks, b.plan),
    "tpch": lambda b: program.run(b.stocks, b.plan),
}
ELSEWHERE = ("cold", "dagster-load", "dagster-run", "peers")
"""Programs that start processes with a Spark of their own: not for another Spark."""

LEFT_OUT_OF_QUICK = ("checkpoints", "durability", "dedup", "dagster-load", "dagster-run")
"""Programs that --quick names as not measured, unless it is asked for them."""


def run(name: str, bench: Bench) -> Section:
    """One of the programs; what goes wrong in it is part of the result."""
    try:
        return PROGRAMS[name](bench)
    except Exception as error:
        traceback.print_exc()
        progress(f"{name}: FAILED")
        return Section(name, name, error=f"{type(error).__name__}: {error}".splitlines()[0])
