from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bench.machine import jobs_run
from ivm_core import DeltaBatch, IncrementalFlow, IvmError, UnknownName, UserError
from ivm_core.engine import maintenance
from ivm_core.engine.evaluation import ViewEvaluation
from tests.flow.shop import VIEWS, assert_exact, log_of, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_a_tick_takes_several_sources_at_once(shop: IncrementalFlow) -> None:
    summary = shop.tick(
        {"orders": [(1, "ann", 20), (2, "bob", 3)], "customers": [("ann", "Rome"), ("bob", "Oslo")]}
    )
    assert summary.tick == 1
    assert summary.rows_in == 4
    assert summary.sources["orders"].rows_in == 2
    assert summary.rows_out == 4
    assert rows(shop.snapshot("cities")) == [("Rome", 20)]
    assert_exact(shop)


def test_a_batch_that_is_refused_takes_the_other_sources_with_it(shop: IncrementalFlow) -> None:
    shop.tick("customers", [("ann", "Rome")])
    before = log_of(shop)
    with pytest.raises(IvmError):
        shop.tick({"orders": [(1, "ann", 20)], "customers": [("ann", "Oslo")]})
    with pytest.raises(IvmError):
        shop.tick({"orders": [(1, "ann", 20)], "customers": [("bob", 7)]})
    with pytest.raises(UnknownName):
        shop.tick({"orders": [(1, "ann", 20)], "nowhere": [(1,)]})
    assert log_of(shop) == before
    assert rows(shop.snapshot("orders")) == []
    assert shop.tick("orders", [(1, "ann", 20)]).tick == 2
    assert rows(shop.snapshot("cities")) == [("Rome", 20)]


def test_a_view_whose_inputs_are_clean_is_skipped(shop: IncrementalFlow) -> None:
    shop.tick({"orders": [(1, "ann", 20)], "customers": [("ann", "Rome")]})
    summary = shop.tick("customers", [("bob", "Oslo")])
    assert {name: view.skipped for name, view in summary.views.items()} == {
        "large": True,
        "totals": True,
        "cities": False,
    }
    before = shop._engine.gears.statements
    summary = shop.tick()
    assert summary.statements == 0
    assert shop._engine.gears.statements == before
    assert all(view.skipped for view in summary.views.values())
    assert "no input changed" in summary.views["large"].ways["large"]


def test_no_spark_job_runs_for_a_view_that_is_skipped(tmp_path: Path, spark: SparkSession) -> None:
    with IncrementalFlow.open(tmp_path / "flow", spark) as flow:
        flow.register_source("a", "k INT, x INT")
        flow.register_source("b", "k INT, x INT")
        for name in ("a", "b"):
            flow.register_view(f"of_{name}", f"SELECT k, SUM(x % 7) AS s FROM {name} GROUP BY k")
        flow.tick({"a": [(1, 1)], "b": [(1, 1)]})
        before = jobs_run(spark)
        both = flow.tick({"a": [(1, 2)], "b": [(1, 2)]})
        of_both = jobs_run(spark) - before
        one = flow.tick("a", [(1, 3)])
        of_one = jobs_run(spark) - before - of_both
        assert not both.views["of_b"].skipped
        assert one.views["of_b"].skipped
        assert of_one * 2 == of_both > 0
        flow.tick("a", [])
        assert jobs_run(spark) == before + of_both + of_one


def test_a_reopened_flow_skips_without_starting_spark(place: Path, spark: SparkSession) -> None:
    with IncrementalFlow.open(place, spark) as flow:
        flow.register_source("s", "x INT")
        flow.register_view("v", "SELECT x FROM s")
        flow.tick("s", [(1,)])
    with IncrementalFlow.open(place) as flow:
        flow.register_source("s", "x INT")
        flow.register_view("v", "SELECT x FROM s")
        assert flow.tick("s", []).views["v"].skipped
        assert flow.tick().tick == 3
        assert flow._engine._gears is None


@pytest.mark.parametrize(
    "batch",
    [
        [],
        DeltaBatch.inserts([]),
        DeltaBatch.upserts([]),
        DeltaBatch.delete_keys([]),
        DeltaBatch.of([(5, "x", 1), (5, "x", 1)], [1, -1]),
        DeltaBatch.of([(5, "x", 1)], [0]),
        DeltaBatch.upserts([(1, "ann", 20)]),
        DeltaBatch.edits([((1, "ann", 20), (1, "ann", 20))]),
        DeltaBatch.delete_keys([1]) + DeltaBatch.inserts([(1, "ann", 20)]),
    ],
)
def test_batches_that_change_nothing_are_ticks_that_change_nothing(
    batch: Any, shop: IncrementalFlow
) -> None:
    before = shop.tick("orders", [(1, "ann", 20)]).views["totals"].state_digest
    summary = shop.tick("orders", batch)
    assert summary.tick == 2
    assert summary.rows_in == summary.statements == 0
    assert summary.views["totals"].skipped
    assert summary.views["totals"].state_digest == before


