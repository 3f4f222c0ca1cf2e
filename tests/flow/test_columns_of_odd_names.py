"""Columns called as statements call what they add of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import ConstraintViolation, DeltaBatch, IncrementalFlow
from tests.flow.shop import assert_exact

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES = (
    *("_place", "_count", "_is_last", "_rows", "_side", "_redone", "_copy", "_before"),
    *("_place0", "_is_reached", "?place", "?ours", "?theirs", "?rows", "?one", "?value"),
)
VIEWS = {
    "first": "SELECT {a}, {b}, k FROM odd ORDER BY {a} DESC, k LIMIT 3",
    "behind": "SELECT {a}, {b}, k FROM odd ORDER BY {a}, k LIMIT 2 OFFSET 1",
    "grouped": "SELECT {a}, SUM({b}) AS {b}, MAX({b}) AS k FROM odd GROUP BY {a}",
    "listed": "SELECT {b}, COUNT(DISTINCT {a}) AS {a} FROM odd GROUP BY {b}",
    "numbered": "SELECT {a}, {b}, ROW_NUMBER() OVER (PARTITION BY {a} ORDER BY k) AS n FROM odd",
    "running": "SELECT {a}, {b}, "
    "SUM({b}) OVER (ORDER BY {a}, k ROWS UNBOUNDED PRECEDING) AS n FROM odd",
    "firsts": "SELECT * FROM (SELECT {a}, {b}, k, "
    "ROW_NUMBER() OVER (PARTITION BY {a} ORDER BY k) AS n FROM odd) WHERE n < 3",
    "joined": "SELECT x.{a}, y.{b} FROM odd x LEFT JOIN odd y ON x.{a} = y.{b}",
    "above": "SELECT {a}, k FROM odd o WHERE {b} > (SELECT AVG({b}) FROM odd i WHERE i.{a} = o.{a})",
    "among": "SELECT DISTINCT {a} FROM odd WHERE {b} IN (SELECT {a} FROM odd)",
}


@pytest.mark.parametrize("key", ["_weight_sum", "_tv-place_min", "count_all", "?0", "?place"])
def test_keys_are_told_apart(flow: IncrementalFlow, key: str) -> None:
    flow.register_source("odd", f"`{key}` INT, x INT", primary_key=[key])
    flow.register_view("v", f"SELECT x, MAX(`{key}`) AS `{key}`, COUNT(*) AS n FROM odd GROUP BY x")
    flow.tick("odd", [(1, 2), (2, 2)])
    flow.tick("odd", DeltaBatch.upserts([(1, 3)]) + DeltaBatch.delete_keys([2]))
    for again in (DeltaBatch.inserts([(1, 3)]), DeltaBatch.upserts([(4, 1), (4, 2)])):
        with pytest.raises(ConstraintViolation):
            flow.tick("odd", again)
    assert_exact(flow)


@pytest.mark.parametrize("names", [NAMES[at : at + 2] for at in range(0, len(NAMES), 2)])
def test_they_are_told_apart(flow: IncrementalFlow, names: Sequence[str]) -> None:
    a, b = (f"`{name}`" for name in names)
    flow.register_source("odd", f"k BIGINT, {a} INT, {b} INT, d DOUBLE", primary_key=["k"])
    for name, query in VIEWS.items():
        flow.register_view(name, query.format(a=a, b=b))
    flow.tick("odd", [(k, k % 3, k % 5, 0.5) for k in range(12)])
    flow.tick("odd", DeltaBatch.delete_keys([0, 11]) + DeltaBatch.upserts([(3, None, 1, 1.5)]))
    flow.tick("odd", [(20, 9, 2, 0.0), (21, 9, 9, -0.0)])
    assert_exact(flow)
