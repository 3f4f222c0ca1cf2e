"""`python -m tideview.pipelines.feed`: changes for the shipped pipelines, the shop by default.

It knows nothing of the flow and needs no Spark: to a pipeline it is the world outside.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rich.console import Console

from ivm_core import IvmError
from tideview.pipelines.partner.trade import Partner
from tideview.pipelines.shop.trade import Shop
from tideview.pipelines.warehouse.trade import Export
from tideview.resources.flow_store import FlowStore
from tideview.resources.pipeline_folder import load_pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tideview.resources.inbox import Inbox

HERE = Path(__file__).parent
SHOP = HERE / "shop"
CUSTOMERS, ORDERS = 40, 150


class Trader(Protocol):
    """Whoever changes the sources of a pipeline."""

    def open(self) -> str:
        """Fill what is empty; says so."""

    def trade(self) -> str:
        """Change something; says what."""


class Feeder:
    """Changes the inboxes of the shop; goes on from what is in them."""

    def __init__(self, inboxes: Mapping[str, Inbox], seed: int | None = None) -> None:
        """Make the inboxes that are missing; without `seed`, no two feeders trade alike."""
        self._inboxes = inboxes
        for inbox in inboxes.values():
            inbox.make()
        rows = {name: inbox.rows() for name, inbox in inboxes.items()}
        day = datetime.now(UTC)
        self._shop = Shop(rows, seed=day.microsecond if seed is None else seed, today=day.date())

    def open(self, customers: int = CUSTOMERS, orders: int = ORDERS) -> str:
        """Fill an empty shop; one that is open already stays as it is."""
        if not self._shop.is_empty:
            return "the shop is open already"
        self._shop.open(customers, orders)
        return f"the shop opens: {self._push()}"

    def trade(self) -> str:
        """A day's trade; says what happened and how many rows of which table it changed."""
        return f"{self._shop.some_day()}: {self._push()}"

    def _push(self) -> str:
        told = []
        for name, changes in self._shop.take_changes().items():
            inbox = self._inboxes[name]
            inbox.append(changes.inserts)
            inbox.merge(changes.updates, changes.deletes)
            told.append(f"{name} {len(changes)} rows, version {inbox.version.version}")
        return "; ".join(told)


def _shop(store: FlowStore, seed: int) -> Trader:
    return Feeder(store.inboxes(load_pipeline(SHOP)), seed)


def _partner(store: FlowStore, seed: int) -> Trader:
    return Partner(store.tables(load_pipeline(HERE / "partner")), seed)


def _warehouse(store: FlowStore, seed: int) -> Trader:
    return Export(store.inboxes(load_pipeline(HERE / "warehouse")), seed)


TRADERS: dict[str, Callable[[FlowStore, int], Trader]] = {
    "shop": _shop,
    "partner": _partner,
    "warehouse": _warehouse,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Feed until told to stop, or as often as asked."""
    options = _options().parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    store = FlowStore(path=options.store or "")
    seed = datetime.now(UTC).microsecond if options.seed is None else options.seed
    try:
        names = dict.fromkeys(options.pipeline or ["shop"])
        traders = [TRADERS[name](store, seed) for name in names]
        for trader in traders:
            console.print(f"feed: {trader.open()}")
        done = 0
        while options.times is None or done < options.times:
            time.sleep(options.every)
            for trader in traders:
                console.print(f"feed: {trader.trade()}")
            done += 1
    except KeyboardInterrupt:
        return 0
    except IvmError as error:
        console.print(f"feed stopped: {error}")
        return 1
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tideview.pipelines.feed", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--pipeline",
        action="append",
        choices=sorted(TRADERS),
        help="whose sources change (default: shop); may be given again",
    )
    parser.add_argument("--store", help="the store's folder (default: TIDEVIEW_STORE)")
    parser.add_argument("--every", type=float, default=20.0, help="seconds between (default 20)")
    parser.add_argument("--times", type=int, help="changes to make (default: for ever)")
    parser.add_argument("--seed", type=int, help="the same seed and tables, the same trade")
    return parser


if __name__ == "__main__":
    sys.exit(main())
