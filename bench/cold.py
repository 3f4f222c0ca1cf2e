"""A new process from nothing to its first committed tick, beside plain pyspark with Delta.

Both are timed from the start of the process until it says that it is done: a tick of a new flow, or
one write and one read of a Delta table. What a process needs to end is no part of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter
from typing import TYPE_CHECKING

from bench.measure import Plan, Section, progress
from ivm_core.engine.delta_jars import delta_jars

if TYPE_CHECKING:
    from bench.measure import Samples

LIMIT = 0.5
REPEATS = 5
ROWS = [[1, "ann", 5], [2, "bob", 7], [3, "ann", 1]]
OURS = """
import json, sys
from ivm_core import IncrementalFlow
flow = IncrementalFlow.open(sys.argv[1])
flow.register_source("orders", "id BIGINT, customer STRING, amount BIGINT", primary_key=["id"])
flow.register_view("totals", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer")
summary = flow.tick("orders", [tuple(row) for row in json.loads(sys.argv[2])])
print("done", flush=True)
found = sorted(map(list, flow.snapshot("totals").collect()))
print(json.dumps(found), flush=True)
flow.close()
"""
THEIRS = """
import json, sys
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars", sys.argv[3])
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
rows = [tuple(row) for row in json.loads(sys.argv[2])]
orders = spark.createDataFrame(rows, "id BIGINT, customer STRING, amount BIGINT")
orders.write.format("delta").save(sys.argv[1])
totals = spark.read.format("delta").load(sys.argv[1]).groupBy("customer").sum("amount").collect()
print("done", flush=True)
print(json.dumps(sorted(map(list, totals))), flush=True)
spark.stop()
"""


def run(folder: Path, plan: Plan) -> Section:
    """Both in turn, each in a folder of its own."""
    section = Section("cold", "cold: a new process to its first tick, against pyspark and Delta")
    folder.mkdir(parents=True, exist_ok=True)
    ours = section.sample("new process to its first committed tick")
    theirs = section.sample("pyspark and Delta: new process to one write and one read")
    jars = ",".join(str(jar) for jar in delta_jars())
    found = []
    rounds = [True] if plan.is_quick else [False, *[True] * min(REPEATS, plan.repeats)]
    for number, keep in enumerate(rounds):
        progress(f"cold: round {number + 1}")
        for sample, program in ((ours, OURS), (theirs, THEIRS)):
            target = folder / f"{number}-{program is OURS}"
            found.append(_timed(sample, program, target, jars, keep=keep))
    section.check("both have the same totals", all(each == found[0] for each in found))
    section.bar("first tick / write and read", ours.median / theirs.median, "<=", LIMIT)
    section.notes.append(
        "Delta's jars are on disk for both; Tideview also has the class archive that set-up made"
    )
    return section


def _timed(sample: Samples, program: str, target: Path, jars: str, *, keep: bool) -> object:
    root = str(Path(__file__).resolve().parents[1])
    with TemporaryFile("w+") as errors:
        started = perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(target), json.dumps(ROWS), jars],
            cwd=target.parent,
            env={**os.environ, "PYTHONPATH": root},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        assert process.stdout is not None
        with process, process.stdout as said:
            first = said.readline().strip()
            elapsed = perf_counter() - started
            found = said.read()
        if first != "done" or process.returncode:
            errors.seek(0)
            told = errors.read()[-1000:]
            raise RuntimeError(f"the process ended with {process.returncode}: {told}")
    if keep:
        sample.seconds.append(elapsed)
    return json.loads(found)
