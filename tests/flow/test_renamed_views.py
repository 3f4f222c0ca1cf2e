"""Views that are dropped, and views that get another name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import DuplicateName, IncrementalFlow, InvalidName, UnknownName, UserError
from tests.flow.shop import VIEWS, assert_exact, log_of, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def sold(shop: IncrementalFlow) -> IncrementalFlow:
    shop.tick(
        {
            "orders": [(1, "ann", 20), (2, "bob", 4), (3, "ann", 7)],
            "customers": [("ann", "Rome"), ("bob", "Oslo")],
        }
    )
    return shop


def test_a_view_that_is_read_is_dropped_with_its_readers_alone(sold: IncrementalFlow) -> None:
    before = log_of(sold)
    watch = sold.watch_output("totals")
    with pytest.raises(UserError, match="read by cities"):
        sold.drop_view("totals")
    with pytest.raises(UnknownName, match="nothing"):
        sold.drop_view("large", "nothing")
    assert log_of(sold) == before
    assert sold.drop_view("totals", "Cities") == ("totals", "cities")
    assert sold.views == ("large",)
    for read in (lambda: sold.snapshot("totals"), lambda: next(watch)):
        with pytest.raises(UnknownName) as caught:
            read()
        assert "dropped after tick 1" in caught.value.fix
    sold.tick("orders", [(4, "bob", 9)])
    assert_exact(sold)
    assert sold.replay().equal


def test_a_name_of_a_dropped_view_is_free_for_another(
    sold: IncrementalFlow, place: Path, spark: SparkSession
) -> None:
    assert sold.drop_view("totals", cascade=True) == ("totals", "cities")
    sold.register_view("totals", "SELECT customer, MIN(amount) AS least FROM orders GROUP BY 1")
    sold.tick("orders", [(4, "bob", 3)])
    assert rows(sold.snapshot("totals")) == [("ann", 7), ("bob", 3)]
    assert_exact(sold)
    assert sold.replay().equal
    sold.close()
    with IncrementalFlow.open(place, spark) as again:
        again.tick("orders", [(5, "cy", 1)])
        assert sorted(each.name for each in (place / "views" / "totals").iterdir()) == []
        assert (place / "views" / "totals@2" / "rows").exists()
        assert rows(again.snapshot("totals")) == [("ann", 7), ("bob", 3), ("cy", 1)]
        assert_exact(again)


def test_a_renamed_view_keeps_its_rows_its_history_and_its_readers(
    sold: IncrementalFlow, place: Path, spark: SparkSession
) -> None:
    sold.register_view("some", "SELECT totals.customer FROM totals WHERE totals.n > 1")
    sold.tick("orders", [(4, "bob", 9)])
    watch = sold.watch_output("totals")
    before = rows(sold.changes("totals"))
    with pytest.raises(DuplicateName):
        sold.rename_view("totals", "Large")
    with pytest.raises(InvalidName):
        sold.rename_view("totals", "two words")
    sold.rename_view("totals", "sums")
    assert sold.current_tick == 2
    assert sold.views == ("large", "sums", "cities", "some")
    assert rows(sold.changes("sums")) == before
    assert rows(sold.snapshot("sums", at=1)) == [("ann", 2, 27), ("bob", 1, 4)]
    with pytest.raises(UnknownName) as caught:
        next(watch)
    assert "called sums now" in caught.value.fix
    sold.register_view("some", "SELECT sums.customer FROM sums WHERE sums.n > 1")
    sold.register_view("totals", "SELECT n FROM sums")
    summary = sold.tick("orders", [(5, "bob", 1), (6, "cy", 1)])
    assert not any("hydrated" in way for way in summary.views["sums"].ways.values())
    assert rows(sold.snapshot("sums")) == [("ann", 2, 27), ("bob", 3, 14), ("cy", 1, 1)]
    assert rows(sold.snapshot("totals")) == [(1,), (2,), (3,)]
    assert_exact(sold)
    assert sold.replay().equal
    sold.close()
    with IncrementalFlow.open(place, spark) as again:
        again.tick("orders", [(7, "cy", 5)])
        assert_exact(again)
        assert again.explain("sums").last[0].tick == 4
        again.alter_view("sums", VIEWS["totals"].replace("GROUP", "WHERE amount > 5 GROUP"))
        again.rename_view("sums", "totals_again")
        again.tick("orders", [(8, "cy", 50)])
        assert_exact(again)
        assert again.replay().equal


def test_a_reader_whose_cte_has_the_name_is_told(sold: IncrementalFlow) -> None:
    sold.register_view("odd", "WITH sums AS (SELECT n FROM totals) SELECT n FROM sums")
    with pytest.raises(UserError, match="CTE"):
        sold.rename_view("totals", "sums")
    assert "totals" in sold.views
