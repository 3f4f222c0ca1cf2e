"""Peers side by side: the same orders in Delta, the same new ones, the same result checked.

A peer at a time, each on copies of its own: some of them keep a query running that takes time from
everybody else. A peer that isn't installed, or fails, is named as absent, with the reason.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from bench.dataset import copy_of
from bench.measure import Plan, Section, progress, size_text
from bench.orders import CHANGED_ROWS, SCHEMAS, VIEWS
from bench.peers.case import Case
from bench.peers.peer import Absent, FullRefresh, StructuredStreaming, Tideview
from bench.peers.worker import DeclarativePipelines, DuckDb, Pathway

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bench.dataset import Dataset, Datasets
    from bench.measure import Samples
    from bench.peers.peer import Peer

PEERS: tuple[type[Peer], ...] = (
    Tideview,
    FullRefresh,
    DeclarativePipelines,
    StructuredStreaming,
    DuckDb,
    Pathway,
)


def run(spark: SparkSession, datasets: Datasets, plan: Plan) -> Section:
    """Both views of the orders (quick: the join), at the second largest size."""
    rows = plan.rows[-2] if len(plan.rows) > 1 else plan.largest
    section = Section(
        "peers", f"peers: {CHANGED_ROWS:,} new orders to {size_text(rows)}, result up to date"
    )
    section.notes += [f"{each.name}: {each.about}" for each in PEERS]
    for view in list(VIEWS)[-1:] if plan.is_quick else VIEWS:
        found: dict[str, Samples] = {}
        for kind in PEERS:
            sample = section.sample(f"{view}: {kind.name}")
            try:
                _measure(section, kind(), _case(spark, datasets.of(rows), view), sample, plan)
            except Absent as reason:
                section.absent[kind.name] = str(reason)
            except Exception as error:
                section.absent[kind.name] = f"failed: {str(error).splitlines()[0]}"
                section.check(f"{view}: {kind.name} ran", False)
                progress(f"peers: {kind.name} {section.absent[kind.name]}")
            if sample.seconds:
                found[kind.name] = sample
                progress(f"peers: {view}, {kind.name}, {sample.median:.3f} s")
        ours = found.get(Tideview.name)
        for name, sample in found.items():
            if ours is not None and sample is not ours:
                section.compare(f"{view}: {name} / Tideview", sample.median, ours.median)
    return section


def _case(spark: SparkSession, dataset: Dataset, view: str) -> Case:
    folder = dataset.folder / "peers"
    shutil.rmtree(folder, ignore_errors=True)
    tables = {name: copy_of(dataset.delta_table(name), folder / name) for name in SCHEMAS}
    return Case(spark, folder, view, dataset.orders, tables)


def _measure(section: Section, peer: Peer, case: Case, sample: Samples, plan: Plan) -> None:
    progress(f"peers: {case.view}, {peer.name} begins")
    peer.start(case)
    try:
        for keep in plan.rounds:
            new = case.append(CHANGED_ROWS)
            sample.time(peer.refresh, new, keep=keep)
        right = peer.rows() == case.expected()
        section.check(f"{case.view}: {peer.name} has Spark's result", right)
    finally:
        peer.stop()
