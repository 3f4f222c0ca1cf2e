"""SQL functions mean what Spark's own mean, and a flow keeps them."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from ivm_core import (
    DefinitionConflict,
    DuplicateName,
    IncrementalFlow,
    InvalidName,
    IvmError,
    NotIncremental,
    SqlError,
    TickFailed,
    UnknownName,
    Unsupported,
    UserError,
)
from tests.flow.shop import rows
from tests.sql.bags import bag, differences

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SOURCE = "k INT, amount DECIMAL(12,2), s STRING, xs ARRAY<INT>, p STRUCT<a: INT, b: STRING>"
ROWS = [
    (1, Decimal("10.05"), "12", [1, 2], (1, "x")),
    (2, Decimal("-3.33"), "7", [], (None, "y")),
    (3, None, None, None, None),
    (3, Decimal("99.99"), "0", [None, 5], (3, None)),
]
FUNCTIONS = [
    ("vat", "amount * 1.2", "DECIMAL(14,2)", "amount DECIMAL(12,2)"),
    ("rounded_down", "x", "INT", "x BIGINT"),
    ("twice", "x + x", "INT", "x INT"),
    ("gross", "vat(net) + vat(amount => 1)", "STRING", "net DECIMAL(12,2)"),
    ("or_zero", "coalesce(k, 0)", "INT", "k INT"),
    ("with_default", "x + more * 10", "INT", "x INT, more INT DEFAULT 7"),
    ("shifted", "transform(list, e -> e + k)", "ARRAY<INT>", "list ARRAY<INT>, k INT"),
    (
        "pair",
        "struct(x, y AS z, pair.x + 1)",
        "STRUCT<x: INT, z: STRING, w: INT>",
        "x INT, y STRING",
    ),
    ("field", "q.a", "INT", "q STRUCT<a: INT, b: STRING>"),
    ("in_a_map", "map('a', x)['a']", "INT", "x INT"),
    ("always", "'const'", "STRING", ""),
    ("precedence", "a - b", "INT", "a INT, b INT"),
]
QUERIES = {
    "plain": "SELECT k, vat(amount) AS v, VAT(k) AS of_int, vat('12.345') AS of_text FROM t",
    "nested": "SELECT k, vat(vat(amount) - 1) AS v, gross(amount) AS g FROM t",
    "used_twice": "SELECT k, twice(k + 1) * 2 AS x, twice(CAST(s AS INT)) AS y FROM t",
    "shadowed": "SELECT or_zero(k) AS a, or_zero(p.a) AS b, amount AS k FROM t",
    "defaults": "SELECT with_default(k) AS a, with_default(k, 1) AS b, "
    "with_default(more => k, x => 2) AS c FROM t",
    "captured": "SELECT k, shifted(xs, e) AS xs FROM (SELECT k, xs, k AS e FROM t)",
    "fields": "SELECT k, pair(k, s) AS pair, field(p) AS f, in_a_map(k) AS m FROM t",
    "grouped": "SELECT twice(k) AS g, SUM(vat(amount)) AS v, vat(SUM(amount)) AS w "
    "FROM t GROUP BY twice(k) HAVING always() = 'const'",
    "everywhere": "SELECT a.k, precedence(a.k, b.k - 1) * 2 AS d FROM t AS a JOIN t AS b "
    "ON twice(a.k) = b.k + rounded_down(a.k) WHERE or_zero(a.k) > 0",
    "windowed": "SELECT k, s, twice(row_number() OVER (PARTITION BY k ORDER BY or_zero(k), s)) "
    "AS n FROM t",
    "asked": "SELECT k FROM t WHERE twice((SELECT MAX(k) FROM t)) > with_default(k, 0)",
}


@pytest.fixture
def shop(flow: IncrementalFlow) -> IncrementalFlow:
    flow.register_source("t", SOURCE)
    for name, body, returns, parameters in FUNCTIONS:
        flow.register_function(name, body, returns, parameters=parameters)
    return flow


def test_they_mean_what_sparks_own_mean(shop: IncrementalFlow, spark: SparkSession) -> None:
    for name, sql in QUERIES.items():
        shop.register_view(name, sql)
    shop.tick("t", ROWS[:2])
    shop.tick("t", ROWS[2:])
    plain = spark.newSession()
    plain.conf.set("spark.sql.ansi.enabled", "true")
    plain.createDataFrame(ROWS, SOURCE).createOrReplaceTempView("t")
    for name, body, returns, parameters in FUNCTIONS:
        plain.sql(f"CREATE TEMPORARY FUNCTION {name}({parameters}) RETURNS {returns} RETURN {body}")
    for name, sql in QUERIES.items():
        theirs, ours = plain.sql(sql), shop.snapshot(name)
        assert [f.dataType for f in theirs.schema] == [f.dataType for f in ours.schema], name
        found = differences(bag(map(tuple, theirs.collect())), bag(map(tuple, ours.collect())))
        assert not found, f"{name} is not what Spark gives:\n{found}"
        assert shop.check(name).equal
    assert "1.2" in shop.explain("plain").normalised
    assert shop.replay().equal
    # what fails in Spark's cast of an argument or of the result fails here
    shop.register_view("narrow", "SELECT rounded_down(k * 3000000000) AS x FROM t")
    with pytest.raises(TickFailed, match="CAST_OVERFLOW"):
        shop.tick()


def test_a_flow_keeps_them(place: Path, shop: IncrementalFlow, spark: SparkSession) -> None:
    shop.register_view("v", "SELECT k, gross(amount) AS g FROM t")
    shop.register_view("other", "SELECT k, twice(k) AS d FROM t")
    shop.tick("t", ROWS[:1])
    fingerprint = shop.explain("v").fingerprint
    shop.close()
    with IncrementalFlow.open(place, spark) as flow:
        flow.tick("t", ROWS[1:2])
        flow.register_view("later", "SELECT gross(amount) AS g FROM t")
        flow.tick()
        assert rows(flow.snapshot("later")) == [("-2.80",), ("13.26",)]
        # the same again is nothing
        flow.register_function("vat", *FUNCTIONS[0][1:3], parameters=FUNCTIONS[0][3])
        flow.register_view("v", "SELECT k, GROSS(amount) AS g FROM t")
        # a changed one is no part of views that were made with the other, until they are altered
        flow.register_function("vat", "amount * 2", "DECIMAL(14,2)", parameters="amount INT")
        with pytest.raises(DefinitionConflict, match="the function vat") as caught:
            flow.tick("t", ROWS[2:])
        assert "alter_view('v')" in caught.value.fix
        assert flow.current_tick == 3
        assert flow.tick("t", ROWS[2:], views=["other"]).tick == 4
        flow.close()
    with IncrementalFlow.open(place, spark) as flow:
        assert rows(flow.snapshot("v")) == [(1, "13.26"), (2, "-2.80")]
        flow.alter_view("v", also={"later": None})
        flow.tick()
        assert flow.explain("v").fingerprint != fingerprint
        assert rows(flow.snapshot("v")) == [(1, "22.00"), (2, "-4.00"), (3, "200.00"), (3, None)]
        assert flow.check("v").equal


@pytest.mark.parametrize(
    ("body", "parameters", "kind", "says"),
    [
        ("rand() * x", "x INT", NotIncremental, "another value at every run"),
        ("(SELECT MAX(k) FROM t)", "", Unsupported, "a subquery|SUBQUERY"),
        ("SELECT 1", "", Unsupported, "an expression over its parameters"),
        ("SUM(x)", "x INT", Unsupported, "the aggregate sum"),
        ("rank() OVER (ORDER BY x)", "x INT", Unsupported, "a window function"),
        ("explode(xs)", "xs ARRAY<INT>", Unsupported, "generator explode"),
        ("x + nothing", "x INT", UnknownName, "nothing is no parameter"),
        ("no_such_function(x)", "x INT", UnknownName, "NO_SUCH_FUNCTION"),
        ("f(x)", "x INT", SqlError, "calls itself"),
        ("x +", "x INT", SqlError, "does not parse"),
        ("array(x)", "x INT", UserError, "cast"),
        ("x", "x INTT", UserError, "types"),
        ("length(x)", "x VARCHAR(3)", UserError, "use STRING"),
        ("x + y", "x INT, y INT DEFAULT x", UnknownName, "x is no parameter of f, DEFAULT"),
        ("x", "x INT DEFAULT rand()", NotIncremental, "another value"),
        ("x", "x INT DEFAULT array(1)", UserError, "cast"),
        ("x", "x INT, X INT", InvalidName, "like another one"),
        ("current_time", "current_time INT", InvalidName, "function of Spark's"),
    ],
)
def test_bodies_that_cannot_be(
    flow: IncrementalFlow, body: str, parameters: str, kind: type[IvmError], says: str
) -> None:
    with pytest.raises(kind, match=says) as caught:
        flow.register_function("f", body, "INT", parameters=parameters)
    assert "function f" in str(caught.value)
    assert flow.current_tick == 0


def test_calls_and_names_that_cannot_be(shop: IncrementalFlow) -> None:
    for call in ("vat()", "vat(1, 2)", "vat(1, amount => 2)", "vat(price => 1)"):
        with pytest.raises(SqlError, match="vat") as caught:
            shop.register_view("v", f"SELECT {call} AS x FROM t")
        assert "vat(amount decimal(12,2))" in str(caught.value)
    with pytest.raises(UserError, match="cast"):
        shop.register_view("v", "SELECT twice(xs) AS x FROM t")
    with pytest.raises(DuplicateName):
        shop.register_function("upper", "x", "INT", parameters="x INT")
    with pytest.raises(UserError, match="parameters"):
        shop.register_function("g", abs, "INT", parameters="x INT", deterministic=True)
    # a circle that closes later
    shop.register_function("below", "x", "INT", parameters="x INT")
    shop.register_function("outer_", "below(x)", "INT", parameters="x INT")
    with pytest.raises(SqlError, match="calls itself"):
        shop.register_function("below", "outer_(x)", "INT", parameters="x INT")
    assert shop.views == ()
