"""Ticks in which no rows go: what is known is compared with what comes, and the input isn't read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import DeltaBatch, IncrementalFlow
from ivm_core.engine import evaluation
from ivm_core.engine.relations import TickRelations
from tests.flow.shop import ORDERS, assert_exact

if TYPE_CHECKING:
    from collections.abc import Callable

VIEWS = {
    "first_two": (
        "SELECT id, customer, place FROM (SELECT *, row_number() OVER "
        "(PARTITION BY customer ORDER BY amount DESC, id) AS place FROM orders) WHERE place <= 2"
    ),
    "newest": (
        "SELECT * FROM orders QUALIFY row_number() OVER (PARTITION BY customer ORDER BY id DESC) = 1"
    ),
    "cheapest": "SELECT id, amount FROM orders ORDER BY amount, id LIMIT 2",
    "extremes": "SELECT customer, MIN(amount) AS lo, MAX(amount) AS hi FROM orders GROUP BY customer",
}
NODES = {"first_two": "first_two#1", "newest": "newest#1", "cheapest": "cheapest#1"}
FIRST = [(n, f"c{n % 3}", 10 * n) for n in range(1, 31)]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The relations whose rows before the tick are asked for, by the driver or by Spark."""
    asked: list[str] = []

    def noted(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(relations: TickRelations, name: str, *args: object) -> object:
            asked.append(name)
            return method(relations, name, *args)

        return call

    for name in ("old", "stored"):
        monkeypatch.setattr(TickRelations, name, noted(getattr(TickRelations, name)))
    return asked


@pytest.mark.parametrize("gear", ["low gear", "high gear"])
def test_insertions_do_without_the_input(
    flow: IncrementalFlow, reads: list[str], monkeypatch: pytest.MonkeyPatch, gear: str
) -> None:
    flow.register_source("orders", ORDERS)
    flow.register_views(VIEWS)
    flow.tick("orders", DeltaBatch.inserts(FIRST))
    if gear == "high gear":
        monkeypatch.setattr(evaluation.ViewEvaluation, "_why_high", lambda *_: "the test wants it")
    reads.clear()
    summary = flow.tick(
        "orders", DeltaBatch.inserts([(40, "c1", 5), (41, "c2", 999), (42, "d", 1)])
    )
    assert "orders" not in reads
    for view, node in (*NODES.items(), ("extremes", "extremes#1")):
        way = summary.views[view].ways[node].replace("folded in ", "")
        assert way.startswith(f"delta, insert-only, {gear}")
    # a new first row moves one down and another out, and there is a new customer
    assert summary.views["first_two"].rows_out == 5
    assert summary.views["newest"].rows_out == 5
    monkeypatch.undo()
    assert_exact(flow)


def test_a_deletion_goes_back_to_the_rows_of_its_key(
    flow: IncrementalFlow, reads: list[str]
) -> None:
    flow.register_source("orders", ORDERS, primary_key=["id"])
    flow.register_views(VIEWS)
    flow.tick("orders", DeltaBatch.inserts(FIRST))
    reads.clear()
    summary = flow.tick("orders", DeltaBatch.delete_keys([30]))
    assert "orders" in reads
    ways = summary.views["newest"].ways
    assert ways["newest#1"].startswith("affected keys recomputed")
    assert "insert-only" not in str(summary.views)
    assert_exact(flow)


def test_only_the_first_rows_are_kept(flow: IncrementalFlow) -> None:
    flow.register_source("orders", ORDERS)
    flow.register_views(VIEWS)
    flow.tick("orders", DeltaBatch.inserts(FIRST))
    kept = {
        trace.trace: trace.stored_rows
        for view in ("first_two", "newest")
        for step in flow.explain(view).steps
        for trace in step.state
    }
    assert kept["views/first_two/node_1/rows"] == 6
    assert kept["views/newest/node_1/rows"] == 3
    node = next(each for each in flow.explain("newest").nodes if each.node.startswith("window"))
    assert node.steps == ("newest#1",)
