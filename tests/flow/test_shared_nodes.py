"""Nodes with state that several views have: kept once, and read by each at its own frontier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import DeltaBatch, IncrementalFlow, TickFailed, UnknownName
from ivm_core.api.status import read_status
from tests.faults.story import killed_at
from tests.flow.shop import CUSTOMERS, ORDERS, assert_exact, log_of, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ivm_core import StepSummary

TOTALS = "SELECT {o}.customer, SUM({o}.amount) AS total, COUNT(*) AS n FROM orders {o} GROUP BY {o}.customer"
RANKED = (
    "SELECT id, customer, rank() OVER (PARTITION BY customer ORDER BY amount DESC, id) AS place"
    " FROM orders"
)
VIEWS = {
    "large": f"WITH t AS ({TOTALS.format(o='a')}) SELECT customer, total FROM t WHERE n > 1",
    "cities": (
        f"SELECT c.city, x.total, x.n FROM ({TOTALS.format(o='b')}) x "
        "JOIN customers c ON c.name = x.customer"
    ),
    "best": f"SELECT id, customer FROM ({RANKED}) WHERE place = 1",
    "second": f"SELECT id, upper(customer) AS customer FROM ({RANKED}) r WHERE place = 2",
    "known": "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.name = o.customer)",
    "lost": "SELECT o.id FROM orders o LEFT ANTI JOIN customers d ON d.name = o.customer",
}
STEPS: tuple[dict[str, Any], ...] = (
    {
        "orders": DeltaBatch.inserts([(1, "ann", 5), (2, "ann", 7), (3, "bob", 1), (4, None, 2)]),
        "customers": DeltaBatch.inserts([("ann", "Oslo"), ("eve", "Rome")]),
    },
    {"orders": DeltaBatch.of([(2, "ann", 7), (5, "bob", 9), (6, "eve", 3)], weights=[-1, 1, 1])},
    {"customers": DeltaBatch.of([("ann", "Oslo"), ("bob", "Bern")], weights=[-1, 1])},
    {"orders": DeltaBatch.edits([((5, "bob", 9), (5, "ann", 9))])},
)


ENTRY = FILE = 6
"""Points at which an entry of the tick log, or a file of a trace, can be cut short."""


def declared(flow: IncrementalFlow) -> IncrementalFlow:
    flow.register_source("orders", ORDERS, primary_key=["id"])
    flow.register_source("customers", CUSTOMERS, primary_key=["name"])
    return flow


def nodes(flow: IncrementalFlow) -> dict[str, list[str]]:
    """The shared nodes and the views that read them."""
    catalog = flow._engine.catalog
    return {name: catalog.sharers(name) for name in flow._engine.history.shared}


def digests(summary: StepSummary) -> dict[str, tuple[str, str]]:
    return {name: (each.digest, each.state_digest) for name, each in summary.views.items()}


@pytest.fixture
def together(flow: IncrementalFlow) -> IncrementalFlow:
    declared(flow).register_views(VIEWS)
    return flow


def test_shared_views_are_what_they_are_alone(
    together: IncrementalFlow, tmp_path: Path, spark: SparkSession
) -> None:
    assert sorted(nodes(together).values()) == [
        ["best", "second"],
        ["known", "lost"],
        ["large", "cities"],
    ]
    assert together.views == tuple(VIEWS)
    with IncrementalFlow.open(tmp_path / "alone", spark) as alone:
        declared(alone)
        for name, sql in VIEWS.items():
            # a view that has been ticked keeps its own nodes
            alone.register_view(name, sql, hydrate=True)
        assert not nodes(alone)
        for step in STEPS:
            found, expected = together.tick(step), alone.tick(step)
            assert digests(found) == digests(expected)
            assert sorted(found.views) == sorted(VIEWS)
            assert set(found.shared) == set(nodes(together))
            assert found.rows_out == expected.rows_out
        for view in VIEWS:
            assert rows(together.snapshot(view)) == rows(alone.snapshot(view))
            assert together.explain(view).fingerprint == alone.explain(view).fingerprint
            assert together.explain(view).normalised == alone.explain(view).normalised
    assert_exact(together)
    replayed = together.replay()
    assert replayed.equal
    assert {each.view for each in replayed.shared} == set(nodes(together))


def test_a_shared_node_is_evaluated_once(flow: IncrementalFlow) -> None:
    declared(flow)
    views = {
        f"v{n}": f"SELECT customer, total / {n} AS t FROM ({TOTALS.format(o='o')})"
        for n in (1, 2, 3)
    }
    flow.register_views(views)
    flow.tick(STEPS[0])
    summary = flow.tick(STEPS[1])
    (node,) = summary.shared.values()
    assert node.rows_out == 5
    # the driver folds the node and makes its rows; one statement for each view
    assert summary.statements == 3
    assert [list(view.ways) for view in summary.views.values()] == [["v1"], ["v2"], ["v3"]]


def test_views_at_different_frontiers(together: IncrementalFlow) -> None:
    together.tick(STEPS[0], views=["large"])
    together.tick(STEPS[1], views=["cities", "best"])
    summary = together.tick(STEPS[2], views=["large"])
    assert list(summary.views) == ["large"]
    assert [nodes(together)[name] for name in summary.shared] == [["large", "cities"]]
    together.tick(STEPS[3], views=["second", "known"])
    states = together._engine.history.states
    assert [states[view].upto for view in ("large", "cities", "best", "lost")] == [3, 2, 2, 0]
    assert_exact(together, "large", "cities", "best", "second", "known")
    together.tick()
    assert {states[view].upto for view in VIEWS} == {5}
    assert_exact(together)


def test_it_is_all_there_when_reopened(
    together: IncrementalFlow, place: Path, spark: SparkSession
) -> None:
    together.tick(STEPS[0])
    before = nodes(together)
    together.register_views(VIEWS)
    together.close()
    with IncrementalFlow.open(place, spark) as again:
        entries = log_of(again)
        again.register_views(VIEWS)
        assert log_of(again) == entries
        assert nodes(again) == before
        for step in STEPS[1:]:
            again.tick(step)
        assert_exact(again)


def test_a_later_view_reads_what_is_shared(together: IncrementalFlow) -> None:
    together.tick(STEPS[0])
    together.tick(STEPS[1])
    small = f"SELECT customer FROM ({TOTALS.format(o='z')}) WHERE total < n * 5"
    together.register_view("small", small, hydrate=True)
    assert ["large", "cities", "small"] in nodes(together).values()
    assert len(nodes(together)) == 3
    assert_exact(together)
    together.tick(STEPS[2])
    together.tick(STEPS[3])
    assert_exact(together)


def test_views_that_are_registered_one_by_one_share_until_they_are_ticked(
    flow: IncrementalFlow,
) -> None:
    declared(flow)
    flow.register_view("other", "SELECT DISTINCT amount FROM orders", hydrate=True)
    flow.register_view("large", VIEWS["large"])
    # a tick that leaves the view out doesn't settle how it is kept
    flow.tick(STEPS[0], views=["other"])
    assert not nodes(flow)
    flow.register_view("cities", VIEWS["cities"])
    assert list(nodes(flow).values()) == [["large", "cities"]]
    flow.tick(STEPS[1])
    flow.register_view("amounts", "SELECT DISTINCT amount FROM orders")
    assert len(nodes(flow)) == 1
    flow.tick(STEPS[2])
    assert_exact(flow)
    assert flow.replay().equal


def test_nodes_within_shared_nodes(flow: IncrementalFlow) -> None:
    inner = TOTALS.format(o="o")
    outer = f"SELECT n, MAX(total) AS top FROM ({inner}) GROUP BY n"
    counted = "SELECT MAX(n) AS m FROM (SELECT amount, COUNT(*) AS n FROM orders GROUP BY amount)"
    declared(flow).register_views(
        {
            "a": f"SELECT n, top FROM ({outer}) WHERE top > 1",
            "b": f"SELECT top + n AS x FROM ({outer})",
            "c": f"SELECT customer, n, total FROM ({inner}) WHERE n > 0",
            # a node below what is shared, and nowhere else
            "f": f"SELECT m FROM ({counted})",
            "g": f"SELECT m + 1 AS x FROM ({counted})",
            # over views too, which come before what they share
            "d": "SELECT DISTINCT n FROM c",
            "e": "SELECT n + 1 AS m FROM (SELECT DISTINCT n FROM c)",
        }
    )
    assert sorted(nodes(flow).values()) == [
        ["a", "b"],
        ["a", "b", "c"],
        ["d", "e"],
        ["f", "g"],
    ]
    flow.tick(STEPS[0])
    flow.tick(STEPS[1])
    assert_exact(flow)
    flow.force_diff_based()
    flow.tick("orders", DeltaBatch.of([(1, "ann", 5), (7, "eve", 4)], weights=[-1, 1]))
    assert_exact(flow)


def test_what_is_killed_is_finished(place: Path, spark: SparkSession) -> None:
    views = {name: VIEWS[name] for name in ("large", "cities")}
    with IncrementalFlow.open(place, spark) as flow:
        declared(flow)
    with killed_at(ENTRY + 1):
        # an epoch, and the file of the node and its views
        IncrementalFlow.open(place, spark).register_views(views)
    with IncrementalFlow.open(place, spark) as flow:
        assert (len(nodes(flow)), flow.views) == (0, ())
        flow.register_views(views)
        assert list(nodes(flow).values()) == [["large", "cities"]]
        flow.tick(STEPS[0])
    with killed_at(2 * ENTRY + 3 * FILE):
        # an epoch, the batch, the intent, state and rows of the node
        IncrementalFlow.open(place, spark).tick(STEPS[1])
    with IncrementalFlow.open(place, spark) as flow:
        assert flow._engine.history.commits[2]["recovered"]
        assert_exact(flow)
        assert flow.replay().equal


def test_explain_says_with_whom_and_where(together: IncrementalFlow, place: Path) -> None:
    together.tick(STEPS[0])
    explained = together.explain("large")
    (name,) = (each for each, readers in nodes(together).items() if "large" in readers)
    key = name.removeprefix("__shared_")
    text = str(explained)
    assert "one node for this view and cities" in text
    assert f"keeps accumulators by a.customer in shared/{key}/state" in text
    assert [step.step for step in explained.steps] == [name, "large"]
    assert explained.to_dict()["steps"][0]["shared_with"] == ["cities"]
    node = next(each for each in explained.nodes if each.shared_with)
    assert node.steps == (name,)
    assert "incremental" in explained.verdict
    assert not explained.why_not
    assert (place / "shared" / key / "rows").is_dir()
    other = next(each for each in together.explain("cities").nodes if each.shared_with)
    assert (other.steps, other.shared_with) == ((name,), ("large",))


def test_nobody_meets_a_shared_node_by_its_name(together: IncrementalFlow, place: Path) -> None:
    together.tick(STEPS[0])
    name = next(iter(nodes(together)))
    for ask in (together.snapshot, together.check, together.explain, together.watch_output):
        with pytest.raises(UnknownName) as refused:
            ask(name)
        assert "__shared_" not in refused.value.fix
    with pytest.raises(UnknownName):
        together.register_view("sly", f"SELECT * FROM {name}")
    with pytest.raises(UnknownName):
        together.tick(STEPS[1], views=[name])
    assert {view.name for view in read_status(place).views} == set(VIEWS)


def test_a_requirement_looks_through_shared_nodes(flow: IncrementalFlow) -> None:
    declared(flow)
    views = {name: VIEWS[name] for name in ("large", "cities")}
    flow.register_views(views, require="incremental")
    assert len(nodes(flow)) == 1
    assert flow.explain("cities").is_incremental
    top = "SELECT MAX(total) AS t FROM orders o JOIN (SELECT MAX(amount) AS total FROM orders) ON true"
    flow.register_views({"x": top, "y": f"{top} WHERE id > 1"})
    assert any("MAX" in each.construct for each in flow.why_not("x"))


def test_a_failing_shared_node_names_its_views(flow: IncrementalFlow) -> None:
    declared(flow)
    inner = "SELECT customer, SUM(10 / amount) AS s FROM orders GROUP BY customer"
    flow.register_views({"a": inner, "b": f"SELECT s FROM ({inner}) WHERE s > 1"})
    flow.tick(STEPS[0])
    with pytest.raises(TickFailed, match="views a, b") as failed:
        flow.tick("orders", DeltaBatch.inserts([(9, "eve", 0)]))
    assert failed.value.view == "a"
    flow.tick("orders", DeltaBatch.inserts([(9, "eve", 2)]))
    assert_exact(flow)
