"""Delta, or recompute and compare: the same deltas, bit for bit, and the summary says which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import DeltaBatch, IncrementalFlow
from ivm_core.engine import evaluation

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ivm_core import StepSummary

VIEWS = {
    "kept": "SELECT o.id, c.name FROM o LEFT JOIN c ON o.c = c.id",
    "totals": "SELECT c, SUM(x) AS s, COUNT(*) AS n, AVG(f) AS a, MIN(x) AS m FROM o GROUP BY c",
    "ranked": "SELECT id, ROW_NUMBER() OVER (PARTITION BY c ORDER BY x) AS r FROM o",
    "large": "SELECT t.c, c.name FROM totals AS t JOIN c ON t.c = c.id WHERE t.s > 3",
}
TICKS: list[dict[str, Any]] = [
    {
        "o": DeltaBatch.of([(1, 1, 5, 0.1), (2, 1, 2, 0.2), (3, 2, 9, None), (3, 2, 9, None)]),
        "c": DeltaBatch.of([(1, "a"), (2, "b")]),
    },
    {"c": DeltaBatch.of([(3, "a"), (1, "a"), (1, "z")], [1, -1, 1])},
    {
        "o": DeltaBatch.of([(1, 1, 5, 0.1), (5, 2, 1, 1e300), (4, 3, 7, 0.3)], [-1, 1, 1]),
        "c": DeltaBatch.of([(2, "b")], [-1]),
    },
]


def run(folder: Path, spark: SparkSession, *, by_difference: bool) -> list[StepSummary]:
    with IncrementalFlow.open(folder, spark) as flow:
        flow.register_source("o", "id INT, c INT, x INT, f DOUBLE")
        flow.register_source("c", "id INT, name STRING")
        flow.register_views(VIEWS)
        flow.force_diff_based(by_difference)
        found = [flow.tick(tick) for tick in TICKS]
        assert all(flow.check(view).equal for view in VIEWS)
        return found


@pytest.fixture(scope="module")
def by_delta(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> list[StepSummary]:
    return run(tmp_path_factory.mktemp("delta") / "flow", spark, by_difference=False)


@pytest.mark.xdist_group("ways")
def test_both_ways_emit_the_same_deltas(
    by_delta: list[StepSummary], tmp_path: Path, spark: SparkSession
) -> None:
    by_difference = run(tmp_path / "flow", spark, by_difference=True)
    for one, other in zip(by_delta, by_difference, strict=True):
        for view in VIEWS:
            ours, theirs = one.views[view], other.views[view]
            assert (ours.digest, ours.rows_out) == (theirs.digest, theirs.rows_out), view
    ways = by_difference[-1].views["large"].ways["large"]
    assert ways.startswith("recomputed and compared")
    assert "force_diff_based" in ways
    assert by_delta[-1].views["large"].ways["large"].startswith("delta")


@pytest.mark.xdist_group("ways")
def test_the_way_that_reads_less_is_taken(
    by_delta: list[StepSummary],
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In files, where five changed inputs would each be joined with the four others."""
    monkeypatch.setattr(evaluation.ViewEvaluation, "_why_high", lambda *_: "the test wants it")
    sql = (
        "SELECT a.id FROM o AS a, o AS b, o AS d, c AS e, c AS g "
        "WHERE a.id = b.id AND b.id = d.id AND d.c = e.id AND e.id = g.id"
    )
    with IncrementalFlow.open(tmp_path / "flow", spark) as flow:
        flow.register_source("o", "id INT, c INT, x INT, f DOUBLE")
        flow.register_source("c", "id INT, name STRING")
        flow.register_views({"many": sql, "few": "SELECT o.id FROM o JOIN c ON o.c = c.id"})
        summaries = [flow.tick(tick) for tick in TICKS]
        assert flow.check("many").equal
    both, one = summaries[2].views["many"].ways["many"], summaries[1].views["few"].ways["few"]
    assert both.startswith("recomputed and compared")
    assert "rows to read, by delta" in both
    assert one.startswith("delta")


CHAINS = {
    "few": "SELECT id, x AS y FROM o WHERE x > 1 AND c IN (1, 3)",
    "counted": "SELECT c, COUNT(*) AS n, COUNT(x) AS m, SUM(x) AS s FROM o WHERE x <> 2 GROUP BY c",
    "all_of_them": "SELECT COUNT(*) AS n, AVG(x) AS a FROM o",
    "different": "SELECT DISTINCT c FROM o",
    "first": "SELECT id, c, x FROM o ORDER BY x DESC NULLS FIRST, id LIMIT 2",
}


def test_chains_need_no_statement(tmp_path: Path, spark: SparkSession) -> None:
    """Filters, counts, sums of integers and first rows of a change that is on the driver."""
    ticks = [
        DeltaBatch.of([(1, 1, 5), (2, 1, None), (3, 2, 9), (3, 2, 9), (4, None, 2)]),
        DeltaBatch.of([(5, 3, 7), (1, 1, 5), (6, None, None)], [1, -1, 1]),
        DeltaBatch.of([(3, 2, 9), (7, 3, 9), (4, None, 2)], [-1, 2, -1]),
        DeltaBatch.of([(2, 1, None), (6, None, None), (8, 1, 1)], [-1, -1, 1]),
    ]
    with IncrementalFlow.open(tmp_path / "flow", spark) as flow:
        flow.register_source("o", "id INT, c INT, x INT")
        flow.register_views(CHAINS)
        flow.tick("o", ticks[0])
        for tick in ticks[1:3]:
            assert flow.tick("o", tick).statements == 0
            assert all(flow.check(view).equal for view in CHAINS)
        # the first rows go, and those behind them move up: they are asked for
        assert flow.tick("o", ticks[3]).statements == 1
        assert all(flow.check(view).equal for view in CHAINS)
        assert flow.replay().equal
