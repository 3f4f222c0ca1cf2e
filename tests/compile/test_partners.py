"""Which rows of a join's inputs can have partners: what links them, and what must see every row."""

from __future__ import annotations

import pytest

from ivm_core.compile.partners import Partners, partners_of
from ivm_core.compile.stages import cut
from tests.compile.plans import CATALOG, optimised


def partners(sql: str) -> Partners:
    return partners_of(cut(optimised(sql), "v")[-1].body, CATALOG)


def links(found: Partners) -> set[str]:
    return {
        " = ".join(
            sorted(
                (
                    f"{found.uses[link.use].relation}.{link.field}",
                    f"{found.uses[link.other_use].relation}.{link.other_field}",
                )
            )
        )
        for link in found.links
    }


def test_equalities_link_and_what_follows_from_them() -> None:
    found = partners("SELECT a.s FROM a JOIN b ON a.x = b.x JOIN e ON b.x = e.x AND a.y < b.y")
    assert links(found) == {"a.x = b.x", "b.x = e.x", "a.x = e.x"}
    assert found.relations == {"a", "b", "e"}
    assert len(found.through) == 3


def test_filters_are_sieves() -> None:
    found = partners("SELECT a.s FROM a JOIN b ON a.x = b.x WHERE a.s = 'q' AND b.y > 1")
    sieves = {use.relation: [each.sql for each in use.sieves] for use in found.uses}
    assert sieves == {"a": ["`s` = 'q'"], "b": ["`y` > 1"]}


@pytest.mark.parametrize(
    ("on", "losing"),
    [
        ("a.x = b.x AND a.y + 1 > b.y", {"a", "b"}),  # asked of pairs only
        ("a.x = b.x AND 10 / a.y > 1", {"b"}),
        ("a.x = b.x AND a.y + 1 = b.y", set()),  # a side of an equality is a key of every row
        ("a.d = b.x", {"a", "b"}),
    ],
)
def test_what_may_raise_sees_every_row(on: str, losing: set[str]) -> None:
    assert partners(f"SELECT a.s FROM a JOIN b ON {on}").relations == losing


def test_a_filter_below_that_may_raise() -> None:
    found = partners("SELECT q.s FROM (SELECT * FROM a WHERE 1 / y > 0) q JOIN b ON q.x = b.x")
    assert found.relations == {"b"}


def test_values_that_are_equal_otherwise_in_spark_link_nothing() -> None:
    assert not partners("SELECT a.s FROM a JOIN b ON a.d = b.z").links
    assert links(partners("SELECT a.s FROM a JOIN b ON a.x = b.z")) == {"a.x = b.z"}


def test_a_relation_that_is_read_twice() -> None:
    found = partners("SELECT p.s FROM a AS p JOIN a AS q ON p.x = q.y WHERE p.s = 'q'")
    assert found.relations == {"a"}
    assert found.only_use("a") is None
    found = partners(
        "SELECT a.s FROM a JOIN b ON a.x = b.x UNION ALL SELECT a.s FROM a WHERE a.y = 1"
    )
    assert found.relations == {"b"}
    assert not found.through
    assert found.only_use("a") is None


def test_no_join_no_partners() -> None:
    found = partners("SELECT s FROM a WHERE x > 1")
    assert not found.uses
    assert not found.through
