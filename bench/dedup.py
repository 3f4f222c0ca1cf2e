"""Dedup: what remembering ten million batches adds to a tick."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bench.measure import Plan, Section, progress, size_text
from bench.orders import SCHEMAS, VIEWS, Trade, tables
from ivm_core import IncrementalFlow
from ivm_core.store.key_files import ENTRY_BYTES, FOLD_EVERY, MERGE, KeyFiles
from ivm_core.store.location import Location

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

LIMIT = 1.1
ENTRIES, QUICK_ENTRIES = 10_000_000, 1_000_000
VIEW = "grouped sum"


def run(spark: SparkSession, folder: Path, plan: Plan) -> Section:
    """The same changes to two flows, one of which remembers that many batches."""
    rows = plan.smallest
    entries = QUICK_ENTRIES if plan.is_quick else ENTRIES
    section = Section("dedup", f"{size_text(entries)} remembered batches, {size_text(rows)} orders")
    flows = {}
    for name, more in (("plain", {}), ("remembering", {"dedup": True})):
        progress(f"dedup: loading the {name} flow")
        flow = flows[name] = IncrementalFlow.open(folder / name, spark)
        flow.register_source("orders", SCHEMAS["orders"], primary_key=["id"], **more)
        flow.register_view("sums", VIEWS[VIEW])
        flow.tick("orders", tables(spark, rows)["orders"])
    flows["remembering"].close()
    progress("dedup: making a memory")
    remember(folder / "remembering" / "sources" / "orders" / "dedup", entries)
    flows["remembering"] = IncrementalFlow.open(folder / "remembering", spark)
    trade = Trade(rows)
    samples = {name: section.sample(f"tick of {trade.rows}, {name}") for name in flows}
    for keep in plan.rounds:
        batch = trade.next("scattered").batch()
        for name, flow in flows.items():
            samples[name].time(flow.tick, "orders", batch, keep=keep)
    remembering = flows["remembering"]
    again = remembering.tick("orders", batch)
    section.check("the last batch is known", again.dropped == ("orders",))
    number = remembering._engine.history.dedup["orders"].number  # noqa: SLF001
    section.check("the memory was there", number > entries)
    for name, flow in flows.items():
        section.check(f"{name}: sums equals its query", flow.check("sums").equal)
        flow.close()
    ratio = samples["remembering"].median / samples["plain"].median
    section.bar("tick with memory / tick without", ratio, "<=", LIMIT)
    return section


def remember(folder: Path, count: int = ENTRIES) -> None:
    """Files of keys as that many batches leave them."""
    files = KeyFiles(Location(folder))
    size = FOLD_EVERY * MERGE
    for first in range(2, count, size):
        keys = os.urandom(size * ENTRY_BYTES // 2)
        entries = [(keys[at * 16 : at * 16 + 16], first + at, 1) for at in range(size)]
        files.add(entries, 1)
