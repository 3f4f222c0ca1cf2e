"""Line and column of constructs."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from ivm_core.frontend.dialect import Verbatim
from ivm_core.frontend.positions import Positions

SQL = """SELECT 'LIMIT' AS `limit`,
  a
FROM t ORDER
  BY a
LIMIT 5"""


def test_a_phrase_is_found_though_it_spans_lines() -> None:
    assert Positions(SQL).first("ORDER BY") == "line 3, column 8"


def test_words_in_strings_and_quoted_names_are_not_keywords() -> None:
    assert Positions(SQL).first("LIMIT") == "line 5, column 1"


def test_the_nearest_phrase_before_the_tree_counts() -> None:
    sql = "SELECT a FROM t JOIN u ON a = b JOIN v ON c = d"
    tree = sqlglot.parse_one(sql, dialect=Verbatim)
    second = list(tree.find_all(exp.Join))[1]
    assert Positions(sql).find(second, "JOIN") == "line 1, column 33"


def test_a_tree_stands_where_its_first_token_does() -> None:
    tree = sqlglot.parse_one("SELECT\n  upper(s) AS u", dialect=Verbatim)
    assert Positions("SELECT\n  upper(s) AS u").find(tree) == "line 2, column 3"


def test_what_is_nowhere_has_no_position() -> None:
    assert Positions("SELECT 1 AS x").first("WHERE") == ""
