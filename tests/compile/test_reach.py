"""What a change can reach: hops by equality, and what is read in full."""

from __future__ import annotations

import pytest

from ivm_core.compile.reach import Reach, ReachFinder
from tests.compile.plans import CATALOG, optimised


def reach(sql: str, *dirty: str) -> Reach:
    return ReachFinder(CATALOG, frozenset(dirty)).of_delta(optimised(sql))


def hops(found: Reach) -> list[str]:
    return [f"{hop.relation} {hop}" for hop in found.hops]


CHAIN = "SELECT a.s FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y JOIN d ON c.z = d.z"


def test_one_table_reaches_nothing() -> None:
    assert reach("SELECT s, COUNT(*) AS n FROM a GROUP BY s", "a") == Reach()


def test_a_chain_is_followed_hop_by_hop() -> None:
    found = reach(CHAIN, "a")
    assert hops(found) == [
        "b limited by x to values of a.x",
        "c limited by y to values of b.y",
        "d limited by z to values of c.z",
    ]
    assert [origin.with_rows for hop in found.hops for origin in hop.origins] == [False, True, True]
    assert not found.full


def test_the_middle_reaches_both_ends() -> None:
    assert sorted(hops(reach(CHAIN, "c"))) == [
        "a limited by x to values of b.x",
        "b limited by y to values of c.y",
        "d limited by z to values of c.z",
    ]


def test_all_equalities_from_what_is_at_hand_limit_a_table() -> None:
    sql = "SELECT a.s FROM a JOIN b ON a.x = b.x AND a.y = b.y JOIN c ON b.y = c.y AND a.s = c.s"
    assert hops(reach(sql, "a")) == [
        "b limited by x to values of a.x and by y to values of a.y",
        "c limited by y to values of b.y and by s to values of a.s",
    ]


def test_an_equality_with_rows_that_were_not_asked_for_yet_limits_nothing() -> None:
    sql = "SELECT a.s FROM a JOIN b ON a.x = b.x JOIN c ON a.y = c.y AND b.z = c.z"
    assert hops(reach(sql, "a")) == [
        "b limited by x to values of a.x",
        "c limited by y to values of a.y",
    ]


def test_limits_are_handed_down_to_the_parts_that_have_the_columns() -> None:
    sql = """
        SELECT q.by, MAX(q.ay) AS m FROM (
            SELECT a.y AS ay, a.s AS s, b.y AS by FROM a JOIN b ON a.x = b.x
        ) q GROUP BY q.by, q.s
    """
    aggregate = next(n for n in optimised(sql).walk() if type(n).__name__ == "Aggregate")
    keys = tuple(column for _, column in aggregate.keys)  # type: ignore[attr-defined]
    found = ReachFinder(CATALOG, frozenset({"a"})).of_keys(aggregate.inputs[0], keys)
    assert hops(found) == [
        "b limited by y to values of the affected keys",
        "a limited by s to values of the affected keys and by x to values of b.x",
    ]


def test_a_hop_through_rows_is_repeated_for_every_change_that_takes_it() -> None:
    star = "SELECT a.s FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y JOIN d ON b.z = d.z"
    repeated = hops(reach(star, "a", "d")).count("c limited by y to values of b.y")
    assert repeated == 2


def test_null_safe_equality_lets_nulls_through() -> None:
    found = reach("SELECT a.x FROM a JOIN b ON a.x <=> b.x", "a")
    assert [limit.null_safe for hop in found.hops for limit in hop.limits] == [True]
    found = reach("SELECT a.x FROM a JOIN b ON a.x = b.x", "a")
    assert [limit.null_safe for hop in found.hops for limit in hop.limits] == [False]


@pytest.mark.parametrize(
    "condition",
    ["a.x < b.x", "a.x + 1 = b.x", "a.s = b.x", "a.d = b.x", "a.x = b.x OR a.y = b.y", "TRUE"],
)
def test_what_no_equality_of_plain_columns_reaches_is_read_in_full(condition: str) -> None:
    found = reach(f"SELECT a.x FROM a JOIN b ON {condition}", "a")
    assert set(found.full) == {"b"}
    assert "no equality" in found.full["b"]


def test_a_self_join_is_limited_by_its_own_change() -> None:
    found = reach("SELECT p.x FROM a p JOIN a q ON p.x = q.y", "a")
    assert sorted(hops(found)) == [
        "a limited by x to values of a.y",
        "a limited by y to values of a.x",
    ]


def test_a_union_is_limited_branch_by_branch() -> None:
    sql = "SELECT q.x FROM (SELECT x FROM a UNION ALL SELECT y FROM a) q JOIN b ON q.x = b.x"
    assert sorted(hops(reach(sql, "b"))) == [
        "a limited by x to values of b.x",
        "a limited by y to values of b.x",
    ]


def test_keys_reach_all_rows_of_their_groups() -> None:
    sql = "SELECT b.y, MAX(a.y) AS m FROM a JOIN b ON a.x = b.x GROUP BY b.y"
    body = next(n for n in optimised(sql).walk() if type(n).__name__ == "Aggregate").inputs[0]
    found = ReachFinder(CATALOG, frozenset({"a"})).of_keys(body, ("b.y",))
    assert hops(found) == [
        "b limited by y to values of the affected keys",
        "a limited by x to values of b.x",
    ]


@pytest.mark.parametrize(
    "sql", ["SELECT MAX(x) AS m FROM a", "SELECT MAX(x) AS m FROM a GROUP BY d"]
)
def test_groups_without_a_key_that_limits_are_read_in_full(sql: str) -> None:
    aggregate = next(n for n in optimised(sql).walk() if type(n).__name__ == "Aggregate")
    keys = tuple(column for _, column in aggregate.keys)  # type: ignore[attr-defined]
    found = ReachFinder(CATALOG, frozenset({"a"})).of_keys(aggregate.inputs[0], keys)
    assert set(found.full) == {"a"}


def test_rows_that_a_filter_takes_away_reach_nothing() -> None:
    sql = """
        SELECT a.s FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y
        WHERE a.y > 3 AND upper(a.s) = 'A' AND (b.z = 1 OR b.z = 2) AND (a.s = 'q' OR c.z = 1)
    """
    assert hops(reach(sql, "a")) == [
        "b limited by x to values of a.x where `y` > 3",
        "c limited by y to values of b.y where `z` = 1 OR `z` = 2",
    ]


def test_a_condition_of_a_join_says_of_each_side_what_it_can() -> None:
    sql = """
        SELECT a.s FROM a JOIN b ON a.x = b.x
        WHERE (a.y = 1 AND b.z = 2) OR (a.y = 3 AND b.z = 4)
    """
    assert hops(reach(sql, "a", "b")) == [
        "b limited by x to values of a.x where `y` = 1 OR `y` = 3",
        "a limited by x to values of b.x where `z` = 2 OR `z` = 4",
    ]


def test_a_filter_on_a_computed_column_of_the_same_name_is_not_about_the_row() -> None:
    sql = """
        SELECT q.s FROM (SELECT a.x, a.y + 1 AS y, a.s FROM a) q JOIN b ON q.x = b.x WHERE q.y = 1
    """
    assert hops(reach(sql, "a")) == ["b limited by x to values of a.x"]
