"""What nodes of several views are one, and rows of which only the first are kept."""

from __future__ import annotations

import pytest

from ivm_core.compile.common_nodes import common_nodes
from ivm_core.compile.first_rows import keep_first_rows
from ivm_core.compile.node_keys import NodeKeys
from ivm_core.compile.program import ViewProgram, compile_view
from ivm_core.compile.rules import optimise
from ivm_core.plan.partitioned import STATEFUL
from tests.compile.plans import CATALOG, optimised, parsed

SUMS = "SELECT {0}.s, SUM({0}.x) AS t, COUNT(*) AS n FROM a {0} GROUP BY {0}.s"


def key(sql: str) -> str:
    """The key of the query's uppermost node with state."""
    *_, top = (node for node in optimised(sql).walk() if isinstance(node, STATEFUL))
    return NodeKeys().of(top)


def program(name: str, sql: str) -> ViewProgram:
    return compile_view(name, sql, lambda: parsed(sql), CATALOG, None)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (SUMS.format("p"), f"SELECT n + t AS y, s FROM ({SUMS.format('q')}) WHERE n > 1"),
        ("SELECT DISTINCT x AS one FROM a", "SELECT DISTINCT b.x FROM a AS b"),
        (
            "SELECT a.x, RANK() OVER (PARTITION BY a.s ORDER BY b.y) AS r FROM a, b WHERE a.x = b.x",
            "SELECT m.x, RANK() OVER (PARTITION BY m.s ORDER BY n.y) AS k "
            "FROM a AS m JOIN b AS n ON m.x = n.x",
        ),
        ("SELECT x FROM a ORDER BY y LIMIT 3", "SELECT q.x AS z FROM a q ORDER BY q.y LIMIT 3"),
    ],
)
def test_names_make_no_difference(one: str, other: str) -> None:
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT DISTINCT x FROM a", "SELECT DISTINCT y FROM a"),
        ("SELECT DISTINCT x FROM a", "SELECT DISTINCT x FROM b"),
        ("SELECT DISTINCT x, y FROM a", "SELECT DISTINCT y, x FROM a"),
        ("SELECT s, SUM(x) AS t FROM a GROUP BY s", "SELECT s, SUM(y) AS t FROM a GROUP BY s"),
        ("SELECT s, MIN(x) AS t FROM a GROUP BY s", "SELECT s, MAX(x) AS t FROM a GROUP BY s"),
        ("SELECT x FROM a ORDER BY y LIMIT 3", "SELECT x FROM a ORDER BY y LIMIT 4"),
        ("SELECT x FROM a ORDER BY y LIMIT 3", "SELECT x FROM a ORDER BY y DESC LIMIT 3"),
        ("SELECT DISTINCT x FROM a WHERE y > 1", "SELECT DISTINCT x FROM a WHERE x > 1"),
    ],
)
def test_what_is_computed_makes_one(one: str, other: str) -> None:
    assert key(one) != key(other)


def test_the_largest_common_nodes_come_first() -> None:
    inner = "SELECT DISTINCT s, x FROM a"
    outer = f"SELECT DISTINCT x FROM ({inner}) WHERE x > 1"
    one = program("one", f"SELECT x FROM ({outer}) WHERE x > 2")
    two = program("two", f"SELECT q.x AS y FROM ({outer}) q WHERE q.x > 3")
    alone = program("alone", "SELECT DISTINCT x FROM b")
    (found,) = common_nodes([one, two, alone], ())
    assert found.key == one.keys["one#2"] == two.keys["two#2"]
    # what is within it is a node of its own only where someone else reads it too
    three = program("three", f"SELECT s FROM ({inner.replace('a', 'a AS z')}) WHERE x > 5")
    chosen = common_nodes([one, two, alone, three], ())
    assert [each.key for each in chosen] == [found.key, three.keys["three#1"]]
    assert common_nodes([one, two, alone], [found.key]) == []


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("r <= 3", "top(a.s; 3 from 0"),
        ("r < 3", "top(a.s; 2 from 0"),
        ("4 > r AND x > 1", "top(a.s; 3 from 0"),
        ("1 = r", "top(a.s; 1 from 0"),
        ("r = 2", "top(a.s; 2 from 0"),
        ("r >= 2", ""),
        ("r < 1", ""),
        ("r <= 3 OR x = 1", ""),
        ("r <= x", ""),
        ("r <= 5000", ""),
        # it may fail on a row that is not among the first
        ("10 / x > 1 AND r <= 3", ""),
    ],
)
def test_first_rows(condition: str, kept: str) -> None:
    number = "row_number() OVER (PARTITION BY s ORDER BY d, x)"
    plan = optimised(f"SELECT x FROM (SELECT *, {number} AS r FROM a) WHERE {condition}")
    text = optimise(keep_first_rows(plan, CATALOG), CATALOG).text
    assert (kept in text) if kept else "top(" not in text
    # only a condition that says more than how many needs the place
    assert ("row_number" in text.lower()) == (not kept or condition == "r = 2")


def test_rows_that_are_read_twice_are_all_kept() -> None:
    number = "row_number() OVER (PARTITION BY s ORDER BY d, x)"
    ranked = f"WITH w AS (SELECT *, {number} AS r FROM a)"
    plan = optimised(f"{ranked} SELECT p.x FROM w p, w q WHERE p.x = q.x AND p.r <= 2")
    assert "top(" not in keep_first_rows(plan, CATALOG).text
