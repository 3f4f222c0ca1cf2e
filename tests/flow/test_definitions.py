from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import (
    DefinitionConflict,
    DuplicateName,
    IncrementalFlow,
    InvalidName,
    IvmError,
    SqlError,
    UnknownName,
    Unsupported,
    UserError,
)
from ivm_core.engine import declaring
from tests.flow.shop import CUSTOMERS, ORDERS, VIEWS, assert_exact, declare_shop, log_of, rows

if TYPE_CHECKING:
    from ivm_core.engine.core import Engine


def test_the_same_definitions_again_are_nothing(shop: IncrementalFlow) -> None:
    before = log_of(shop)
    declare_shop(shop)
    shop.register_source("orders", "id  bigint,customer string, `amount` int", primary_key="ID")
    shop.register_view("large", "select id, customer from orders\nwhere amount >= 10")
    shop.register_view("LARGE", VIEWS["large"])
    shop.register_source("ORDERS", ORDERS, primary_key=["id"])
    assert log_of(shop) == before
    assert shop.sources == ("orders", "customers")


def test_a_source_that_differs_is_refused_with_both_shown(shop: IncrementalFlow) -> None:
    with pytest.raises(DefinitionConflict) as caught:
        shop.register_source("orders", "id BIGINT, customer STRING, amount BIGINT")
    text = str(caught.value)
    assert "amount INT)" in text.replace("`", "")
    assert "amount BIGINT" in text.replace("`", "")
    with pytest.raises(DefinitionConflict, match="primary key"):
        shop.register_source("orders", ORDERS)
    with pytest.raises(DefinitionConflict, match="source orders is declared differently"):
        shop.register_source("Orders", ORDERS)


def test_a_view_that_differs_is_refused_with_both_shown(shop: IncrementalFlow) -> None:
    with pytest.raises(DefinitionConflict) as caught:
        shop.register_view("large", "SELECT id, customer FROM orders WHERE amount >= 11")
    assert "amount >= 10" in caught.value.stored
    assert "amount >= 11" in caught.value.given
    assert "amount >= 10" in str(caught.value)
    assert "amount >= 11" in str(caught.value)


@pytest.mark.parametrize("name", ["orders", "Orders", "large", "LARGE"])
def test_a_name_is_taken_whatever_its_case(name: str, shop: IncrementalFlow) -> None:
    before = log_of(shop)
    with pytest.raises((DuplicateName, DefinitionConflict)):
        shop.register_view(name, "SELECT name FROM customers")
    with pytest.raises((DuplicateName, DefinitionConflict)):
        shop.register_source(name, "x INT")
    assert log_of(shop) == before


def test_views_stand_on_views_in_any_order_of_sources(flow: IncrementalFlow) -> None:
    flow.register_source("a", "x INT")
    flow.register_view("upper", "SELECT x + 1 AS x FROM a")
    flow.register_source("b", "x INT")
    flow.register_view("both", "SELECT x FROM upper UNION ALL SELECT x FROM b")
    flow.register_view("twice", "SELECT l.x FROM both l JOIN upper r ON l.x = r.x")
    summary = flow.tick({"b": [(2,), (5,)], "a": [(1,)]})
    assert {name: view.rows for name, view in summary.views.items()} == {
        "upper": 1,
        "both": 3,
        "twice": 2,
    }
    flow.tick("a", [(4,)])
    assert rows(flow.snapshot("twice")) == [(2,), (2,), (5,), (5,)]
    assert_exact(flow)


def test_views_are_given_in_any_order(flow: IncrementalFlow) -> None:
    flow.register_source("a", "x INT")
    flow.tick("a", [(1,), (2,)])
    views = {
        "top": "SELECT SUM(x) AS total FROM middle",
        "middle": "SELECT x FROM Low WHERE x > 2",
        "low": "WITH top AS (SELECT x + 1 AS x FROM a) SELECT x FROM top",
    }
    flow.register_views(views, hydrate=True)
    assert rows(flow.snapshot("top")) == [(3,)]
    assert flow.current_tick == 2
    before = log_of(flow)
    flow.register_views({"more": "SELECT x FROM low", **views})
    assert len(log_of(flow)) == len(before) + 1
    flow.tick("a", [(5,)])
    assert_exact(flow)


