"""A tick that evaluates to an error is recorded as aborted, and leaves nothing to be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import DeltaBatch, IncrementalFlow, TickFailed
from ivm_core.engine import core, evaluation, offending
from tests.flow.shop import assert_exact, log_of, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def shares(flow: IncrementalFlow) -> IncrementalFlow:
    flow.register_source("s", "id INT, n INT", primary_key=["id"])
    flow.register_view("n", "SELECT n, COUNT(*) AS k FROM s GROUP BY n")
    flow.register_view("share", "SELECT id, 100 / n AS part FROM s")
    flow.register_view("last", "SELECT id FROM share WHERE part > 1")
    flow.tick("s", [(1, 10), (2, 20)])
    return flow


def test_a_view_that_cannot_be_evaluated_fails_the_whole_tick(
    place: Path, shares: IncrementalFlow, spark: SparkSession
) -> None:
    before = {view: rows(shares.snapshot(view)) for view in shares.views}
    with pytest.raises(TickFailed, match="DIVIDE_BY_ZERO") as caught:
        shares.tick("s", [(3, 30), (4, 0)])
    assert caught.value.view == "share"
    assert caught.value.row == "s: id = 4, n = 0"
    assert "view share" in str(caught.value)
    assert log_of(shares)[-2:] == [("intent", 2), ("abort", 2)]
    assert shares.current_tick == 1
    assert {view: rows(shares.snapshot(view)) for view in shares.views} == before
    assert rows(shares.snapshot("s")) == [(1, 10), (2, 20)]
    assert shares.changes("n", since=1).count() == 0
    with pytest.raises(TickFailed):
        shares.tick("s", DeltaBatch.upserts([(1, 0)]))
    with IncrementalFlow.open(place, spark) as reader:
        assert rows(reader.snapshot("share")) == before["share"]
    assert shares.tick("s", [(3, 30), (4, 40)]).tick == 2
    assert rows(shares.snapshot("n")) == [(10, 1), (20, 1), (30, 1), (40, 1)]
    assert_exact(shares)
    assert shares.replay().equal


def test_leftovers_of_a_failed_tick_are_not_seen_after_reopening(
    place: Path, shares: IncrementalFlow, spark: SparkSession
) -> None:
    with pytest.raises(TickFailed):
        shares.tick("s", [(3, 30), (4, 0)])
    shares.close()
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.current_tick == 1
        flow.tick("s", [(4, 40)])
        assert rows(flow.snapshot("n")) == [(10, 1), (20, 1), (40, 1)]
        assert rows(flow.snapshot("s")) == [(1, 10), (2, 20), (4, 40)]
        assert_exact(flow)


def test_a_failed_view_may_be_left_out(shares: IncrementalFlow) -> None:
    shares.tick("s", [(4, 0)], views=["n"])
    with pytest.raises(TickFailed):
        shares.tick()
    assert rows(shares.snapshot("n")) == [(0, 1), (10, 1), (20, 1)]
    shares.tick("s", DeltaBatch.upserts([(4, 50)]))
    assert rows(shares.snapshot("share").select("id")) == [(1,), (2,), (4,)]
    assert_exact(shares)


def test_a_view_whose_hydration_fails_is_not_registered(shares: IncrementalFlow) -> None:
    with pytest.raises(TickFailed, match="CAST_INVALID_INPUT"):
        shares.register_view("bad", "SELECT CAST('x' || n AS INT) AS n FROM s", hydrate=True)
    assert shares.current_tick == 1
    assert "bad" not in shares.views
    assert shares.tick("s", [(3, 30)]).tick == 2
    assert_exact(shares, "n", "share", "last")
    assert shares.replay().equal


def test_a_failing_large_tick_leaves_nothing_either(
    flow: IncrementalFlow, spark: SparkSession
) -> None:
    flow.register_source("s", "id BIGINT, n INT")
    flow.register_view("share", "SELECT id, 100 / n AS part FROM s")
    large = spark.range(60_000).selectExpr("id", "CAST(59999 - id AS INT) AS n")
    with pytest.raises(TickFailed, match="DIVIDE_BY_ZERO"):
        flow.tick("s", large)
    assert flow.current_tick == 0
    assert flow.snapshot("s").count() == 0
    assert flow.tick("s", large.where("n > 0")).tick == 1
    assert flow.snapshot("share").count() == 59_999
    flow.tick("s", [(1, 1)])
    assert flow.snapshot("share").count() == 60_000


def test_an_interrupted_tick_is_finished_by_the_next_one(
    shares: IncrementalFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the middle of a tick: what was promised by its intent is kept."""

    class Interrupting(core.ViewEvaluation):
        def run(self) -> core.ViewResult:
            if self.program.name == "last":
                raise KeyboardInterrupt
            return super().run()

    with monkeypatch.context() as patch:
        patch.setattr(core, "ViewEvaluation", Interrupting)
        with pytest.raises(KeyboardInterrupt):
            shares.tick("s", [(3, 30)])
    assert shares.current_tick == 1
    assert rows(shares.snapshot("n")) == [(10, 1), (20, 1)]
    assert shares.tick("s", [(4, 40)]).tick == 3
    assert rows(shares.snapshot("s", at=2)) == [(1, 10), (2, 20), (3, 30)]
    assert rows(shares.snapshot("n")) == [(10, 1), (20, 1), (30, 1), (40, 1)]
    assert_exact(shares)


