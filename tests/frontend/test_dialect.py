"""Spark SQL as it is written: functions, strings, names."""

from __future__ import annotations

import pytest
import sqlglot

from ivm_core.frontend.dialect import Verbatim, string_value


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
