"""Checkpoints: a small one costs what is new, a full one and its restore what a copy costs."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from bench.measure import Plan, Section, progress, size_text
from bench.orders import VIEWS, Trade
from ivm_core import IncrementalFlow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bench.dataset import Datasets
    from bench.measure import Samples

DELTA_LIMIT = 1.5
COPY_LIMIT = 2.0


def run(spark: SparkSession, datasets: Datasets, plan: Plan) -> Section:
    """Delta checkpoints at the smallest and the largest size; full ones at the largest."""
    section = Section("checkpoints", "checkpoints")
    small = _deltas(section, datasets, plan, plan.smallest)
    large = _deltas(section, datasets, plan, plan.largest)
    # the same number of rows at both sizes: a batch is 1,000 rows from 100k orders on
    section.bar(f"{large.name} / {small.name}", large.median / small.median, "<=", DELTA_LIMIT)
    _full(section, spark, datasets, plan)
    return section


def _deltas(section: Section, datasets: Datasets, plan: Plan, size: int) -> Samples:
    dataset, trade = datasets.of(size), Trade(size)
    sample = section.sample(f"delta checkpoint of {trade.rows} rows at {size_text(size)}")
    progress(f"checkpoints: {size_text(size)}")
    flow = _opened(dataset.open_copy("checkpoints"))
    folder = dataset.folder / "checkpoint"
    flow.checkpoint(folder)
    for keep in plan.rounds:
        flow.tick("orders", trade.next("scattered").batch())
        made = sample.time(flow.checkpoint, folder, keep=keep)
        if keep:
            sample.note(parts=made.parts, bytes=made.bytes)
    flow.close()
    shutil.rmtree(folder)
    dataset.remove("checkpoints")
    return sample


def _full(section: Section, spark: SparkSession, datasets: Datasets, plan: Plan) -> None:
    size = size_text(plan.largest)
    dataset, trade = datasets.of(plan.largest), Trade(plan.largest)
    copying = section.sample(f"copying the files of a full checkpoint at {size}")
    making = section.sample(f"full checkpoint at {size}")
    restoring = section.sample(f"restore from it at {size}")
    flow = _opened(dataset.open_copy("full"))
    flow.tick("orders", trade.next("scattered").batch())
    folder, copy, again = (dataset.folder / name for name in ("checkpoint", "copy", "again"))
    for keep in plan.rounds:
        made = making.time(flow.checkpoint_full, folder, keep=keep)
        copying.time(shutil.copytree, folder, copy, keep=keep)
        restored = IncrementalFlow.open(again, spark)
        restoring.time(restored.restore, folder, keep=keep)
        if keep:
            making.note(parts=made.parts, bytes=made.bytes)
        is_last = len(making.seconds) == plan.repeats
        if is_last:
            progress("checkpoints: comparing results")
            for view in restored.views:
                section.check(f"restored {view} equals its query", restored.check(view).equal)
        restored.close()
        for path in (folder, copy, again):
            shutil.rmtree(path)
    flow.close()
    dataset.remove("full")
    for sample in (making, restoring):
        section.bar(f"{sample.name} / copy", sample.median / copying.median, "<=", COPY_LIMIT)


def _opened(flow: IncrementalFlow) -> IncrementalFlow:
    """The flow with the views of the bench, hydrated."""
    names = {view.replace(" ", "_").replace("-", "_"): sql for view, sql in VIEWS.items()}
    for name, sql in names.items():
        flow.register_view(name, sql)
    flow.tick(views=list(names))
    return flow
