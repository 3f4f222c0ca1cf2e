"""Aggregates that are joined by their keys: which of their groups are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core.compile.limited_groups import limit_groups
from ivm_core.compile.rules import optimise
from ivm_core.compile.totality import column_type
from ivm_core.model.schema import parse_schema
from ivm_core.operators.accumulators import accumulator_for
from ivm_core.plan.nodes import Aggregate, Distinct, Join
from tests.compile.plans import CATALOG as PLAIN
from tests.compile.plans import parsed

if TYPE_CHECKING:
    from ivm_core.model.types import DataType
    from ivm_core.plan.nodes import Node

CATALOG = {**PLAIN, "m": parse_schema("k STRING, s STRING, p DECIMAL(12,2)")}


def types_of(node: Node) -> dict[str, DataType]:
    """What Spark would say; nothing of expressions."""
    found = {name: column_type(node, name, CATALOG) for name in node.columns}
    if isinstance(node, Aggregate):
        below = types_of(node.input)
        for call in node.calls:
            argument = None if call.argument is None else below[call.argument]
            found[call.name] = accumulator_for(call.function, argument, "a").result_type
    return {name: of for name, of in found.items() if of is not None}


def plan(sql: str) -> Node:
    return optimise(
        limit_groups(optimise(parsed(sql, CATALOG), CATALOG), CATALOG, types_of), CATALOG
    )


def limited(sql: str) -> list[str]:
    """What limits the groups of an aggregate."""
    groups = [node for node in plan(sql).walk() if isinstance(node, Aggregate)]
    return [part.text for node in groups for part in node.walk() if isinstance(part, Distinct)]


ASKED = (
    "SELECT a.x, g.v FROM a JOIN (SELECT x, {call} AS v FROM b GROUP BY x) g ON {on} WHERE {where}"
)


@pytest.mark.parametrize(
    ("call", "on", "where", "keys"),
    [
        ("MAX(z)", "g.x = a.x", "a.s = 'q'", ["a.x"]),
        ("COUNT(*)", "a.x = g.x AND a.y > 1", "a.s IN ('q', 'r')", ["a.x"]),
        ("SUM(y)", "a.x = g.x", "a.s LIKE 'q%'", ["a.x"]),
        ("AVG(y)", "a.y = g.x", "a.x = 3 AND v > 2", ["a.y"]),
        ("SUM(z)", "g.x = a.x", "a.s = 'q'", []),  # a group that nobody asks for may overflow
        ("MAX(z)", "g.x = a.x", "a.y > 1", []),  # it may leave most rows
        ("MAX(z)", "g.x <=> a.x", "a.s = 'q'", []),
        ("MAX(z)", "g.x = a.x + 1", "a.s = 'q'", []),
        ("MAX(z)", "g.v = a.x", "a.s = 'q'", []),
        ("COUNT(*)", "g.x = a.s", "a.s LIKE '1%'", []),  # '1' and '01' are the same number
        ("2.5 * AVG(y)", "g.x = a.x", "a.s = 'q'", ["a.x"]),
        ("MAX(y) + 1", "g.x = a.x", "a.s = 'q'", []),
        ("10 / MAX(y)", "g.x = a.x", "a.s = 'q'", []),  # it may raise for groups nobody asks for
    ],
)
def test_groups_are_limited_to_those_that_are_asked_for(
    call: str, on: str, where: str, keys: list[str]
) -> None:
    found = limited(ASKED.format(call=call, on=on, where=where))
    assert [text for key in keys for text in found if f"=`{key}`" in text] == found
    assert len(found) == len(keys)


def test_keys_are_joined_below_a_renaming() -> None:
    sql = (
        "SELECT a.x FROM a WHERE a.s = 'q' AND a.y = (SELECT MIN(b.y) FROM b JOIN c ON b.y = c.y "
        "WHERE b.x = a.x)"
    )
    grouped = [node for node in plan(sql).walk() if isinstance(node, Aggregate)]
    joins = [node for node in grouped[0].walk() if isinstance(node, Join)]
    assert [len(join.parts) for join in joins] == [3]


def test_what_is_computed_of_decimals_has_room() -> None:
    sql = "SELECT m.s FROM m WHERE m.k = 'q' AND m.p < (SELECT {} FROM m AS o WHERE o.s = m.s)"
    assert len(limited(sql.format("0.2 * AVG(o.p)"))) == 1
    assert not limited(sql.format("MAX(o.p) * MAX(o.p) * MAX(o.p) * 10"))


def test_an_aggregate_that_is_read_twice_stays_whole() -> None:
    sql = (
        "WITH g AS (SELECT x, MAX(z) AS v FROM b GROUP BY x) SELECT a.x FROM a JOIN g ON g.x = a.x "
        "WHERE a.s = 'q' UNION ALL SELECT x FROM g"
    )
    assert not limited(sql)


def test_limiting_again_changes_nothing() -> None:
    sql = ASKED.format(call="MAX(z)", on="g.x = a.x", where="a.s = 'q'")
    assert len(limited(sql)) == 1
