"""A small flow that many tests use, and what they ask of flows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

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
    """Each view (default: all) equals its query, and its changes add up to it."""
    for view in views or flow.views:
        comparison = flow.check(view)
        assert comparison.equal, comparison
        added_up: Counter[str] = Counter()
        for *values, weight, _tick in flow.changes(view).collect():
            added_up[repr(tuple(values))] += weight
        assert +added_up == Counter(repr(tuple(row)) for row in flow.snapshot(view).collect())
        assert min(added_up.values(), default=0) >= 0


def log_of(flow: IncrementalFlow) -> list[tuple[str, int]]:
    """Kind and tick of every entry in the tick log but epochs."""
    log = flow._engine.log
    log.refresh()
    return [(entry.kind, entry.tick) for entry in log.entries if entry.kind != "epoch"]
