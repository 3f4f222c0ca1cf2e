"""The text of a plan's meaning: the same for other forms of a query, another for other queries."""

from __future__ import annotations

import pytest

from ivm_core.compile.meaning import meaning
from tests.compile.plans import optimised


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT x, y FROM a WHERE x > 1", "select q.x, q.y\nfrom a as q where (q.x > 1)"),
        (
            "WITH p AS (SELECT x FROM a) SELECT x FROM p",
            "WITH other AS (SELECT x FROM a) SELECT other.x FROM other",
        ),
        (
            "SELECT a.x, c.s FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y",
            "SELECT a.x, c.s FROM c JOIN b ON c.y = b.y JOIN a ON b.x = a.x",
        ),
        (
            "SELECT a.x FROM a JOIN b ON a.x = b.x AND a.y = b.y",
            "SELECT a.x FROM a, b WHERE b.y = a.y AND b.x = a.x",
        ),
        (
            "SELECT a.x, b.z FROM a JOIN b ON a.x = b.x",
            "WITH q AS (SELECT z AS p, x AS r FROM b) SELECT a.x, q.p AS z FROM q, a WHERE a.x = r",
        ),
        ("SELECT x FROM a WHERE x > 1 AND y < 2", "SELECT x FROM a WHERE y < 2 AND x > 1"),
        (
            "SELECT s, SUM(x) AS n FROM a GROUP BY s HAVING COUNT(*) > 1",
            "SELECT t.s, SUM(t.x) AS n FROM (SELECT s, x FROM a) t GROUP BY t.s "
            "HAVING COUNT(*) > 1",
        ),
        (
            "SELECT x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.x = a.x)",
            "SELECT q.x FROM a q WHERE EXISTS (SELECT 1 FROM b r WHERE q.x = r.x)",
        ),
    ],
)
def test_other_forms_of_a_query_mean_the_same(one: str, other: str) -> None:
    assert meaning(optimised(one)) == meaning(optimised(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT x, y FROM a", "SELECT y, x FROM a"),
        ("SELECT x FROM a", "SELECT x FROM b"),
        ("SELECT x FROM a WHERE x > 1", "SELECT x FROM a WHERE x > 2"),
        ("SELECT x FROM a WHERE x > y", "SELECT x FROM a WHERE y > x"),
        ("SELECT DISTINCT x FROM a", "SELECT x FROM a"),
        ("SELECT a.x FROM a JOIN b ON a.x = b.x", "SELECT a.x FROM a JOIN b ON a.x = b.y"),
        ("SELECT a.x FROM a JOIN b ON a.x = b.x", "SELECT a.x FROM a JOIN b ON a.x <=> b.x"),
        (
            "SELECT p.x FROM a p JOIN a q ON p.x = q.y",
            "SELECT q.x FROM a p JOIN a q ON p.x = q.y",
        ),
        (
            "SELECT a.x FROM a LEFT JOIN b ON a.x = b.x",
            "SELECT a.x FROM b LEFT JOIN a ON a.x = b.x",
        ),
        (
            "SELECT s, SUM(x) AS n FROM a GROUP BY s",
            "SELECT s, SUM(y) AS n FROM a GROUP BY s",
        ),
        (
            "SELECT s, SUM(x) AS n FROM a GROUP BY s",
            "SELECT s, MAX(x) AS n FROM a GROUP BY s",
        ),
        (
            "SELECT x FROM a UNION ALL SELECT x FROM b",
            "SELECT x FROM a UNION SELECT x FROM b",
        ),
        ("SELECT x FROM a EXCEPT SELECT x FROM b", "SELECT x FROM b EXCEPT SELECT x FROM a"),
        ("SELECT x FROM a ORDER BY x LIMIT 3", "SELECT x FROM a ORDER BY x LIMIT 4"),
        ("SELECT x FROM a ORDER BY x LIMIT 3", "SELECT x FROM a ORDER BY x DESC LIMIT 3"),
        (
            "SELECT SUM(x) OVER (PARTITION BY s ORDER BY y) AS n FROM a",
            "SELECT SUM(x) OVER (PARTITION BY y ORDER BY s) AS n FROM a",
        ),
    ],
)
def test_other_queries_mean_something_else(one: str, other: str) -> None:
    assert meaning(optimised(one)) != meaning(optimised(other))