def test_weights_mean_multiplicity(flow: IncrementalFlow) -> None:
    flow.register_source("s", "x INT, y STRING")
    flow.register_view("v", "SELECT y FROM s WHERE x > 0")
    flow.register_view("n", "SELECT y, COUNT(*) AS n, SUM(x) AS s FROM s GROUP BY y")
    flow.register_view("d", "SELECT DISTINCT y FROM s")
    flow.tick("s", DeltaBatch.of([(1, "a"), (2, "b"), (1, "a")], [3, 1, 2]))
    assert rows(flow.snapshot("v")) == [("a",)] * 5 + [("b",)]
    assert rows(flow.snapshot("n")) == [("a", 5, 5), ("b", 1, 2)]
    flow.tick("s", DeltaBatch.of([{"x": 1, "y": "a", "_weight": -4}]))
    assert rows(flow.snapshot("n")) == [("a", 1, 1), ("b", 1, 2)]
    summary = flow.tick("s", DeltaBatch.deletes([(1, "a")]))
    assert summary.views["d"].deletions == 1
    assert rows(flow.snapshot("d")) == [("b",)]
    assert_exact(flow)


def test_a_tick_tells_what_it_did(shop: IncrementalFlow) -> None:
    shop.tick({"orders": [(1, "ann", 20)], "customers": [("ann", "oslo")]})
    summary = shop.tick("orders", DeltaBatch.edits([((1, "ann", 20), (1, "bob", 5))]))
    assert summary.rows_in == 2
    assert summary.views["large"].rows_out == 1
    assert summary.views["large"].deletions == 1
    assert summary.views["large"].rows == 0
    assert summary.views["totals"].rows == 1
    assert summary.statements == 0
    assert summary.commits >= 3
    assert summary.duration_ms > 0
    assert len(summary.views["totals"].digest) == 32
    assert not summary.recovered


def test_a_tick_counts_its_statements(shop: IncrementalFlow) -> None:
    shop.register_view("shouted", "SELECT upper(customer) AS name FROM orders")
    shop.tick("orders", [(1, "ann", 20)])
    assert shop.tick("orders", [(2, "bob", 5)]).statements == 1
    assert rows(shop.snapshot("shouted")) == [("ANN",), ("BOB",)]


def test_a_batch_id_is_taken_once(place: Path, shop: IncrementalFlow, spark: SparkSession) -> None:
    shop.tick("orders", [(1, "ann", 20)], batch_id="2024-01-01")
    again = shop.tick("orders", [(1, "ann", 20)], batch_id="2024-01-01")
    assert again.tick == shop.current_tick == 1
    assert "2024-01-01" in again.notes[-1]
    assert shop.tick("orders", [(2, "ann", 1)], batch_id="2024-01-02").tick == 2
    shop.close()
    with IncrementalFlow.open(place, spark) as reopened:
        assert reopened.tick("orders", [(9, "x", 9)], batch_id="2024-01-01").tick == 1
        assert reopened.current_tick == 2


def test_a_refused_batch_does_not_use_up_its_id(shop: IncrementalFlow) -> None:
    with pytest.raises(IvmError):
        shop.tick("orders", DeltaBatch.deletes([(1, "ann", 20)]), batch_id="b")
    assert shop.tick("orders", [(1, "ann", 20)], batch_id="b").rows_in == 1


@pytest.mark.parametrize("batch_id", ["", 7, object()])
def test_a_batch_id_is_a_text(batch_id: Any, shop: IncrementalFlow) -> None:
    with pytest.raises(UserError, match="batch_id"):
        shop.tick("orders", [(1, "ann", 20)], batch_id=batch_id)
    assert shop.current_tick == 0


def test_some_views_go_ahead_and_the_others_catch_up(shop: IncrementalFlow) -> None:
    shop.tick({"orders": [(1, "ann", 20), (2, "bob", 3)], "customers": [("ann", "Rome")]})
    first = shop.tick("orders", [(3, "bob", 30)], views=["large"])
    assert set(first.views) == {"large"}
    shop.tick(
        {"customers": [("bob", "Oslo")], "orders": DeltaBatch.delete_keys([1])}, views="large"
    )
    assert rows(shop.snapshot("large")) == [(3, "bob")]
    assert rows(shop.snapshot("totals")) == [("ann", 1, 20), ("bob", 1, 3)]
    assert shop.check("totals").tick == 1
    assert_exact(shop)
    ahead = shop.tick(views=["cities"])
    assert set(ahead.views) == {"totals", "cities"}
    assert rows(shop.snapshot("cities")) == [("Oslo", 33)]
    assert_exact(shop)
    shop.tick("orders", [(4, "ann", 8)])
    assert rows(shop.snapshot("cities")) == [("Oslo", 33), ("Rome", 8)]
    assert_exact(shop)
    assert shop.replay().equal


