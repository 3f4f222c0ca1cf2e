"""Which expressions can never raise."""

from __future__ import annotations

import pytest

from ivm_core.compile.totality import is_total
from ivm_core.plan.nodes import Filter
from tests.compile.plans import CATALOG, parsed


def total(predicate: str) -> bool:
    plan = parsed(f"SELECT a.x FROM a, b, e WHERE {predicate}")
    node = next(node for node in plan.walk() if isinstance(node, Filter))
    return is_total(node.predicate, node.input, CATALOG)


@pytest.mark.parametrize(
    "predicate",
    [
        "a.x = 1",
        "a.x = b.z",
        "a.s = 'text'",
        "a.x > 1 AND NOT a.s IS NULL OR b.y <=> a.y",
        "a.x IN (1, 2)",
        "a.x BETWEEN 1 AND b.z",
        "a.s IN ('p', 'q')",
        "a.d >= 1.5",
        "a.x > -1",
        "a.s LIKE '%text%' AND a.s NOT LIKE 'text%'",
        "SUBSTR(a.s, 1, 2) IN ('13', '31')",
        "SUBSTRING(a.s FROM 3) = 'x'",
        "a.x = 2000 + 1",
        "a.x BETWEEN 1200 AND 1200 + 11",
        "a.x BETWEEN '1' AND 2",
        "DATE '2024-01-01' < CAST('2024-02-01' AS DATE) + INTERVAL 30 DAYS",
        "YEAR(e.t) = 2024 AND UPPER(a.s) = COALESCE(a.s, 'x')",
        "TRUE",
    ],
)
def test_comparisons_within_a_family_are_total(predicate: str) -> None:
    assert total(predicate)


@pytest.mark.parametrize(
    "predicate",
    [
        "a.x / b.y > 1",
        "a.s LIKE 'a\\\\b'",
        "a.s LIKE a.s",
        "a.x LIKE '1%'",
        "SUBSTR(a.s, a.x, 2) = 'x'",
        "YEAR(a.s) = 2024",
        "a.x > 1 + '1'",
        "a.x > 1 / 0",
        "a.x + 1 > 2",
        "CAST(a.s AS INT) = 1",
        "a.s = 1",
        "a.s = b.z",
        "a.s > DATE '2024-01-01'",
        "a.s IN (1, 2)",
        "a.s BETWEEN '1' AND 2",
        "CASE WHEN a.x = 1 THEN a.y / 0 = 1 ELSE TRUE END",
    ],
)
def test_what_may_raise_is_not(predicate: str) -> None:
    assert not total(predicate)
