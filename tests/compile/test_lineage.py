from __future__ import annotations

import pytest

from ivm_core.plan.lineage import column_origins, row_key
from tests.compile.plans import optimised


@pytest.mark.parametrize(
    ("sql", "origins"),
    [
        (
            "SELECT x + y AS xy, s, 1 AS one FROM a WHERE d > 0",
            {"xy": ["a.x", "a.y"], "s": ["a.s"], "one": []},
        ),
        (
            "SELECT a.s, SUM(b.z * a.x) AS t, COUNT(*) AS n FROM a JOIN b ON a.y = b.y GROUP BY a.s",
            {"s": ["a.s"], "t": ["a.x", "b.z"], "n": []},
        ),
        (
            "SELECT a.x, b.z FROM a LEFT JOIN b ON a.x = b.x",
            {"x": ["a.x"], "z": ["b.z"]},
        ),
        ("SELECT x FROM a UNION ALL SELECT z FROM b", {"x": ["a.x", "b.z"]}),
        (
            "SELECT x, row_number() OVER (PARTITION BY s ORDER BY y) AS n FROM a",
            {"x": ["a.x"], "n": ["a.s", "a.y"]},
        ),
        ("SELECT x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.x = a.x)", {"x": ["a.x"]}),
    ],
)
def test_columns_come_from_what_they_are_computed_of(
    sql: str, origins: dict[str, list[str]]
) -> None:
    found = column_origins(optimised(sql))
    told = {column: [f"{r}.{c}" for r, c in each] for column, each in found.items()}
    assert told == origins


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        ("SELECT x AS k, s FROM a WHERE y > 1", ("k",)),
        ("SELECT s FROM a", None),
        ("SELECT s, y, COUNT(*) AS n FROM a GROUP BY s, y", ("s", "y")),
        ("SELECT COUNT(*) AS n FROM a GROUP BY s", None),
        ("SELECT COUNT(*) AS n FROM a", ()),
        ("SELECT DISTINCT s, y FROM a", ("s", "y")),
        ("SELECT a.x, b.z FROM a JOIN b ON a.x = b.x", None),
    ],
)
def test_keys_are_known_where_rows_have_them(sql: str, key: tuple[str, ...] | None) -> None:
    assert row_key(optimised(sql), {"a": ("x",)}) == key
