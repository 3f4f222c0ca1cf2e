"""`python -m tideview.pipelines.demo`: the shop, hydrated, changed tick by tick, each tick checked.

Ends with exit code 1 where a view differs from its query, or a replayed tick from its record.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from datetime import time as day_time
from pathlib import Path
from typing import TYPE_CHECKING

from ivm_core import DeltaBatch, IncrementalFlow, IvmError, UserError
from ivm_core.engine.local_spark import local_spark
from tideview.pipelines.demo_report import Report
from tideview.pipelines.shop.trade import KEY_WIDTH, Shop, TableChanges
from tideview.resources.pipeline_folder import load_pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ivm_core import StepSummary

SHOP = Path(__file__).with_name("shop")


@dataclass(frozen=True)
class Scene:
    """What happens before one tick: in words, and as actions of the shop with how many of each."""

    title: str
    acts: tuple[tuple[Callable[[Shop, int], None], int], ...]


SCENES = (
    Scene("new orders: inserts only", ((Shop.order, 8),)),
    Scene("deliveries, some of them late: updates", ((Shop.deliver, 12),)),
    Scene("customers move: views without customers have nothing to do", ((Shop.move, 3),)),
    Scene(
        "cancellations and returns: updates and deletes", ((Shop.cancel, 4), (Shop.return_items, 6))
    ),
    Scene(
        "all at once: two customers leave, others order, deliveries, new prices",
        ((Shop.forget, 2), (Shop.order, 5), (Shop.deliver, 3), (Shop.reprice, 2)),
    ),
)


@dataclass
class Demo:
    """The flow, the shop that changes it, and what has been found wrong so far."""

    flow: IncrementalFlow
    shop: Shop
    report: Report
    failures: int = 0
    summaries: list[StepSummary] = field(default_factory=list)

    def tick(self, title: str) -> None:
        """Take the shop's changes into the flow, and compare every view with its query."""
        self.report.heading(title)
        batches = {name: batch_of(name, each) for name, each in self.shop.take_changes().items()}
        noon = datetime.combine(self.shop.today, day_time(12), UTC)
        summary = self.flow.tick(batches, logical_time=noon)
        started = time.perf_counter()
        checks = {view: self.flow.check(view) for view in self.flow.views}
        self.report.step(summary, checks, time.perf_counter() - started)
        self.failures += sum(not check.equal for check in checks.values())
        self.summaries.append(summary)

    def run(self, customers: int, orders: int, ticks: int) -> None:
        """Hydrate, change, show, replay."""
        self.shop.open(customers, orders)
        self.tick(f"hydration: {customers} customers, {orders} orders")
        for scene in SCENES[:ticks]:
            self.shop.today += timedelta(days=1)
            for act, count in scene.acts:
                act(self.shop, count)
            self.tick(scene.title)
        self.report.rows(self.flow, "best_sellers", "units", 5)
        self.report.rows(self.flow, "apologies", "revenue", 5)
        self.report.certificate(self.summaries[-1])
        self.report.heading("the same ticks once more, in a flow of their own")
        started = time.perf_counter()
        replay = self.flow.replay()
        self.report.replay(replay, time.perf_counter() - started)
        self.failures += not replay.equal


def batch_of(table: str, changes: TableChanges) -> DeltaBatch:
    """The changes of one table as a batch: new rows, rows by key, keys that go."""
    keys = [row[: KEY_WIDTH[table]] for row in changes.deletes]
    return (
        DeltaBatch.inserts(changes.inserts)
        + DeltaBatch.upserts(changes.updates)
        + DeltaBatch.delete_keys(keys)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 when every check was equal."""
    options = _options().parse_args(arguments)
    report = Report()
    store = options.store
    folder = Path(tempfile.mkdtemp(prefix="tideview-demo-")) if store is None else store
    try:
        return _run(options, folder, report)
    except IvmError as error:
        report.line(f"\nthe demo stopped: {error}")
        return 1
    finally:
        if store is None:
            shutil.rmtree(folder, ignore_errors=True)


def _run(options: argparse.Namespace, folder: Path, report: Report) -> int:
    started = time.perf_counter()
    pipeline = load_pipeline(SHOP)
    report.line(f"{pipeline.name}: {pipeline.description}")
    if (folder / "flow").exists():
        raise UserError(
            "there is a flow already", where=str(folder / "flow"), fix="give --store a new folder"
        )
    report.line("starting Spark …")
    spark = local_spark("tideview-demo")
    report.line(f"Spark {spark.version} is up ({time.perf_counter() - started:.1f} s)")
    with IncrementalFlow.open(folder / "flow", spark) as flow:
        registering = time.perf_counter()
        pipeline.register_fed(flow)
        report.line(
            f"{len(flow.sources)} sources and {len(flow.views)} views registered "
            f"({time.perf_counter() - registering:.1f} s)"
        )
        demo = Demo(flow, Shop(seed=options.seed), report)
        demo.run(options.customers, options.orders, options.ticks)
    report.heading("what next")
    if options.store is not None:
        report.line(f'the flow is kept: IncrementalFlow.open("{folder / "flow"}")')
    report.line("the same views in Dagster's web interface, ticking by themselves: make ui")
    total = time.perf_counter() - started
    verdict = f"{demo.failures} CHECKS FAILED" if demo.failures else "every check was equal"
    report.line(f"{len(demo.summaries)} ticks, {verdict}, {total:.0f} s in all")
    return 1 if demo.failures else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tideview.pipelines.demo", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--store", type=Path, help="keep the flow in this folder (default: none)")
    parser.add_argument("--customers", type=int, default=40, help="at the opening (default 40)")
    parser.add_argument("--orders", type=int, default=150, help="at the opening (default 150)")
    parser.add_argument(
        "--ticks",
        type=int,
        default=len(SCENES),
        choices=range(len(SCENES) + 1),
        help=f"ticks after the hydration (default {len(SCENES)}, all there are)",
    )
    parser.add_argument("--seed", type=int, default=1, help="another one makes other rows")
    return parser


if __name__ == "__main__":
    sys.exit(main())
