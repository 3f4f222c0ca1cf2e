"""The sensor beside real tables and a real flow; none of this needs Spark."""

from __future__ import annotations

import shutil
from decimal import Decimal
from typing import TYPE_CHECKING

from dagster import DagsterRunStatus
from dagster._core.test_utils import create_run_for_test

from tests.dagster.sensing import reason, request
from tideview.assets.names import PIPELINE_TAG
from tideview.assets.source_sensor import look

if TYPE_CHECKING:
    from dagster import DagsterInstance, Definitions
    from pyspark.sql import SparkSession

    from tideview.resources.flow_store import FlowStore
    from tideview.resources.inbox import Inbox
    from tideview.resources.pipeline_folder import Pipeline


def test_missing_tables_are_named_and_survived(
    defs: Definitions, instance: DagsterInstance, flows: FlowStore, pipeline: Pipeline
) -> None:
    told = reason(defs, instance)
    assert "sales: there is no Delta table" in told
    assert "cities: there is no Delta table" in told
    flows.inboxes(pipeline)["sales"].make()
    told = reason(defs, instance)
    assert "sales:" not in told
    assert "cities: there is no Delta table" in told


def test_a_new_version_asks_for_one_run(
    defs: Definitions, instance: DagsterInstance, inboxes: dict[str, Inbox]
) -> None:
    first, again = request(defs, instance), request(defs, instance)
    assert first.run_key == again.run_key
    inboxes["sales"].append([(3, "ada", Decimal("1.00"))])
    later = request(defs, instance)
    assert later.run_key != first.run_key
    assert later.tags[PIPELINE_TAG] == "till"


def test_what_is_new_waits_for_the_run_that_is_under_way(
    defs: Definitions, instance: DagsterInstance, inboxes: dict[str, Inbox]
) -> None:
    tags = {PIPELINE_TAG: "till"}
    run = create_run_for_test(instance, tags=tags, status=DagsterRunStatus.STARTED)
    assert f"run {run.run_id} is under way" in reason(defs, instance)
    create_run_for_test(instance, tags={PIPELINE_TAG: "other"}, status=DagsterRunStatus.STARTED)
    instance.report_run_failed(run)
    assert request(defs, instance).run_key


def test_every_view_has_its_own_frontier(
    spark: SparkSession,
    defs: Definitions,
    instance: DagsterInstance,
    flows: FlowStore,
    pipeline: Pipeline,
    inboxes: dict[str, Inbox],
) -> None:
    with flows.open(pipeline, spark) as flow:
        flow.tick()
        assert "as of tick 1" in reason(defs, instance)
        inboxes["sales"].append([(3, "ada", Decimal("1.00"))])
        assert look(pipeline, flows).behind == ["totals", "big"]
        flow.tick(views=["totals"])
    assert look(pipeline, flows).behind == ["big"]
    shutil.rmtree(inboxes["cities"].path)
    assert "cities: there is no Delta table" in reason(defs, instance)
    inboxes["cities"].make()
    told = reason(defs, instance)
    assert "replaced by others" in told
    assert "cities" in told
