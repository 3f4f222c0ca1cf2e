"""What durability costs: reopening after a kill, a replay, and the swap of an altered view."""

from __future__ import annotations

import gc
import shutil
from typing import TYPE_CHECKING

from bench.measure import Plan, Section, progress, size_text
from bench.orders import VIEWS, Trade
from ivm_core import IncrementalFlow
from ivm_core.store import faults

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from bench.dataset import Datasets
    from ivm_core import DeltaBatch

REOPEN_LIMIT = 2.0
REPLAY_LIMIT = 1.2
SWAP_LIMIT = 1.0
TICKS = 100
SUMS = "SELECT customer_id, SUM(amount) AS total, COUNT(*) AS orders FROM orders "
TEXTS = (f"{SUMS}WHERE quantity > 1 GROUP BY customer_id", f"{SUMS}GROUP BY customer_id")
"""Definitions of one view that take turns."""


class Killed(BaseException):
    """The process would be dead by now."""


def run(spark: SparkSession, datasets: Datasets, plan: Plan) -> Section:
    """All three over the smallest number of orders."""
    size = size_text(plan.smallest)
    section = Section("durability", f"durability, over {size} orders")
    dataset, trade = datasets.of(plan.smallest), Trade(plan.smallest)
    flow = dataset.open_copy("durable")
    place = dataset.folder / "durable"
    for view, sql in VIEWS.items():
        flow.register_view(view.replace(" ", "_").replace("-", "_"), sql)
    flow.register_view("altered", TEXTS[-1])
    flow.tick(views=list(flow.views))
    _replay(section, flow, dataset.folder / "shadow", trade, min(TICKS, plan.ticks))
    _swaps(section, flow, plan, trade)
    flow.close()
    _reopenings(section, spark, place, plan, trade)
    dataset.remove("durable")
    return section


def _replay(
    section: Section, flow: IncrementalFlow, shadow: Path, trade: Trade, count: int
) -> None:
    progress("durability: what came before, replayed")
    for _ in range(5):
        flow.tick("orders", trade.next("scattered").batch())
    first = flow.current_tick
    flow.replay(1, first, into=shadow)
    progress(f"durability: {count} ticks, and again")
    ticks, again = section.sample(f"{count} ticks"), section.sample(f"their replay, {count} ticks")
    ticks.time(lambda: [flow.tick("orders", trade.next("scattered").batch()) for _ in range(count)])
    found = again.time(lambda: flow.replay(1, flow.current_tick, into=shadow))
    section.check(f"{count} replayed ticks have the recorded digests", found.equal)
    section.bar(f"{again.name} / the ticks", again.median / ticks.median, "<=", REPLAY_LIMIT)
    shutil.rmtree(shadow)


def _swaps(section: Section, flow: IncrementalFlow, plan: Plan, trade: Trade) -> None:
    progress("durability: swaps of an altered view")
    tick = section.sample(f"tick of {trade.rows} rows, three views")
    swap = section.sample("swap of an altered view that is prepared")
    for number, keep in enumerate(plan.rounds):
        text = TEXTS[number % 2]
        flow.alter_view("altered", text, swap=False)
        tick.time(flow.tick, "orders", trade.next("scattered").batch(), keep=False)
        report = swap.time(flow.alter_view, "altered", text, keep=keep)
        tick.time(flow.tick, "orders", trade.next("scattered").batch(), keep=keep)
        if keep:
            swap.note(rows=report.inserted + report.deleted)
    section.check("altered equals its query", flow.check("altered").equal)
    section.bar(f"{swap.name} / tick", swap.median / tick.median, "<=", SWAP_LIMIT)


def _reopenings(
    section: Section, spark: SparkSession, place: Path, plan: Plan, trade: Trade
) -> None:
    """An ordinary one takes the batch that the one after a kill finds begun."""
    progress("durability: reopening")
    ordinary = section.sample("opening a flow, and a tick")
    after = section.sample("opening a flow whose tick was killed before its commit")
    for keep in plan.rounds:
        batch = trade.next("scattered").batch()
        flow = ordinary.time(_opened_and_ticked, place, spark, batch, keep=keep)
        flow.close()
        _killed(place, spark, trade.next("scattered").batch())
        gc.collect()
        flow = after.time(IncrementalFlow.open, place, spark, keep=keep)
        section.check("the killed tick is there", flow.current_tick > 0 and not _is_pending(flow))
        flow.close()
    with IncrementalFlow.open(place, spark) as flow:
        for view in flow.views:
            section.check(f"{view} after kills equals its query", flow.check(view).equal)
    section.bar(f"{after.name} / ordinary", after.median / ordinary.median, "<=", REOPEN_LIMIT)


def _opened_and_ticked(place: Path, spark: SparkSession, batch: DeltaBatch) -> IncrementalFlow:
    flow = IncrementalFlow.open(place, spark)
    flow.tick("orders", batch)
    return flow


def _is_pending(flow: IncrementalFlow) -> bool:
    return flow._engine.history.pending is not None  # noqa: SLF001


def _killed(place: Path, spark: SparkSession, batch: DeltaBatch) -> None:
    """A tick that ends right before the commit that would make it visible."""
    flow = IncrementalFlow.open(place, spark)

    def at_point(name: str) -> None:
        if name == "before:ticklog.commit" and _is_pending(flow):
            raise Killed(name)

    faults.on_fault_point = at_point
    try:
        flow.tick("orders", batch)
    except Killed:
        pass
    finally:
        faults.on_fault_point = None
    flow.close()
