"""Cutting plans into stages, and the names that their traces have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core.compile.expansion import expand
from ivm_core.compile.stages import StageCutting, cut, physical_names
from ivm_core.model.ddl import parse_type
from ivm_core.plan.nodes import Kept
from tests.compile.plans import optimised

if TYPE_CHECKING:
    from ivm_core.plan.nodes import Node


def shape(sql: str) -> list[tuple[str, bool, bool]]:
    """Relation, whether it aggregates, whether its rows are kept."""
    return [
        (stage.relation, stage.aggregate is not None, stage.keeps_rows)
        for stage in cut(optimised(sql), "v")
    ]


@pytest.mark.parametrize(
    ("sql", "stages"),
    [
        ("SELECT x FROM a WHERE x > 1", [("v", False, True)]),
        (
            "SELECT a.x FROM a JOIN b ON a.x = b.x UNION ALL SELECT x FROM a",
            [("v", False, True)],
        ),
        # a sum is folded into the view's own statement
        ("SELECT s, SUM(x) AS t FROM a GROUP BY s", [("v#1", True, False), ("v", False, True)]),
        ("SELECT DISTINCT s FROM a", [("v#1", True, False), ("v", False, True)]),
        # MIN and MAX compare deletions with what they were
        ("SELECT s, MAX(x) AS t FROM a GROUP BY s", [("v#1", True, True), ("v", False, True)]),
        # a join asks for its other side as it was
        (
            "SELECT q.t FROM (SELECT s, SUM(x) AS t FROM a GROUP BY s) q JOIN c ON q.s = c.s",
            [("v#1", True, True), ("v", False, True)],
        ),
        (
            "SELECT COUNT(*) AS n FROM (SELECT s, SUM(x) AS t FROM a GROUP BY s)",
            [("v#1", True, False), ("v#2", True, False), ("v", False, True)],
        ),
        # a maximum of sums may have to look at all sums again
        (
            "SELECT MAX(t) AS m FROM (SELECT s, SUM(x) AS t FROM a GROUP BY s)",
            [("v#1", True, True), ("v#2", True, True), ("v", False, True)],
        ),
    ],
)
def test_stages(sql: str, stages: list[tuple[str, bool, bool]]) -> None:
    assert shape(sql) == stages


def test_trees_that_are_gone_are_not_taken_for_others() -> None:
    cutting = StageCutting("v")
    for number in range(200):
        # each tree is gone before the next one is made, which may be where it was
        sql = f"SELECT x + {number} AS n FROM a WHERE y > {number}"
        assert cutting.descend(optimised(sql), needs_old=True).text == optimised(sql).text


def expanded(sql: str) -> Node:
    integer = parse_type("INT")
    return expand(optimised(sql), lambda node: dict.fromkeys(node.columns, integer))


@pytest.mark.parametrize(
    ("link", "condition"),
    [
        ("LEFT JOIN b AS b{n} ON a.x = b{n}.x", ""),
        ("LEFT JOIN b AS b{n} ON a.x < b{n}.x", ""),
        ("LEFT ANTI JOIN b AS b{n} ON a.x = b{n}.x AND b{n}.y = {n}", ""),
        ("", " AND a.x NOT IN (SELECT x FROM b WHERE z = {n})"),
    ],
)
def test_a_longer_chain_makes_no_longer_statements(link: str, condition: str) -> None:
    def longest(links: int) -> int:
        joins = " ".join(link.format(n=n) for n in range(links))
        conditions = "".join(condition.format(n=n) for n in range(links))
        sql = f"SELECT a.s FROM a {joins} WHERE TRUE{conditions}"
        return max(named(stage.body) for stage in cut(expanded(sql), "v"))

    assert longest(9) <= 2 * longest(3) < 60


def named(node: Node) -> int:
    """Relations that a statement over the node names."""
    return sum(named(child) for child in node.inputs) or 1


def test_what_is_read_once_is_not_kept() -> None:
    sql = "SELECT a.x, b.z FROM a LEFT JOIN b ON a.x = b.x"
    tops = [type(stage.top) for stage in cut(expanded(sql), "v")]
    assert Kept not in tops


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        (("t.a", "t.b"), ("t_a", "t_b")),
        (("t.a_b", "t_a.b"), ("t_a_b", "t_a_b_2")),
        (("t.A", "t.a "), ("t_A", "t_a_")),
        (("_x", "__"), ("x", "c")),
        (("t.größe", "t.日本"), ("t_größe", "t_日本")),
        (("aggregate.1_n", "aggregate_1"), ("key_aggregate_1_n", "aggregate_1")),
    ],
)
def test_physical_names_are_storable_and_unique(
    columns: tuple[str, ...], names: tuple[str, ...]
) -> None:
    assert physical_names(columns) == names
