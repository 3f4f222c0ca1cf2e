"""Runs of recursive views and of a Datalog program: circles tick, alter and are checked whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dagster import AssetKey, TableColumnDep

from ivm_core import IncrementalFlow, run
from ivm_core.api.frontier import read_frontier
from tests.dagster.conftest import definitions_of, write_pipeline
from tests.dagster.running import Run, checks, materialized, value
from tests.pipelines.walks import DECLARATION, EVEN, PROGRAM, VIEWS, closure, sides
from tideview.resources.pipeline_folder import load_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from dagster import DagsterInstance
    from pyspark.sql import SparkSession

    from tests.pipelines.walks import Edge
    from tideview.resources.flow_store import FlowStore
    from tideview.resources.inbox import Inbox
    from tideview.resources.pipeline_spec import Pipeline

NEAR = "SELECT n FROM even UNION SELECT n FROM odd"
THROUGH = """
    SELECT x AS n FROM edge WHERE x = 1
    UNION SELECT n FROM later
    UNION SELECT n FROM near WHERE n = 1
"""
LATER = "-- require: incremental\nSELECT DISTINCT e.y AS n FROM odd o JOIN edge e ON o.n = e.x"
FROM_TWO = PROGRAM.replace("edge(x, y).", "edge(x, y), x > 1.") + (
    ".decl back(x: number)\nback(x) :- path(x, x).\n"
)


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return load_pipeline(write_pipeline(tmp_path / "till", DECLARATION, {**VIEWS, "near": NEAR}))


@pytest.fixture
def edges(pipeline: Pipeline, flows: FlowStore) -> Inbox:
    made = flows.inboxes(pipeline)["edge"]
    made.make()
    made.append([(1, 1, 2), (2, 2, 3), (3, 2, 3), (4, 3, 4), (5, 7, 8)])
    return made


def facts_of(edges: Inbox) -> list[Edge]:
    return sorted({(x, y) for _, x, y in edges.rows()})


def rows_of(
    pipeline: Pipeline, flows: FlowStore, spark: SparkSession
) -> dict[str, list[tuple[object, ...]]]:
    path = flows.flow_path(pipeline)
    with IncrementalFlow.open(path, spark, read_only=True) as flow:
        return {
            view.name: sorted(tuple(row) for row in flow.snapshot(view.name).collect())
            for view in pipeline.views
        }


def test_a_circle_is_ticked_whole(
    run_till: Run, pipeline: Pipeline, flows: FlowStore, edges: Inbox, spark: SparkSession
) -> None:
    everything = run_till("odd", "path")
    assert everything.success
    assert set(materialized(everything)) == {"even", "odd", "path"}
    assert all(check.passed for check in checks(everything).values())
    assert len(checks(everything)) == 3 * 2
    assert run_till.only_ticks(*(view.name for view in pipeline.views)).success

    edges.append([(6, 4, 5), (7, 5, 2)])
    ticked = materialized(run_till.only_ticks("even"))
    assert set(ticked) == {"even", "odd"}
    assert {value(each, "tick") for each in ticked.values()} == {3}
    seen = {
        name: view.tick for name, view in read_frontier(flows.flow_path(pipeline)).views.items()
    }
    assert {name for name, tick in seen.items() if tick == 3} == {"even", "odd"}
    found = rows_of(pipeline, flows, spark)
    assert (found["even"], found["odd"]) == sides(facts_of(edges))
    lineage = ticked["odd"].metadata["dagster/column_lineage"].value.deps_by_column
    assert lineage["n"] == [TableColumnDep(AssetKey(["till", "edge"]), "y")]

    edges.merge(updates=[(4, 3, 6)], deletes=[(2, 2, 3)])
    assert run_till.only_ticks(*(view.name for view in pipeline.views)).success
    facts = facts_of(edges)
    found = rows_of(pipeline, flows, spark)
    assert found["reach"] == closure(facts)
    assert (found["even"], found["odd"]) == sides(facts)
    batch = run(PROGRAM, {"edge": facts}, spark)
    assert all(found[name] == sorted(batch[name]) for name in batch)


def test_a_circle_is_altered_whole(
    run_till: Run,
    pipeline: Pipeline,
    flows: FlowStore,
    edges: Inbox,
    instance: DagsterInstance,
    spark: SparkSession,
) -> None:
    assert run_till.only_ticks(*(view.name for view in pipeline.views)).success
    assert pipeline.folder is not None
    changed = {"even": THROUGH, "later": LATER, "walks.dl": FROM_TWO}
    now = load_pipeline(write_pipeline(pipeline.folder, DECLARATION, changed))
    assert {view.circle for view in now.views if view.circle} == {
        ("even", "later", "near", "odd"),
        ("reach",),
        ("path",),
    }
    edges.append([(6, 4, 5), (7, 5, 2)])
    rerun = Run(definitions_of(now, flows), instance)
    done = rerun.only_ticks(*(view.name for view in now.views))
    assert done.success
    assert value(materialized(done)["path"], "definition_rows_deleted") == 3
    facts = facts_of(edges)
    found = rows_of(now, flows, spark)
    assert (found["even"], found["odd"]) == sides(facts)
    assert found["later"] == [row for row in found["even"] if row != (1,)]
    assert found["near"] == sorted({*found["even"], *found["odd"]})
    batch = run(FROM_TWO, {"edge": facts}, spark)
    assert batch["back"]
    assert all(found[name] == sorted(batch[name]) for name in batch)

    write_pipeline(pipeline.folder, DECLARATION, {"even": EVEN})
    (pipeline.folder / "views" / "later.sql").unlink()
    before = load_pipeline(pipeline.folder)
    again = Run(definitions_of(before, flows), instance)
    assert again.only_ticks("odd").success
    found = rows_of(before, flows, spark)
    assert (found["even"], found["odd"]) == sides(facts)
    assert all(check.passed for check in again.only_checks(("odd", "replay_equality")).values())


@pytest.fixture
def run_till(pipeline: Pipeline, flows: FlowStore, instance: DagsterInstance) -> Run:
    return Run(definitions_of(pipeline, flows), instance)
