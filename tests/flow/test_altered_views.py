"""A view's SQL changes: what is the same, what is swapped, who gets the difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import (
    DefinitionConflict,
    DeltaBatch,
    IncrementalFlow,
    OutOfRange,
    TickFailed,
    UnknownName,
    UserError,
)
from ivm_core.engine import swapping
from tests.flow.shop import VIEWS, assert_exact, log_of, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ORDERS = [(1, "ann", 20), (2, "bob", 4), (3, "ann", 7), (4, "cy", 9)]
CUSTOMERS = [("ann", "Rome"), ("bob", "Oslo"), ("cy", "Rome")]
OVER_FIVE = (
    "SELECT customer, COUNT(*) AS n, SUM(amount) AS total FROM orders WHERE amount > 5 "
    "GROUP BY customer"
)


@pytest.fixture
def sold(shop: IncrementalFlow) -> IncrementalFlow:
    shop.tick({"orders": ORDERS, "customers": CUSTOMERS})
    return shop


def test_another_form_of_the_text_rebuilds_nothing(sold: IncrementalFlow) -> None:
    before = log_of(sold)
    report = sold.alter_view(
        "cities",
        """WITH named AS (SELECT name, city FROM customers)
        SELECT n.city, s.total FROM named n JOIN totals AS s ON n.name = s.customer
        WHERE s.total > 5""",
    )
    assert report.same_meaning
    assert report.fingerprint == report.fingerprint_before
    assert not report.swapped
    assert "nothing is rebuilt" in str(report)
    assert log_of(sold) == before


def test_a_swap_emits_the_difference_to_everything_downstream(
    sold: IncrementalFlow, place: Path, spark: SparkSession
) -> None:
    watch = sold.watch_output("totals")
    below = sold.watch_output("cities", since=1)
    report = sold.alter_view("totals", OVER_FIVE)
    assert (report.tick, report.inserted, report.deleted) == (2, 0, 1)
    assert (report.rows_before, report.rows) == (3, 2)
    assert report.sample == ({"customer": "bob", "n": 1, "total": 4, "_weight": -1},)
    assert report.digest_before != report.digest
    assert report.downstream == {"cities": 0}
    assert [(t, batch.to_arrow().to_pylist()) for t, batch in watch] == [(2, list(report.sample))]
    report = sold.alter_view("totals", OVER_FIVE.replace("5", "8"))
    assert (report.tick, report.inserted, report.deleted) == (3, 1, 1)
    assert report.downstream == {"cities": 2}
    assert [t for t, _ in below] == [3]
    assert sold.tick("orders", [(5, "bob", 30), (6, "ann", 8)]).tick == 4
    assert_exact(sold)
    assert rows(sold.snapshot("totals")) == [("ann", 1, 20), ("bob", 1, 30), ("cy", 1, 9)]
    assert rows(sold.snapshot("totals", at=1)) == [("ann", 2, 27), ("bob", 1, 4), ("cy", 1, 9)]
    assert rows(sold.snapshot("totals", at=2)) == [("ann", 2, 27), ("cy", 1, 9)]
    assert sold.changes("totals", since=0).where("_tick > 1").count() == 4
    assert "> 8" in sold.explain("totals").normalised
    assert sold.replay().equal
    sold.close()
    with IncrementalFlow.open(place, spark) as again:
        assert again.views == tuple(VIEWS)
        again.tick("orders", DeltaBatch.delete_keys([1]))
        assert rows(again.snapshot("totals")) == [("bob", 1, 30), ("cy", 1, 9)]
        assert_exact(again)
        assert again.replay().equal
        again.register_view("totals", OVER_FIVE.replace("5", "8"))


def test_a_next_definition_ticks_beside_the_view_until_it_is_swapped(sold: IncrementalFlow) -> None:
    report = sold.alter_view("totals", OVER_FIVE, swap=False)
    assert (report.swapped, report.prepared, report.deleted) == (False, "totals@2", 1)
    assert sold.views == tuple(VIEWS)
    sold.tick("orders", [(5, "bob", 3), (6, "dee", 5)])
    assert ("bob", 2, 7) in rows(sold.snapshot("totals"))
    report = sold.alter_view("totals", OVER_FIVE)
    assert report.swapped
    assert (report.inserted, report.deleted) == (0, 2)
    summary = sold.tick("orders", [(7, "bob", 10)])
    assert set(summary.views) == set(VIEWS)
    assert rows(sold.snapshot("totals")) == [("ann", 2, 27), ("bob", 1, 10), ("cy", 1, 9)]
    assert_exact(sold)
    assert sold.replay().equal


def test_a_next_definition_that_fails_leaves_the_view_alone(sold: IncrementalFlow) -> None:
    fails = "SELECT id, customer FROM orders WHERE 10 div (amount - 20) < 100"
    with pytest.raises(TickFailed, match="DIVIDE_BY_ZERO"):
        sold.alter_view("large", fails, swap=False)
    sold.tick("orders", [(5, "bob", 12)])
    later = fails.replace("20", "77")
    sold.alter_view("large", later, swap=False)
    with pytest.raises(TickFailed, match="DIVIDE_BY_ZERO"):
        sold.alter_view("large", fails)
    assert sold._engine.history.shadow("large"), "what was prepared is lost with something else"
    summary = sold.tick("orders", [(6, "bob", 77)])
    (note,) = [each for each in summary.notes if "prepared" in each]
    assert note.startswith("what was prepared for view large is dropped")
    assert (6, "bob") in rows(sold.snapshot("large"))
    with pytest.raises(TickFailed, match="DIVIDE_BY_ZERO"):
        sold.register_view("broken", later, hydrate=True)
    assert sold.views == tuple(VIEWS)
    sold.tick("orders", [(7, "bob", 78)])
    assert_exact(sold)
    assert sold.replay().equal


def test_what_was_prepared_gives_way_to_something_else(sold: IncrementalFlow) -> None:
    sold.alter_view("large", "SELECT id, customer FROM orders WHERE amount >= 7", swap=False)
    report = sold.alter_view("large", "SELECT id, customer FROM orders WHERE amount >= 5")
    assert (report.inserted, report.deleted) == (2, 0)
    sold.alter_view("large", "SELECT id, customer FROM orders WHERE amount >= 4", swap=False)
    assert sold.drop_view("large@4") == ("large@4",)
    assert set(sold.tick("orders", [(8, "dee", 4)]).views) == set(VIEWS)
    assert_exact(sold)
    assert sold.replay().equal


def test_other_columns(sold: IncrementalFlow, place: Path, spark: SparkSession) -> None:
    watch = sold.watch_output("totals", since=1)
    wider = "SELECT customer, MAX(amount) AS most, SUM(amount) * 2 AS total FROM orders GROUP BY 1"
    report = sold.alter_view("totals", wider)
    assert report.columns != report.columns_before
    assert (report.rows_before, report.rows, report.inserted, report.deleted) == (3, 3, 3, 3)
    assert report.downstream == {"cities": 5}
    sold.tick("orders", [(5, "bob", 30)])
    assert_exact(sold, "cities", "large")
    assert sold.check("totals").equal
    assert rows(sold.snapshot("totals")) == [("ann", 20, 54), ("bob", 30, 68), ("cy", 9, 18)]
    assert sold.snapshot("totals", at=1).columns == ["customer", "n", "total"]
    assert ("ann", 2, 27) in rows(sold.snapshot("totals", at=1))
    assert [tuple(row) for row in sold.changes("totals", since=2).collect()]
    for read in (
        lambda: sold.changes("totals", since=1),
        lambda: next(watch),
        lambda: sold.watch_output("totals", since=0),
    ):
        with pytest.raises(OutOfRange, match="tick 2 gave view totals the columns") as caught:
            read()
        assert "since=2" in caught.value.fix
    assert sold.replay().equal
    sold.close()
    with IncrementalFlow.open(place, spark) as again:
        again.tick("orders", DeltaBatch.delete_keys([5]))
        assert again.check("totals").equal
        assert_exact(again, "cities")


def test_views_that_break_are_named_and_altered_in_the_same_call(sold: IncrementalFlow) -> None:
    sold.register_view("all_of_it", "SELECT * FROM totals", hydrate=True)
    before = log_of(sold)
    sql = "SELECT customer, SUM(amount) AS sum FROM orders GROUP BY customer"
    with pytest.raises(DefinitionConflict) as caught:
        sold.alter_view("totals", sql)
    assert "cities" in caught.value.what
    assert "all_of_it" in caught.value.what
    assert "also=" in caught.value.fix
    assert log_of(sold) == before
    cities = (
        VIEWS["cities"].replace("t.total F", "t.sum AS total F").replace("t.total >", "t.sum >")
    )
    report = sold.alter_view("totals", sql, also={"cities": cities, "all_of_it": None})
    assert set(report.also) == {"cities", "all_of_it"}
    assert (report.also["cities"].inserted, report.also["cities"].deleted) == (0, 0)
    assert sold.snapshot("all_of_it").columns == ["customer", "sum"]
    assert sold.current_tick == 3
    sold.tick("orders", [(5, "bob", 30)])
    for view in sold.views:
        assert sold.check(view).equal
    assert rows(sold.snapshot("cities")) == [("Oslo", 34), ("Rome", 27), ("Rome", 9)]
    assert sold.replay().equal


def test_rows_that_only_spark_can_compare(
    sold: IncrementalFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swapping, "LOCAL_ROWS", 0)
    report = sold.alter_view("totals", OVER_FIVE.replace("5", "8"))
    assert (report.inserted, report.deleted) == (1, 2)
    assert len(report.sample) == 3
    assert report.downstream == {"cities": 2}
    report = sold.alter_view(
        "totals", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY 1"
    )
    assert (report.inserted, report.deleted) == (2, 1)
    assert_exact(sold, "cities")
    assert sold.check("totals").equal
    monkeypatch.undo()
    assert sold.replay().equal


def test_readers_that_are_behind_catch_up_before_columns_change(sold: IncrementalFlow) -> None:
    sold.tick("orders", [(5, "bob", 30)], views=["totals"])
    report = sold.alter_view(
        "totals", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY 1"
    )
    assert (report.tick, report.downstream) == (4, {"cities": 0})
    assert rows(sold.snapshot("cities")) == [("Oslo", 34), ("Rome", 27), ("Rome", 9)]
    assert_exact(sold, "cities")


def test_what_is_refused_changes_nothing(sold: IncrementalFlow) -> None:
    before = log_of(sold)
    with pytest.raises(UserError, match="circle"):
        sold.alter_view("totals", "SELECT city AS customer, 1L AS n, total FROM cities")
    with pytest.raises(UserError, match="every branch is recursive"):
        sold.alter_view("totals", "SELECT customer, n, total FROM totals WHERE n > 1")
    with pytest.raises(UnknownName, match="nothing"):
        sold.alter_view("nothing", "SELECT 1 AS x")
    with pytest.raises(UnknownName):
        sold.alter_view("totals", "SELECT nothing FROM orders")
    assert log_of(sold) == before
    with pytest.raises(TickFailed, match="DIVIDE_BY_ZERO"):
        sold.alter_view("large", "SELECT id, string(1 div (amount - 4)) AS customer FROM orders")
    assert log_of(sold)[len(before) :] == [("intent", 2), ("abort", 2)]
    sold.alter_view("large", "SELECT id, string(1 div (amount - 5)) AS customer FROM orders")
    assert rows(sold.snapshot("large"))[0] == (1, "0")
    assert_exact(sold)


def test_a_changed_function_is_a_changed_view(flow: IncrementalFlow) -> None:
    flow.register_source("s", "x INT")
    flow.register_function("grown", lambda x: x + 1, "INT", deterministic=True)
    flow.register_view("v", "SELECT grown(x) AS y FROM s")
    flow.tick("s", [(1,), (2,)])
    assert flow.alter_view("v").same_meaning
    flow.register_function("grown", lambda x: x + 2, "INT", deterministic=True)
    with pytest.raises(DefinitionConflict, match="alter_view"):
        flow.tick("s", [(3,)])
    report = flow.alter_view("v")
    assert not report.same_meaning
    assert (report.inserted, report.deleted) == (1, 1)
    flow.tick("s", [(3,)])
    assert rows(flow.snapshot("v")) == [(3,), (4,), (5,)]
    assert_exact(flow)


@pytest.mark.parametrize("count", [3, pytest.param(7, marks=pytest.mark.nightly)])
def test_a_view_goes_through_many_kinds_of_definitions(count: int, flow: IncrementalFlow) -> None:
    flow.register_source("a", "id INT, k STRING, x BIGINT", primary_key=["id"])
    flow.register_source("b", "k STRING, y BIGINT")
    texts = [
        "SELECT k, x AS n FROM a",
        "SELECT k, MAX(x) AS n FROM a GROUP BY k",
        "SELECT a.k, b.y AS n FROM a LEFT JOIN b ON a.k = b.k",
        "SELECT k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x) + 0L AS n FROM a",
        "SELECT DISTINCT k, y AS n FROM b WHERE EXISTS (SELECT 1 FROM a WHERE a.k = b.k)",
        "SELECT k, x AS n FROM a ORDER BY x DESC LIMIT 3",
        "SELECT k, SUM(x) AS n FROM a GROUP BY k HAVING COUNT(*) > 1",
    ]
    flow.register_view("v", texts[0])
    flow.register_view("d", "SELECT k, COUNT(*) AS c, MIN(n) AS least FROM v GROUP BY k")
    flow.tick(
        {
            "a": [(1, "p", 5), (2, "p", 9), (3, "q", 7), (4, None, 1), (5, "r", None)],
            "b": [("p", 1), ("p", 1), ("q", 2), (None, 3)],
        }
    )
    for number, text in enumerate(texts[1:count]):
        if number % 2:
            assert not flow.alter_view("v", text, swap=False).swapped
            flow.tick("a", DeltaBatch.upserts([(10 + number, "q", number), (3, "p", number)]))
        assert flow.alter_view("v", text).swapped
        flow.tick(
            {
                "a": DeltaBatch.upserts([(20 + number, "r", number), (1, "q", 3 - number)]),
                "b": DeltaBatch.of([("p", 1), ("r", number)], weights=[-1 if not number else 1, 1]),
            }
        )
        assert_exact(flow)
    assert flow.replay().equal