def test_what_comes_and_goes_while_a_view_lags_leaves_no_trace(shop: IncrementalFlow) -> None:
    shop.tick("orders", [(1, "ann", 20)])
    shop.tick("orders", [(2, "bob", 30)], views=["totals"])
    shop.tick("orders", DeltaBatch.delete_keys([2]), views=["totals"])
    summary = shop.tick()
    assert summary.views["large"].skipped
    assert summary.views["totals"].skipped
    assert [tick for *_, tick in rows(shop.changes("large"))] == [1]


def test_no_views_at_all_may_be_chosen(shop: IncrementalFlow) -> None:
    summary = shop.tick("orders", [(1, "ann", 20)], views=[])
    assert summary.views == {}
    assert summary.statements == 0
    assert rows(shop.snapshot("orders")) == [(1, "ann", 20)]
    assert shop.tick().views["totals"].rows == 1
    assert_exact(shop)


def test_a_view_may_be_hydrated_alone(shop: IncrementalFlow) -> None:
    shop.tick("orders", [(1, "ann", 20)], views=[])
    shop.tick("customers", [("ann", "Rome")], views=["large"])
    shop.tick("orders", DeltaBatch.upserts([(1, "ann", 7)]), views=["cities"])
    assert rows(shop.snapshot("cities")) == [("Rome", 7)]
    shop.tick()
    assert rows(shop.snapshot("large")) == []
    assert_exact(shop)


@pytest.mark.parametrize("views", [["orders"], ["nowhere"], [None], [7]])
def test_only_views_may_be_chosen(views: Any, shop: IncrementalFlow) -> None:
    with pytest.raises(UnknownName, match="large, totals, cities"):
        shop.tick("orders", [(1, "ann", 20)], views=views)
    assert shop.current_tick == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("orders",),
        (None, [(1, "ann", 20)]),
        ([(1, "ann", 20)],),
        (7,),
        ("nowhere", []),
        ("large", []),
        ({7: []},),
        ({"orders": [(1, "ann", 20)], "ORDERS": [(2, "ann", 20)]},),
    ],
)
def test_ticks_that_make_no_sense_are_refused(arguments: Any, shop: IncrementalFlow) -> None:
    with pytest.raises(UserError):
        shop.tick(*arguments)
    assert shop.current_tick == 0


def test_many_small_ticks_are_compacted_and_nothing_is_lost(flow: IncrementalFlow) -> None:
    flow.register_source("s", "k INT, x INT")
    flow.register_view("n", "SELECT k, COUNT(*) AS n, MAX(x) AS m FROM s GROUP BY k")
    for number in range(36):
        flow.tick("s", [(number % 3, number)])
    flow.tick("s", DeltaBatch.deletes([(2, 35), (0, 0)]))
    assert len(flow._engine.layout.traces[0].table.files) < 36
    assert rows(flow.snapshot("n")) == [(0, 11, 33), (1, 12, 34), (2, 11, 32)]
    assert rows(flow.snapshot("n", at=3)) == [(0, 1, 0), (1, 1, 1), (2, 1, 2)]
    assert flow.changes("s", since=35).count() == 3
    assert_exact(flow)


def test_the_order_of_registration_is_the_order_of_views(shop: IncrementalFlow) -> None:
    assert shop.sources == ("orders", "customers")
    assert shop.views == tuple(VIEWS)


def test_state_with_nested_keys_is_folded_too(
    flow: IncrementalFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "SMALL_FILES", 2)
    flow.register_source("t", "xs ARRAY<INT>, p STRUCT<a: INT>, x INT")
    flow.register_view("v", "SELECT xs, p, SUM(x) AS total FROM t GROUP BY xs, p")
    for number in range(6):
        summary = flow.tick("t", [([1, None], {"a": None}, number), (None, None, 1)])
        assert not summary.notes
    states = [each for each in flow._engine.layout.traces if each.location.name == "state"]
    assert [len(state.table.files) < 6 for state in states] == [True]
    assert_exact(flow)


def test_names_with_dots_go_through_both_gears(
    flow: IncrementalFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow.register_source("t", "`a.b` INT, `a` STRUCT<b: INT>")
    flow.register_view("v", "SELECT `a.b` AS `x.y`, COUNT(*) AS n FROM t GROUP BY `a.b`")
    flow.tick("t", [(1, {"b": 2})])
    monkeypatch.setattr(ViewEvaluation, "_why_high", lambda *_: "the test wants it")
    flow.tick("t", [(1, {"b": 2}), (3, None)])
    assert rows(flow.snapshot("v")) == [(1, 2), (3, 1)]
    assert_exact(flow)
