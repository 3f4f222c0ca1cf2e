"""Rewrites, one by one, on plans made from SQL."""

from __future__ import annotations

import pytest

from ivm_core.compile.rules.flatten_joins import flatten_joins
from ivm_core.compile.rules.merge_projects import merge_projects
from ivm_core.compile.rules.prune_columns import prune_columns
from ivm_core.compile.rules.split_conjunctions import split_conjunctions
from ivm_core.plan.nodes import Aggregate, Filter, Join, Match, Project, Scan
from tests.compile.plans import CATALOG, optimised, parsed


def joins(sql: str) -> list[Join]:
    return [node for node in optimised(sql).walk() if isinstance(node, Join)]


def filters_above_joins(sql: str) -> list[str]:
    found = [node for node in optimised(sql).walk() if isinstance(node, Filter)]
    return [node.predicate.sql for node in found if any(isinstance(n, Join) for n in node.walk())]


def test_conjunctions_are_split() -> None:
    plan = split_conjunctions(
        parsed("SELECT x FROM a WHERE x > 1 AND (y = 2 AND s = 'q')"), CATALOG
    )
    predicates = [node.predicate.sql for node in plan.walk() if isinstance(node, Filter)]
    assert predicates == ["`a.x` > 1", "`a.y` = 2", "`a.s` = 'q'"]


def test_joins_of_joins_become_one() -> None:
    sql = "SELECT a.x FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y"
    plan = flatten_joins(merge_projects(parsed(sql), CATALOG), CATALOG)
    assert [len(node.parts) for node in plan.walk() if isinstance(node, Join)] == [3]


def test_renaming_projections_melt_away() -> None:
    plan = optimised("SELECT q.x FROM (SELECT x FROM (SELECT * FROM a) p) q")
    assert [type(node) for node in plan.walk()] == [Scan, Project]


def test_computed_projections_stay_apart() -> None:
    plan = optimised("SELECT q.u + q.u AS v FROM (SELECT x * 2 AS u FROM a) q")
    assert [type(node) for node in plan.walk()] == [Scan, Project, Project]


def test_a_condition_that_cannot_raise_goes_below_the_join() -> None:
    (join,) = joins("SELECT a.x FROM a JOIN b ON a.x = b.x WHERE a.y > 1 AND b.y IS NULL")
    assert [condition.sql for condition in join.conditions] == ["`a.x` = `b.x`"]
    assert all(any(isinstance(n, Filter) for n in part.walk()) for part in join.parts)


@pytest.mark.parametrize(
    "condition", ["a.x / b.y > 1", "CAST(a.s AS INT) > 1", "length(a.s) > b.y"]
)
def test_a_condition_that_may_raise_stays_above_the_join(condition: str) -> None:
    found = filters_above_joins(f"SELECT a.x FROM a JOIN b ON a.x = b.x WHERE {condition}")
    assert len(found) == 1


def test_an_equality_of_the_sides_joins_them_even_if_it_may_raise() -> None:
    (join,) = joins("SELECT a.x FROM a JOIN b ON CAST(a.s AS INT) = b.x + 1")
    assert len(join.conditions) == 1


def test_a_condition_that_may_raise_waits_for_all_that_can_not() -> None:
    sql = "SELECT a.x FROM a, b WHERE a.y / a.x > 1 AND b.y > 1 AND a.x = b.x AND 1 / b.y > 2"
    assert filters_above_joins(sql) == ["`a.y` / `a.x` > 1", "1 / `b.y` > 2"]
    (join,) = joins(sql)
    assert [condition.sql for condition in join.conditions] == ["`a.x` = `b.x`"]


def test_constants_can_not_raise_row_by_row() -> None:
    constant = "CAST('2024-01-01' AS DATE) + INTERVAL 60 DAYS"
    sql = f"SELECT e.x FROM e, b WHERE e.t < {constant} AND e.t > '2023-01-01' AND e.x = b.x"
    assert not filters_above_joins(sql)


def test_texts_of_a_column_may_not_be_numbers() -> None:
    assert len(filters_above_joins("SELECT a.x FROM a, b WHERE a.s = 1 AND a.x = b.x")) == 1