def test_of_several_views_all_are_registered_or_none(flow: IncrementalFlow) -> None:
    flow.register_source("a", "x INT")
    before = log_of(flow)
    for wrong, error in (
        ("SELECT y FROM good", UnknownName),
        ("SELECT x FROM wrong", UserError),
        ("SELECT g.x FROM good g JOIN other o ON g.x = o.x", UserError),
    ):
        views = {"good": "SELECT x FROM a", "wrong": wrong, "other": "SELECT x FROM wrong"}
        with pytest.raises(error):
            flow.register_views(views)
        assert log_of(flow) == before
        assert flow.views == ()
    flow.register_view("good", "SELECT x + 1 AS x FROM a")
    flow.tick("a", [(1,)])
    assert rows(flow.snapshot("good")) == [(2,)]


def test_names_are_found_whatever_their_case(shop: IncrementalFlow) -> None:
    shop.register_view("loud", "SELECT ID, Customer FROM ORDERS WHERE AMOUNT > 1")
    shop.tick("Orders", [(1, "ann", 20)])
    assert rows(shop.snapshot("LOUD")) == [(1, "ann")]
    assert shop.snapshot("loud").columns == ["ID", "Customer"]
    assert shop.explain("Loud").view == "loud"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM itself",
        "SELECT a.id FROM orders a JOIN itself b ON a.id = b.id",
        "SELECT id FROM nowhere",
        "SELECT id FROM spark_catalog.default.orders",
        "SELECT id FROM parquet.`/tmp/x`",
    ],
)
def test_cycles_and_unknown_relations_are_refused(sql: str, shop: IncrementalFlow) -> None:
    before = log_of(shop)
    with pytest.raises((UserError, Unsupported)):
        shop.register_view("itself", sql)
    assert log_of(shop) == before
    assert "itself" not in shop.views


def test_an_unknown_column_keeps_sparks_suggestion(shop: IncrementalFlow) -> None:
    with pytest.raises(UnknownName, match="customer"):
        shop.register_view("v", "SELECT custommer FROM orders")


