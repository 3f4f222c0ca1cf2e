"""Views that share nodes are altered, dropped and renamed; so are views that the nodes read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import DeltaBatch, IncrementalFlow, UserError
from tests.flow.shop import CUSTOMERS, ORDERS, assert_exact, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TOTALS = "SELECT {o}.customer, SUM({o}.amount) AS total, COUNT(*) AS n FROM {of} {o} GROUP BY 1"


def totals(alias: str, of: str = "orders") -> str:
    return f"({TOTALS.format(o=alias, of=of)})"


VIEWS = {
    "large": f"SELECT customer, total FROM {totals('a')} WHERE n > 1",
    "cities": (
        f"SELECT c.city, x.total, x.n FROM {totals('b')} x JOIN customers c ON c.name = x.customer"
    ),
}
ONE_BY_ONE = (
    "SELECT c.city, BIGINT(o.amount) AS total, o.id AS n FROM orders o "
    "JOIN customers c ON c.name = o.customer"
)


def nodes(flow: IncrementalFlow) -> list[list[str]]:
    """The views that read each shared node."""
    return [flow._engine.catalog.sharers(name) for name in flow._engine.history.shared]


@pytest.fixture
def sold(flow: IncrementalFlow) -> IncrementalFlow:
    flow.register_source("orders", ORDERS, primary_key=["id"])
    flow.register_source("customers", CUSTOMERS, primary_key=["name"])
    return flow


def first_rows(flow: IncrementalFlow) -> None:
    flow.tick(
        {
            "orders": DeltaBatch.inserts([(1, "ann", 5), (2, "ann", 7), (3, "bob", 2)]),
            "customers": DeltaBatch.inserts([("ann", "Oslo"), ("bob", "Rome")]),
        }
    )


def test_a_view_that_shares_a_node_is_altered(
    sold: IncrementalFlow, place: Path, spark: SparkSession
) -> None:
    sold.register_views(VIEWS)
    first_rows(sold)
    (name,) = sold._engine.history.shared
    report = sold.alter_view("large", VIEWS["large"].replace("n > 1", "n < 2"))
    assert (report.inserted, report.deleted) == (1, 1)
    assert sorted(nodes(sold)[0]) == ["cities", "large"]
    summary = sold.tick("orders", [(4, "bob", 1)])
    assert list(summary.shared) == [name]
    assert list(summary.views["large"].ways) == ["large"]
    assert_exact(sold)
    sold.alter_view("cities", ONE_BY_ONE)
    assert nodes(sold) == [["large"]]
    prepared = sold.alter_view("large", VIEWS["large"].replace("n > 1", "n = 2"), swap=False)
    assert nodes(sold) == [["large", prepared.prepared]]
    sold.tick("orders", [(5, "eve", 6)])
    sold.alter_view("large", "SELECT customer, MAX(amount) AS total FROM orders GROUP BY 1")
    assert nodes(sold) == []
    assert not sold.tick("orders", [(6, "eve", 1)]).shared
    sold.register_views({f"{view}_again": sql for view, sql in VIEWS.items()})
    (other,) = sold._engine.history.shared
    assert other != name
    sold.tick("orders", DeltaBatch.delete_keys([2]))
    assert_exact(sold, "cities", "large_again", "cities_again")
    assert sold.check("large").equal
    assert sold.replay().equal
    sold.close()
    with IncrementalFlow.open(place, spark) as again:
        again.tick("orders", [(7, "bob", 9)])
        assert rows(again.snapshot("large_again")) == [("bob", 12), ("eve", 7)]
        assert all(again.check(view).equal for view in again.views)
        assert again.replay().equal


def test_views_are_renamed_and_dropped_beside_and_below_a_shared_node(
    sold: IncrementalFlow, place: Path, spark: SparkSession
) -> None:
    sold.register_views(
        {
            "paid": "SELECT id, customer, amount FROM orders WHERE amount > 1",
            "towns": "SELECT city, name FROM customers WHERE city IS NOT NULL",
            "cities": (
                f"SELECT t.city, x.total, x.n FROM {totals('b', 'paid')} x "
                "JOIN towns t ON t.name = x.customer"
            ),
            "large": f"SELECT customer, total FROM {totals('a', 'paid')} WHERE n > 1",
        }
    )
    first_rows(sold)
    (name,) = sold._engine.history.shared
    assert nodes(sold) == [["cities", "large"]]
    sold.rename_view("paid", "settled")
    sold.rename_view("large", "many")
    assert nodes(sold) == [["cities", "many"]]
    summary = sold.tick("orders", [(4, "bob", 8), (5, "ann", 1)])
    assert "hydrated" not in summary.shared[name].ways[name]
    assert_exact(sold)
    # over the new name it is the same node, over another view of the old name another one
    sold.register_view("few", f"SELECT customer, total FROM {totals('z', 'settled')} WHERE n = 1")
    assert nodes(sold) == [["cities", "many", "few"]]
    sold.register_view("paid", "SELECT id, customer, amount FROM orders WHERE amount < 9")
    sold.register_views(
        {
            view: f"SELECT customer, n FROM {totals('y', 'paid')} WHERE n > {view[1]}"
            for view in ("p1", "p2")
        }
    )
    assert nodes(sold) == [["cities", "many", "few"], ["p1", "p2"]]
    sold.tick("orders", [(6, "eve", 9)])
    with pytest.raises(UserError, match="read by"):
        sold.drop_view("settled")
    # the node was found in the text of cities, which names towns too
    sold.drop_view("towns", cascade=True)
    assert nodes(sold) == [["many", "few"], ["p1", "p2"]]
    sold.register_view("towns", "SELECT DISTINCT city FROM customers")
    sold.alter_view("settled", "SELECT id, customer, amount, 1 AS one FROM orders WHERE amount > 4")
    sold.tick("orders", DeltaBatch.delete_keys([6]))
    assert sold.check("settled").equal
    assert_exact(sold, "many", "few", "p1", "p2", "towns")
    assert sold.replay().equal
    sold.close()
    with IncrementalFlow.open(place, spark) as again:
        again.tick("orders", [(7, "bob", 9)])
        assert rows(again.snapshot("many")) == [("ann", 12), ("bob", 17)]
        assert_exact(again, "many", "few", "p1", "p2", "towns")
        again.drop_view("settled", cascade=True)
        assert nodes(again) == [["p1", "p2"]]
        assert again.replay().equal
        (left,) = again._engine.history.shared
    with IncrementalFlow.open(place, spark) as again:
        again.tick("orders", [(8, "bob", 9)], views=[])
        folders = {each.name for each in (place / "shared").iterdir() if any(each.iterdir())}
        assert folders == {left.removeprefix("__shared_")}  # what nobody reads is deleted


def test_another_function_is_another_node(sold: IncrementalFlow) -> None:
    inner = "(SELECT customer, SUM(grown(amount)) AS s FROM orders GROUP BY customer)"
    sold.register_function("grown", lambda x: x + 1, "INT", deterministic=True)
    sold.register_views({"a": f"SELECT s FROM {inner}", "b": f"SELECT s + 1 AS s FROM {inner}"})
    first_rows(sold)
    sold.register_function("grown", lambda x: x + 2, "INT", deterministic=True)
    sold.alter_view("a", also={"b": None})
    assert nodes(sold) == []
    sold.tick("orders", [(4, "bob", 1)])
    assert rows(sold.snapshot("a")) == [(16,), (7,)]
    assert_exact(sold)
