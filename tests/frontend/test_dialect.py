"""Spark SQL as it is written: functions, strings, names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlglot
from sqlglot import exp

from ivm_core.frontend.dialect import Verbatim, string_value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("''", ""),
        ("'it''s'", "it's"),
        ("''''", "'"),
        ('"say ""x"""', 'say "x"'),
        ("\"it''s\"", "it''s"),
        (r"'\d'", "d"),
        (r"'\\d'", r"\d"),
        (r"'\%\_'", r"\%\_"),
        (r"'\n\t\0\Z'", "\n\t\0\x1a"),
        (r"'\101\u0041\U0001F600'", "AA😀"),
        (r"'\''", "'"),
    ],
)
def test_strings_have_the_value_that_spark_gives_them(literal: str, value: str) -> None:
    assert string_value(literal) == value
    tree = sqlglot.parse_one(f"SELECT {literal} AS s", dialect=Verbatim)
    assert tree.expressions[0].this.this == value


@pytest.mark.parametrize(
    "expression",
    [
        "TO_CHAR(x, '099')",
        "DATE_FORMAT(d, 'yyyy/MM EEE')",
        "TO_DATE(s, 'dd.MM.yyyy')",
        "DATEADD(DAY, 1, d)",
        "DATEDIFF(MONTH, d, e)",
        "REGEXP_EXTRACT(s, '(a)')",
        "ARRAY(1, 2)[0]",
        "STRUCT(a AS X, b)",
        "TRANSFORM(xs, x -> x + y)",
        "IF(a, b, c)",
        "GET_JSON_OBJECT(s, '$.a[0]')",
        "EXISTS(xs, x -> x > 1)",
        "LOG(2, x)",
        "DECODE(a, 1, 'x', 'y')",
        "NVL2(a, b, c)",
        "CHAR(65)",
        "TRUNC(d, 'MM')",
        "FROM_UNIXTIME(x, 'yyyy')",
    ],
)
def test_calls_stay_as_they_are(expression: str) -> None:
    tree = sqlglot.parse_one(f"SELECT {expression} AS r", dialect=Verbatim)
    assert tree.expressions[0].this.sql(dialect="spark") == expression


def test_variables_of_functions_are_found_whatever_their_case() -> None:
    tree = sqlglot.parse_one("SELECT zip_with(a, b, (X, y) -> x + Y) AS r", dialect=Verbatim)
    assert [column.name for column in tree.find_all(sqlglot.exp.Column)] == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        "g = h = l",
        "g = h > l",
        "g > h = l",
        "g <> h <=> l",
        "g = h BETWEEN FALSE AND l",
        "g = h NOT BETWEEN FALSE AND l",
        "g = h IN (FALSE, l)",
        "g < h NOT IN (TRUE)",
        "g = h LIKE 'true'",
        "g = h NOT LIKE 't%'",
        "g = h IS NULL",
        "g = h IS NOT NULL",
        "g = h IS DISTINCT FROM l",
        "g = h IS DISTINCT FROM l > g",
        "NOT g = h > l",
        "NOT g BETWEEN h AND l",
        "g AND h = l OR l > h AND NOT g = l",
        "1 + 2 > 2 = g",
        "-1 < 2 * 3 - 4 = h",
        "1 | 2 = 3 & 7 = l",
    ],
)
def test_operators_bind_as_they_do_in_spark(spark: SparkSession, text: str) -> None:
    tree = sqlglot.parse_one(text, dialect=Verbatim)
    for each in list(tree.walk()):
        if each.parent and isinstance(each, exp.Binary | exp.Predicate | exp.Not):
            each.replace(exp.Paren(this=each.copy()))
    bracketed = tree.sql(dialect=Verbatim)
    assert bracketed.count("(") > text.count("("), "there is nothing to bind"
    three = "(VALUES (TRUE), (FALSE), (NULL))"
    answers = spark.sql(
        f"SELECT {text} AS one, {bracketed} AS two "
        f"FROM {three} AS a(g), {three} AS b(h), {three} AS c(l)"
    ).toArrow()
    assert answers["one"].to_pylist() == answers["two"].to_pylist()


@pytest.mark.parametrize("text", ["a LIKE b = c", "a BETWEEN b AND c > d", "a IS NULL = b"])
def test_what_spark_binds_to_the_right_of_a_pattern_is_not_read(text: str) -> None:
    with pytest.raises(sqlglot.errors.ParseError, match="wants parentheses"):
        sqlglot.parse_one(text, dialect=Verbatim)
