"""Views that are required to be incremental, and why others are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import DefinitionConflict, IncrementalFlow, NotIncremental, UserError
from tests.flow.shop import assert_exact, log_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

INCREMENTAL = [
    "SELECT customer, COUNT(*) AS n, SUM(amount) AS s FROM orders GROUP BY customer",
    "SELECT SUM(amount) AS s FROM orders",
    "SELECT customer, MAX(amount) AS m FROM orders GROUP BY customer",
    "SELECT customer, median(amount) AS m FROM orders GROUP BY customer",
    "SELECT id, rank() OVER (PARTITION BY customer ORDER BY amount) AS r FROM orders",
    "SELECT o.id, c.city FROM orders o LEFT JOIN customers c ON o.customer = c.name",
    "SELECT id FROM orders WHERE customer IN (SELECT name FROM customers)",
    "SELECT DISTINCT customer FROM orders EXCEPT SELECT name FROM customers",
]
COSTLY = [
    (
        "SELECT id,\n  rank() OVER (PARTITION BY customer ORDER BY id) AS a,\n"
        "  ntile(2) OVER (ORDER BY amount) AS b\nFROM orders",
        ["a window function without PARTITION BY", "line 3, column 3", "PARTITION BY a column"],
    ),
    ("SELECT\n median(amount) AS m FROM orders", ["without GROUP BY", "line 2, column 2"]),
    ("SELECT MIN(amount) AS m FROM orders", ["MIN", "line 1, column 8", "where it is deleted"]),
    (
        "SELECT id FROM orders\nORDER BY amount LIMIT 3",
        ["LIMIT over all rows", "line 2, column 17"],
    ),
    (
        "SELECT o.id FROM orders o JOIN customers c ON upper(o.customer) = c.name",
        ["the scan of customers", "line 1, column 32", "no equality", "so is the scan of orders"],
    ),
    (
        "SELECT id FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)",
        ["the scan of orders", "read in full"],
    ),
    (
        "SELECT upper(customer) AS u, median(amount) AS m FROM orders GROUP BY upper(customer)",
        ["the scan of orders", "no key column comes unchanged", "in a view of its own"],
    ),
    (
        "SELECT id FROM orders WHERE current_date() > DATE'2024-01-01'",
        ["the scan of orders", "whenever logical time advances"],
    ),
]


@pytest.mark.parametrize("sql", INCREMENTAL)
def test_a_view_that_is_incremental_may_be_required_to_be(sql: str, shop: IncrementalFlow) -> None:
    shop.register_view("v", sql, require="incremental")
    explained = shop.explain("v")
    assert explained.require == "incremental"
    assert explained.is_incremental
    assert explained.verdict in ("incremental", "affected keys only")
    assert shop.why_not("v") == ()


@pytest.mark.parametrize(("sql", "told"), COSTLY)
def test_a_view_that_is_not_is_refused_with_node_place_reason_and_rewrite(
    sql: str, told: list[str], shop: IncrementalFlow
) -> None:
    before = log_of(shop)
    with pytest.raises(NotIncremental) as refused:
        shop.register_view("v", sql, require="incremental")
    text = str(refused.value)
    for each in (*told, "view v", "is not incremental", "require='incremental'", "rewrite: "):
        assert each in text
    assert log_of(shop) == before
    found = shop.why_not(sql=sql)
    assert found[0].construct == refused.value.construct
    assert shop.explain(sql=sql).verdict in ("recomputed", "read in full")
    shop.register_view("v", sql)
    assert shop.explain("v").why_not[0].construct == found[0].construct


def test_the_rewrites_work(shop: IncrementalFlow) -> None:
    shop.register_view("loud", "SELECT id, upper(customer) AS u, amount FROM orders")
    shop.register_views(
        {
            "places": "SELECT l.id, c.city FROM loud l JOIN customers c ON l.u = c.name",
            "medians": "SELECT u, median(amount) AS m FROM loud GROUP BY u",
            "first": "SELECT id, customer FROM orders "
            "QUALIFY row_number() OVER (PARTITION BY customer ORDER BY amount DESC) <= 2",
        },
        require="incremental",
    )
    shop.tick({"orders": [(1, "ann", 3), (2, "Ann", 4)], "customers": [("ANN", "Rome")]})
    shop.tick("orders", [(3, "aNN", 5)])
    assert_exact(shop)


def test_the_requirement_is_part_of_the_definition(
    place: Path, shop: IncrementalFlow, spark: SparkSession
) -> None:
    shop.register_view("v", INCREMENTAL[0], require="incremental")
    shop.close()
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.explain("v").require == "incremental"
        before = log_of(flow)
        flow.register_view("v", INCREMENTAL[0].lower(), require="incremental")
        for view, require in (("v", None), ("totals", "incremental")):
            sql = flow._engine.history.views[view].sql
            with pytest.raises(DefinitionConflict) as conflict:
                flow.register_view(view, sql, require=require)
            assert "require='incremental'" in str(conflict.value)
        assert log_of(flow) == before
        flow.tick("orders", [(1, "ann", 20)])
        assert flow.replay().equal


def test_other_requirements_are_refused(shop: IncrementalFlow) -> None:
    with pytest.raises(UserError, match="require='fast'") as refused:
        shop.register_view("v", INCREMENTAL[0], require="fast")
    assert "view v" in str(refused.value)


def test_views_may_be_required_by_name(shop: IncrementalFlow) -> None:
    views = {"a": INCREMENTAL[0], "b": "SELECT MIN(amount) AS m FROM orders"}
    shop.register_views(views, require={"a": "incremental"})
    assert [shop.explain(view).require for view in views] == ["incremental", ""]


def test_why_not_tells_refusals_too(shop: IncrementalFlow) -> None:
    [refused] = shop.why_not(sql="SELECT id,\n rand() AS r FROM orders")
    assert refused.verdict == "refused"
    assert "line 2, column 2" in refused.position
    assert refused.reason
    assert refused.rewrite
    with pytest.raises(UserError):
        shop.why_not(sql="SELECT FROM")
    for wrong in ({}, {"view": "totals", "sql": "SELECT 1 AS x"}):
        with pytest.raises(UserError, match="a view's name or sql="):
            shop.explain(**wrong)