def test_what_all_alternatives_share_is_a_condition_of_its_own() -> None:
    sql = "SELECT a.x FROM a, b WHERE (a.x = b.x AND a.y = 1) OR (b.y = 2 AND (a.x = b.x))"
    (join,) = joins(sql)
    assert "`a.x` = `b.x`" in [condition.sql for condition in join.conditions]
    sql = "SELECT a.x FROM a WHERE (a.x = 1 AND a.y = 1) OR a.x = 1"
    (found,) = (node for node in optimised(sql).walk() if isinstance(node, Filter))
    assert found.predicate.sql == "`a.x` = 1"


def test_a_total_comparison_of_both_sides_is_a_join_condition() -> None:
    (join,) = joins("SELECT a.x FROM a, b WHERE a.x < b.y AND a.x <=> b.x")
    assert [condition.sql for condition in join.conditions] == [
        "`a.x` < `b.y`",
        "`a.x` IS NOT DISTINCT FROM `b.x`",
    ]


def test_only_columns_that_are_read_are_scanned() -> None:
    plan = optimised("SELECT a.s FROM a JOIN b ON a.x = b.x")
    fields = {node.relation: node.fields for node in plan.walk() if isinstance(node, Scan)}
    assert fields == {"a": ("x", "s"), "b": ("x",)}


def test_a_scan_of_which_nothing_is_read_keeps_a_column() -> None:
    plan = prune_columns(parsed("SELECT COUNT(*) AS n FROM a CROSS JOIN b"), CATALOG)
    assert all(len(node.fields) == 1 for node in plan.walk() if isinstance(node, Scan))
    assert all(node.columns for node in plan.walk())


def test_aggregates_that_nobody_reads_are_not_computed() -> None:
    plan = optimised("SELECT n FROM (SELECT s, COUNT(*) AS n, SUM(x) AS t FROM a GROUP BY s)")
    aggregate = next(node for node in plan.walk() if isinstance(node, Aggregate))
    assert [call.function for call in aggregate.calls] == ["COUNT_STAR"]


def test_a_global_aggregate_of_which_nothing_is_read_is_still_one_row() -> None:
    plan = optimised("SELECT 1 AS one FROM (SELECT COUNT(*) AS n, SUM(x) AS t FROM a) q")
    aggregate = next(node for node in plan.walk() if isinstance(node, Aggregate))
    assert len(aggregate.calls) == 1


def test_two_parts_of_a_join_of_which_nothing_is_read_keep_different_names() -> None:
    sql = "SELECT COUNT(*) AS n FROM (SELECT x + 1 AS u FROM a) p, (SELECT x + 1 AS u FROM b) q"
    assert len(joins(sql)[0].columns) == 2


@pytest.mark.parametrize(
    ("condition", "is_inner"),
    [
        ("a.y < (SELECT MAX(b.y) FROM b WHERE b.x = a.x)", True),
        ("(SELECT 2 * MIN(b.y) FROM b WHERE b.x = a.x) + a.x <> 3", True),
        ("a.y = (SELECT b.y FROM b WHERE b.x = a.x)", True),
        ("a.y > (SELECT COUNT(*) FROM b WHERE b.x = a.x)", False),
        ("a.y > (SELECT COALESCE(MAX(b.y), 0) FROM b WHERE b.x = a.x)", False),
        ("a.y <=> (SELECT MAX(b.y) FROM b WHERE b.x = a.x)", False),
        ("(SELECT MAX(b.y) FROM b WHERE b.x = a.x) IS NULL", False),
        ("COALESCE((SELECT MAX(b.y) FROM b WHERE b.x = a.x), 1) = 1", False),
        ("NOT a.y < (SELECT MAX(b.y) FROM b WHERE b.x = a.x)", False),
    ],
)
def test_a_row_whose_subquery_is_null_is_not_looked_for(condition: str, is_inner: bool) -> None:
    plan = optimised(f"SELECT a.x FROM a WHERE {condition}")
    matches = [node for node in plan.walk() if isinstance(node, Match)]
    assert bool(matches) != is_inner
