"""Windows without PARTITION BY: only the rows around a change are recomputed."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import TYPE_CHECKING

from ivm_core import DeltaBatch, IncrementalFlow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

VIEWS = {
    "moving": "SELECT id, AVG(f) OVER (ORDER BY t ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS a,"
    " LAG(x, 2, -1) OVER (ORDER BY t) AS before, LEAD(x) OVER (ORDER BY t, x) AS after FROM e",
    "running": "SELECT t, x, SUM(x) OVER (ORDER BY t) AS s, COUNT(x) OVER (ORDER BY t) AS n,"
    " MIN(x) OVER (ORDER BY t) AS low, MAX(t) OVER (ORDER BY t) AS high FROM e",
    "places": "SELECT id, t, ROW_NUMBER() OVER w AS n, RANK() OVER w AS r, DENSE_RANK() OVER w AS d,"
    " SUM(m) OVER (ORDER BY t DESC ROWS UNBOUNDED PRECEDING) AS s, LAG(id) OVER w AS last"
    " FROM e WINDOW w AS (ORDER BY t DESC)",
    "of_totals": "SELECT t, SUM(n) OVER (ORDER BY t) AS so_far"
    " FROM (SELECT t, COUNT(*) AS n FROM e WHERE x > 1 GROUP BY t)",
}
ELSEWHERE = (
    "SELECT id, SUM(x) OVER (ORDER BY t RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM e"
)


def test_rows_around_a_change_are_recomputed(tmp_path: Path, spark: SparkSession) -> None:
    chance = random.Random(7)

    def row(number: int) -> tuple[object, ...]:
        t = None if chance.random() < 0.1 else chance.randint(0, 150)
        x = None if chance.random() < 0.2 else chance.randint(-9, 9)
        return (number, t, x, chance.random(), None if x is None else Decimal(f"{x}.25"))

    with IncrementalFlow.open(tmp_path / "flow", spark) as flow:
        flow.register_source(
            "e", "id INT, t INT, x INT, f DOUBLE, m DECIMAL(9,2)", primary_key="id"
        )
        flow.register_views({**VIEWS, "elsewhere": ELSEWHERE})
        flow.tick("e", [row(number) for number in range(200)])
        seen: dict[str, set[str]] = {view: set() for view in flow.views}
        for step in range(4):
            changed = {chance.randint(0, 260) for _ in range(chance.choice((1, 3)))}
            batch = DeltaBatch.upserts([row(number) for number in changed])
            if step == 2:
                batch = DeltaBatch.delete_keys(list(range(0, 40, 7)))
            summary = flow.tick("e", batch)
            for view in VIEWS:
                found = flow.check(view)
                assert found.equal, (step, view, found)
                seen[view].update(summary.views[view].ways.values())
            seen["elsewhere"].update(summary.views["elsewhere"].ways.values())
        for view in VIEWS:
            assert "rows around the change recomputed, low gear" in seen[view], (view, seen[view])
            assert not any(way.startswith("recomputed") for way in seen[view]), (view, seen[view])
        assert any(way.startswith("recomputed") for way in seen["elsewhere"])
        assert flow.explain("moving").verdict == "affected keys only"
        assert "from the first changed row on" in str(flow.explain("running"))
        assert flow.explain("elsewhere").verdict == "recomputed"
        assert flow.replay().equal