def test_an_offending_row_is_named_where_one_alone_offends(flow: IncrementalFlow) -> None:
    flow.register_source("a", "k INT, s STRING")
    flow.register_source("b", "k INT, y BIGINT")
    flow.register_view("j", "SELECT a.k, CAST(a.s AS INT) + b.y AS z FROM a JOIN b ON a.k = b.k")
    flow.register_view("total", "SELECT SUM(y) AS y FROM b")
    flow.tick({"a": [(k, str(k)) for k in range(9)], "b": [(k, k) for k in range(9)]})
    with pytest.raises(TickFailed, match="row: a: k = 3, s = 'three'") as caught:
        flow.tick("a", [(1, "1"), (2, "2"), (3, "three"), (4, "4"), (99, "none")])
    assert caught.value.view == "j"
    with pytest.raises(TickFailed) as caught:
        flow.tick("b", [(100, 2**62), (101, 2**62), (102, 5)])
    assert (caught.value.view, caught.value.row) == ("total", "")
    flow.register_view("totals", "SELECT k, SUM(y) AS y FROM b GROUP BY k")
    with pytest.raises(TickFailed, match="row: group of totals#1: b_k = 7"):
        flow.tick("b", [(7, 2**62), (7, 2**62), (8, 5)], views=["totals"])
    assert_exact(flow, "j", "total")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT id, (SELECT v FROM u) AS v FROM t", "more than one row"),
        ("SELECT id FROM t WHERE id = (SELECT v FROM u)", "more than one row"),
        ("SELECT t.id, q.z FROM t CROSS JOIN (SELECT 10 / v AS z FROM u) q", "DIVIDE_BY_ZERO"),
        ("SELECT t.id FROM t LEFT JOIN (SELECT 10 / v AS z FROM u) q ON t.id < q.z", "DIVIDE"),
    ],
)
def test_what_fails_in_a_broadcast_is_told_like_anything_else(
    sql: str, said: str, flow: IncrementalFlow
) -> None:
    flow.register_source("t", "id INT, k INT")
    flow.register_source("u", "k INT, v INT")
    flow.register_view("failing", sql)
    flow.tick({"t": [(1, 1), (2, 2)], "u": [(1, 10)]})
    with pytest.raises(TickFailed, match=said):
        flow.tick("u", [(1, 0)])
    assert flow.tick("t", [(3, 3)]).tick == 2
    assert_exact(flow)


def test_an_offending_row_is_found_among_lists(flow: IncrementalFlow) -> None:
    flow.register_source("n", "id INT, xs ARRAY<INT>, ps ARRAY<STRUCT<p: INT>>")
    flow.register_view("first", "SELECT id, xs[0] AS x, ps FROM n")
    batch = [(1, [1, 2], [{"p": 1}, None]), (2, None, None), (3, [4], []), (4, [], [None])]
    with pytest.raises(TickFailed, match="INVALID_ARRAY_INDEX") as caught:
        flow.tick("n", batch)
    assert caught.value.row.startswith("n: id = 4, xs = []")


def test_an_offending_row_is_named_among_many(
    flow: IncrementalFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "HYDRATED_LOCALLY", 10)
    monkeypatch.setattr(offending, "FEW", 4)
    flow.register_source("a", "k INT, s STRING")
    flow.register_view("kept", "SELECT k, s FROM a WHERE k > 0")
    flow.tick("a", [(k, str(k)) for k in range(30)] + [(31, "x"), (32, "32")])
    flow.register_view("v", "SELECT k, CAST(s AS INT) AS n FROM kept")
    with pytest.raises(TickFailed, match="row: kept: k = 31, s = 'x'") as caught:
        flow.tick()
    assert caught.value.view == "v"
    flow.tick("a", DeltaBatch.deletes([(31, "x")]))
    assert_exact(flow, "kept", "v")


def test_a_summary_reads_well(flow: IncrementalFlow) -> None:
    flow.register_source("a", "k INT")
    flow.register_view("n", "SELECT COUNT(*) AS n FROM a")
    told = str(flow.tick("a", [(1,), (2,)])).splitlines()
    assert told[0].startswith("tick 1 at ")
    assert "2 rows in, 1 out" in told[0]
    assert told[1].startswith("  n  1 rows out, 1 rows, digest ")
