"""Columns that are added to a source, and those that can't go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import DefinitionConflict, DeltaBatch, IncrementalFlow, UnknownName, UserError
from ivm_core.model.digest import Digest
from ivm_core.operators.row_identity import digest_of
from tests.flow.shop import ORDERS, assert_exact, log_of, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

WIDER = "id BIGINT, customer STRING, note STRING, amount INT"


@pytest.fixture
def sold(shop: IncrementalFlow) -> IncrementalFlow:
    shop.tick("orders", [(1, "ann", 20), (2, "bob", 4), (3, "ann", 7)])
    return shop


def test_rows_that_are_there_have_null_in_an_added_column(
    sold: IncrementalFlow, place: Path, spark: SparkSession
) -> None:
    assert sold.alter_source("orders", WIDER) == ("note",)
    assert sold.alter_source("orders", WIDER) == ()
    sold.register_view("notes", "SELECT note, COUNT(*) AS n FROM orders GROUP BY note")
    sold.register_view("noted", "SELECT a.id FROM orders a JOIN orders b ON a.note = b.note")
    sold.tick("orders", DeltaBatch.inserts([(4, "cy", "new", 11)]) + DeltaBatch.delete_keys([2]))
    assert rows(sold.snapshot("notes")) == [("new", 1), (None, 2)]
    assert rows(sold.snapshot("orders"))[0] == (1, "ann", None, 20)
    assert rows(sold.snapshot("orders", at=1))[1] == (2, "bob", None, 4)
    assert rows(sold.changes("orders", since=1))[0][:4] == (2, "bob", None, 4)
    assert_exact(sold)
    assert sold.replay().equal
    sold.close()
    with IncrementalFlow.open(place, spark) as again:
        again.register_source("orders", WIDER, primary_key=["id"])
        again.tick("orders", DeltaBatch.upserts([(1, "ann", "new", 21), (3, "ann", None, 7)]))
        assert rows(again.snapshot("notes")) == [("new", 2), (None, 1)]
        assert rows(again.snapshot("noted")) == [(1,), (1,), (4,), (4,)]
        assert_exact(again)
        schema = again._engine.history.sources["orders"].schema
        changes = [batch.to_arrow() for _, batch in again.watch_output("orders", since=0)]
        whole = sum((digest_of(each, schema) for each in changes), Digest.zero())
        assert whole.hex == again._engine.history.source_digests["orders"]


def test_views_that_would_change_are_named(sold: IncrementalFlow) -> None:
    sold.register_view("everything", "SELECT * FROM orders", hydrate=True)
    before = log_of(sold)
    with pytest.raises(DefinitionConflict, match="everything") as caught:
        sold.alter_source("orders", WIDER)
    assert "alter_view" in caught.value.fix
    assert log_of(sold) == before
    assert sold.alter_view("everything", "SELECT id, customer, amount FROM orders").same_meaning
    assert log_of(sold) == [*before, ("text", 2)]
    sold.alter_source("orders", WIDER)
    report = sold.alter_view("everything", "SELECT * FROM orders")
    assert "note" in report.columns
    assert (report.inserted, report.deleted) == (0, 0)
    sold.tick("orders", [(4, "cy", "new", 11)])
    assert sold.snapshot("everything").columns == ["id", "customer", "note", "amount"]
    assert_exact(sold, "large", "totals")
    assert sold.check("everything").equal
    assert sold.replay().equal


TIED = {
    "numbered": "SELECT id, customer, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount, id) AS n FROM orders",
    "before": "SELECT id, LAG(amount) OVER (ORDER BY customer) AS previous FROM orders",
    "first_two": "SELECT id FROM (SELECT * FROM orders ORDER BY amount LIMIT 2)",
    "places": "SELECT n, COUNT(*) AS rows, MAX(amount) AS most FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount) AS n FROM orders) GROUP BY n",
    "seconds": "SELECT p.n, p.most FROM (SELECT n, COUNT(*) AS rows, MAX(amount) AS most FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount) AS n FROM orders) GROUP BY n) p WHERE p.n = 2",
}


def test_new_columns_break_no_ties_of_views_that_do_not_read_them(
    flow: IncrementalFlow, place: Path, spark: SparkSession
) -> None:
    flow.register_source("orders", ORDERS)
    flow.register_views(TIED)
    flow.tick("orders", [(3, "ann", 7), (1, "ann", 7), (1, "ann", 7), (2, "bob", 4)])
    assert flow._engine.history.shared, "places and seconds have a node in common"
    explained = {view: flow.explain(view).fingerprint for view in TIED}
    assert flow.alter_source("orders", WIDER) == ("note",)
    assert flow.alter_source("orders", f"{WIDER}, more INT") == ("more",)
    assert {view: flow.explain(view).fingerprint for view in TIED} == explained
    flow.tick("orders", [(2, "ann", "b", 7, 1), (1, "ann", "a", 7, None), (5, "bob", "z", 4, 2)])
    assert_exact(flow)
    flow.close()
    with IncrementalFlow.open(place, spark) as again:
        again.register_views(TIED)
        for view, sql in TIED.items():
            again.register_view(view, sql.replace("SELECT ", "select ", 1))
        gone = DeltaBatch.deletes([(1, "ann", None, 7, None)])
        again.tick("orders", gone + DeltaBatch.inserts([(4, "ann", "0", 7, 9)]))
        assert_exact(again)
        again.snapshot("orders").createOrReplaceTempView("orders")
        total = (
            "SELECT id, customer, ROW_NUMBER() OVER "
            "(PARTITION BY customer ORDER BY amount, id, customer) AS n FROM orders"
        )
        assert rows(again.snapshot("numbered")) == rows(spark.sql(total))
        report = again.alter_view("numbered", TIED["numbered"].replace("id, customer", "*", 1))
        assert "note" in report.columns
        again.tick("orders", [(4, "ann", "1", 7, 9)])
        assert all(again.check(view).equal for view in TIED)
        assert again.replay().equal


def test_a_backfill_breaks_ties_as_the_view_does(flow: IncrementalFlow, place: Path) -> None:
    flow.register_source("orders", ORDERS)
    numbered = "SELECT id, ROW_NUMBER() OVER (ORDER BY amount) AS n FROM orders"
    flow.register_view("numbered", numbered)
    flow.alter_source("orders", f"note STRING, {ORDERS}")
    flow.tick("orders", [("z", 1, "ann", 7), ("a", 2, "ann", 7)])
    assert rows(flow.snapshot("numbered")) == [(1, 1), (2, 2)]
    assert flow.backfill("numbered", into=place.parent / "backfilled").equal


def test_a_query_that_reads_all_columns_inside_is_named(sold: IncrementalFlow) -> None:
    sold.register_view("kinds", "SELECT COUNT(*) AS n FROM (SELECT DISTINCT * FROM orders)")
    with pytest.raises(DefinitionConflict, match="kinds, because its query reads the new columns"):
        sold.alter_source("orders", WIDER)
    named = "SELECT COUNT(*) AS n FROM (SELECT DISTINCT id, customer, amount FROM orders)"
    assert sold.alter_view("kinds", named).same_meaning
    assert sold.alter_source("orders", WIDER) == ("note",)


def test_a_column_that_would_go_is_named_with_what_has_it(sold: IncrementalFlow) -> None:
    before = log_of(sold)
    for narrower in ("id BIGINT, customer STRING", ORDERS.replace("t INT", "t BIGINT")):
        with pytest.raises(DefinitionConflict) as caught:
            sold.alter_source("orders", narrower)
        assert "amount" in caught.value.what
        assert "3 stored rows" in caught.value.what
        assert "large, totals" in caught.value.what
    with pytest.raises(UserError, match="would be NULL in the rows that are there"):
        sold.alter_source("orders", f"{ORDERS}, z INT NOT NULL")
    with pytest.raises(UnknownName):
        sold.alter_source("nothing", ORDERS)
    assert log_of(sold) == before
