"""From a SELECT to a plan, without Spark."""

from __future__ import annotations

import pytest

from ivm_core.frontend.sql import parse_view
from ivm_core.frontend.unnamed import Given
from ivm_core.model.errors import UnknownName, Unsupported
from ivm_core.model.schema import parse_schema
from ivm_core.plan.nodes import NOW, TODAY, Aggregate, Join

CATALOG = {
    "Orders": parse_schema("Id INT, customer STRING, x INT, p STRUCT<a: INT>, xs ARRAY<INT>"),
    "customers": parse_schema("NAME STRING, id INT, `größe` INT"),
}


def columns(sql: str) -> tuple[str, ...]:
    return parse_view(sql, CATALOG, "view v").plan.columns


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM orders", ("Id", "customer", "x", "p", "xs")),
        ("SELECT * FROM customers", ("NAME", "id", "größe")),
        ("SELECT ID, X AS Twice FROM ORDERS", ("ID", "Twice")),
        (
            "SELECT o.*, c.* FROM (SELECT x FROM orders) o, customers c",
            ("x", "NAME", "id", "größe"),
        ),
        ("SELECT * FROM (SELECT iD, x AS Y FROM orders) q", ("iD", "Y")),
        ("WITH c(P, q) AS (SELECT id, x FROM orders) SELECT * FROM c", ("P", "q")),
        ("SELECT * FROM customers AS k(A, B, C)", ("A", "B", "C")),
        ("SELECT p.A, o.p.a AS B FROM orders o", ("A", "B")),
        ("SELECT CAST(X AS STRING), (Id) FROM orders", ("X", "Id")),
        ("SELECT id FROM orders UNION ALL SELECT x FROM orders", ("id",)),
        (
            "SELECT id FROM orders UNION ALL SELECT 1 FROM orders UNION SELECT x + x FROM orders",
            ("id",),
        ),
        ("SELECT GRÖSSE FROM (SELECT `größe` AS grösse FROM customers)", ("GRÖSSE",)),
    ],
)
def test_columns_are_named_as_they_are_written_or_declared(
    sql: str, names: tuple[str, ...]
) -> None:
    assert columns(sql) == names


def test_the_second_branch_of_a_union_may_repeat_names() -> None:
    sql = "SELECT id, x FROM orders UNION ALL SELECT x, x FROM orders"
    assert columns(sql) == ("id", "x")


def test_reads_are_the_relations_as_declared() -> None:
    parsed = parse_view("SELECT o.id FROM ORDERS o, Customers", CATALOG, "view v")
    assert parsed.reads == ("Orders", "customers")


def test_the_clock_is_a_relation_that_is_not_among_the_reads() -> None:
    sql = "SELECT id, now() AS n FROM orders WHERE id > year(current_date)"
    parsed = parse_view(sql, CATALOG, "view v")
    assert parsed.reads == ("Orders",)
    assert parsed.plan.relations == {"Orders", NOW, TODAY}


def test_a_cte_used_twice_is_read_under_two_names() -> None:
    sql = "WITH c AS (SELECT id FROM orders) SELECT a.id FROM c a JOIN c b ON a.id = b.id"
    join = next(n for n in parse_view(sql, CATALOG, "v").plan.walk() if isinstance(n, Join))
    assert join.columns == ("a.id", "b.id")


def test_dots_in_an_alias_are_not_taken_for_the_dot_behind_it() -> None:
    sql = "SELECT `a.b`.c AS x, a.`b.c` AS y FROM (SELECT 1 AS c) `a.b`, (SELECT 2 AS `b.c`) a"
    join = next(n for n in parse_view(sql, {}, "v").plan.walk() if isinstance(n, Join))
    assert len(set(join.columns)) == 2


def test_equal_arguments_and_equal_calls_are_computed_once() -> None:
    sql = "SELECT SUM(x + 1) AS a, AVG(x + 1) AS b, SUM(x + 1) + 1 AS c FROM orders"
    plan = parse_view(sql, CATALOG, "v").plan
    aggregate = next(n for n in plan.walk() if isinstance(n, Aggregate))
    assert [call.function for call in aggregate.calls] == ["SUM", "AVG"]
    assert len({call.argument for call in aggregate.calls}) == 1


def test_the_judge_is_asked_before_columns_are_looked_at() -> None:
    asked: list[tuple[object, ...]] = []
    with pytest.raises(UnknownName):
        parse_view("SELECT nope, 1 + 1 FROM orders", CATALOG, "v", lambda *all_: asked.append(all_))
    given = Given(("column_2",), ("nope", "column_2"))
    assert asked == [("SELECT nope, 1 + 1 FROM orders", ("Orders",), given)]


def test_a_struct_keeps_the_names_of_its_columns() -> None:
    plan = parse_view("SELECT to_json(struct(X, o.id AS I)) AS j FROM orders o", CATALOG, "v").plan
    assert "STRUCT(`o.x` AS `X`, `o.id` AS `I`)" in plan.text


def test_columns_without_a_name_get_the_words_of_their_text() -> None:
    sql = "SELECT id, COUNT(*), SUM(x + 1), COUNT(*), 'a b', 'text', 1 + id, x AS count FROM t GROUP BY ALL"
    plan = parse_view(sql, {"t": parse_schema("id INT, x INT")}, "v").plan
    assert plan.columns == (
        "id",
        "count_2",
        "sum_x_1",
        "count_3",
        "a_b",
        "text",
        "column_7",
        "count",
    )


def test_the_fields_of_a_declared_struct_are_known_without_spark() -> None:
    catalog = {"t": parse_schema("id INT, s STRUCT<a: INT, B: STRING>")}
    assert parse_view("SELECT q.s.*, id FROM T AS q", catalog, "v").plan.columns == ("a", "B", "id")
    with pytest.raises(Unsupported, match="all fields of a struct"):
        parse_view("SELECT r.* FROM (SELECT struct(id) AS r FROM t)", catalog, "v")
