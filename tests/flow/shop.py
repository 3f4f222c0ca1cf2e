"""A small flow that many tests use, and what they ask of flows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ivm_core.model.digest import Digest
from ivm_core.operators.row_identity import digest_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ivm_core import IncrementalFlow

ORDERS = "id BIGINT, customer STRING, amount INT"
CUSTOMERS = "name STRING, city STRING"
VIEWS = {
    "large": "SELECT id, customer FROM orders WHERE amount >= 10",
    "totals": "SELECT customer, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY customer",
    "cities": (
        "SELECT c.city, t.total FROM totals t JOIN customers c ON t.customer = c.name "
        "WHERE t.total > 5"
    ),
}


def declare_shop(flow: IncrementalFlow) -> None:
    flow.register_source("orders", ORDERS, primary_key=["id"])
    flow.register_source("customers", CUSTOMERS, primary_key=["name"])
    for name, sql in VIEWS.items():
        flow.register_view(name, sql)


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """The rows in an order that depends on them alone."""
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def assert_exact(flow: IncrementalFlow, *views: str) -> None:
    """Each view (default: all) equals its query, and its changes add up to it, by digest."""
    for view in views or flow.views:
        comparison = flow.check(view)
        assert comparison.equal, comparison
        assert state_digest(flow, view) == flow._engine.history.states[view].digest


def state_digest(flow: IncrementalFlow, view: str) -> str:
    """The digest of all changes of a view up to now, computed from the changes themselves."""
    schema = flow._engine.catalog.schemas()[view]
    digests = (digest_of(batch.to_arrow(), schema) for _, batch in flow.watch_output(view, since=0))
    return sum(digests, Digest.zero()).hex


def log_of(flow: IncrementalFlow) -> list[tuple[str, int]]:
    """Kind and tick of every entry in the tick log but epochs."""
    log = flow._engine.log
    log.refresh()
    return [(entry.kind, entry.tick) for entry in log.entries if entry.kind != "epoch"]