@pytest.mark.parametrize(
    ("sql", "line", "column"),
    [("SELEC id FROM orders", 1, None), ("SELECT id\nFROM orders WHERE (", 2, None)],
)
def test_sql_that_does_not_parse_is_refused_with_its_place(
    sql: str, line: int, column: int | None, shop: IncrementalFlow
) -> None:
    with pytest.raises(SqlError) as caught:
        shop.register_view("v", sql)
    assert caught.value.line == line
    assert caught.value.column is not None
    assert "view v" in str(caught.value)


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a.b", "..", "../x", "a/b", 'a"b', "a'b", "a`b", "a#1", "x" * 300, "é"]
)
def test_names_that_cannot_be_are_refused(name: str, shop: IncrementalFlow) -> None:
    before = log_of(shop)
    with pytest.raises(InvalidName):
        shop.register_view(name, "SELECT id FROM orders")
    with pytest.raises(InvalidName):
        shop.register_source(name, "x INT")
    assert log_of(shop) == before


@pytest.mark.parametrize("name", [None, 7, ["v"]])
def test_names_are_text(name: object, shop: IncrementalFlow) -> None:
    with pytest.raises(UserError):
        shop.register_view(name, "SELECT id FROM orders")  # type: ignore[arg-type]
    with pytest.raises(UserError):
        shop.register_source(name, "x INT")  # type: ignore[arg-type]


@pytest.mark.parametrize("column", ["_weight", "_tick", "_WEIGHT", "a b", "a,b", "a=b"])
def test_columns_that_cannot_be_are_refused(column: str, flow: IncrementalFlow) -> None:
    with pytest.raises(IvmError):
        flow.register_source("s", f"`{column}` INT")
    flow.register_source("s", "x INT")
    with pytest.raises(IvmError):
        flow.register_view("v", f"SELECT x AS `{column}` FROM s")
    assert flow.views == ()


@pytest.mark.parametrize(
    ("schema", "key"),
    [
        (None, None),
        ("", None),
        ("x", None),
        ("x INT, X INT", None),
        ("x INTT", None),
        ("x INT", ["y"]),
        ("x INT", ["x", "X"]),
        ("x DOUBLE", ["x"]),
        ("x ARRAY<INT>", "x"),
        ("x INT", [3]),
        (7, None),
    ],
)
def test_sources_that_cannot_be_are_refused(
    schema: str | None, key: list[str] | None, flow: IncrementalFlow
) -> None:
    with pytest.raises(IvmError):
        flow.register_source("s", schema, primary_key=key)
    assert flow.sources == ()


@pytest.mark.parametrize("sql", ["", "   ", "-- nothing", "DELETE FROM orders", None, 7])
def test_views_are_selects(sql: object, shop: IncrementalFlow) -> None:
    with pytest.raises(IvmError):
        shop.register_view("v", sql)  # type: ignore[arg-type]


def test_one_key_column_may_be_given_by_its_name(flow: IncrementalFlow) -> None:
    flow.register_source("c", CUSTOMERS, primary_key="NAME")
    flow.register_source("c", CUSTOMERS, primary_key=["name"])
    assert flow.sources == ("c",)


def test_a_view_over_data_has_rows_from_the_next_tick_on(shop: IncrementalFlow) -> None:
    shop.tick("orders", [(1, "ann", 20), (2, "bob", 3)])
    shop.register_view("late", "SELECT customer FROM orders")
    assert rows(shop.snapshot("late")) == []
    summary = shop.tick()
    assert summary.views["late"].rows == 2
    assert summary.views["totals"].skipped
    assert rows(shop.snapshot("late")) == [("ann",), ("bob",)]
    assert_exact(shop, "late")


def test_a_view_is_hydrated_at_once_when_asked(shop: IncrementalFlow) -> None:
    shop.tick("orders", [(1, "ann", 20), (2, "bob", 3)])
    shop.register_view("late", "SELECT customer, COUNT(*) AS n FROM large GROUP BY 1", hydrate=True)
    assert shop.current_tick == 2
    assert rows(shop.snapshot("late")) == [("ann", 1)]
    shop.register_view("late", "SELECT customer, COUNT(*) AS n FROM large GROUP BY 1", hydrate=True)
    assert shop.current_tick == 2
    assert shop.replay().equal


def test_a_view_that_another_process_has_declared_meanwhile_is_not_declared_twice(
    flow: IncrementalFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow.register_source("a", "x INT")
    place, spark = flow._engine.layout.root.uri, flow.spark
    flow.close()
    late = IncrementalFlow.open(place, spark)
    draft = declaring.draft_view

    def slow(engine: Engine, name: str, sql: str, *more: Any) -> None:
        draft(engine, name, sql, *more)
        if engine is late._engine and "v" not in engine.history.views:
            with IncrementalFlow.open(place, spark) as other:
                other.register_view("v", "SELECT x FROM a")
                other.tick("a", [(1,)])

    monkeypatch.setattr(declaring, "draft_view", slow)
    late.register_view("v", "SELECT x FROM a")
    late.tick("a", [(2,)])
    assert rows(late.snapshot("v")) == [(1,), (2,)]
    assert [entry.kind for entry in late._engine.log.entries].count("view") == 1
    late.close()


@pytest.mark.parametrize("key", [["nope"], 7, [1], {"x": 1}])
def test_a_primary_key_that_is_none_is_refused(key: object, flow: IncrementalFlow) -> None:
    with pytest.raises(UserError, match="source a") as caught:
        flow.register_source("a", "x INT", primary_key=key)  # type: ignore[arg-type]
    assert "primary key" in str(caught.value)
    assert flow.sources == ()
