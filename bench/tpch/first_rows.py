"""Comparing a result with Spark's where the query leaves open which rows are the first ones.

ORDER BY … LIMIT with equal rows at its end lets Spark take any of them, and so two right answers
can differ. What can't differ: the columns that are ordered by, as a bag; and that every row is one
of the query without its LIMIT. Both are asked of Spark's own answer to the text as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp, parse_one

from bench.dataset import same_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def equals_spark(found: DataFrame, spark: SparkSession, sql: str) -> bool:
    """Whether rows are a right answer to a query over the session's temporary views."""
    expected = spark.sql(sql)
    if same_rows(found, expected):
        return True
    order, whole = without_limit(sql)
    if not order:
        return False
    every = spark.sql(whole).select(*found.columns)
    return same_rows(found.select(*order), expected.select(*order)) and (
        found.exceptAll(every).isEmpty()
    )


def without_limit(sql: str) -> tuple[list[str], str]:
    """The columns that a query with LIMIT is ordered by, and its text without both; else none."""
    tree = parse_one(sql, dialect="spark")
    order = tree.args.get("order")
    if tree.args.get("limit") is None or order is None:
        return [], sql
    names = [each.this.name for each in order.expressions if isinstance(each.this, exp.Column)]
    if len(names) != len(order.expressions):
        raise ValueError("ordered by more than columns")
    tree.set("limit", None)
    tree.set("order", None)
    return names, tree.sql(dialect="spark")
