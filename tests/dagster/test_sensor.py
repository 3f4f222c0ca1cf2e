"""The sensor beside real tables and a real flow; none of this needs Spark."""

from __future__ import annotations

import shutil
from decimal import Decimal
from typing import TYPE_CHECKING

from dagster import DagsterRunStatus, RunRequest, SkipReason, build_sensor_context
from dagster._core.test_utils import create_run_for_test

from tideview.assets.names import PIPELINE_TAG
from tideview.assets.source_sensor import look

if TYPE_CHECKING:
    from dagster import DagsterInstance, Definitions
    from pyspark.sql import SparkSession

    from tideview.resources.flow_store import FlowStore
    from tideview.resources.inbox import Inbox
    from tideview.resources.pipeline_folder import Pipeline


def evaluate(defs: Definitions, instance: DagsterInstance) -> RunRequest | SkipReason:
    context = build_sensor_context(instance=instance, definitions=defs)
    result = defs.get_sensor_def("till_sources")(context)
    assert isinstance(result, RunRequest | SkipReason)
    return result


def reason(result: RunRequest | SkipReason) -> str:
    assert isinstance(result, SkipReason)
    assert result.skip_message is not None
    return result.skip_message


def test_missing_tables_are_named_and_survived(
    defs: Definitions, instance: DagsterInstance, flows: FlowStore, pipeline: Pipeline
) -> None:
    told = reason(evaluate(defs, instance))
    assert "sales: there is no Delta table" in told
    assert "cities: there is no Delta table" in told
    flows.inboxes(pipeline)["sales"].make()
    told = reason(evaluate(defs, instance))
    assert "sales:" not in told
    assert "cities: there is no Delta table" in told


def test_a_new_version_asks_for_one_run(
    defs: Definitions, instance: DagsterInstance, inboxes: dict[str, Inbox]
) -> None:
    first, again = evaluate(defs, instance), evaluate(defs, instance)
    assert isinstance(first, RunRequest)
    assert isinstance(again, RunRequest)
    assert first.run_key == again.run_key
    inboxes["sales"].append([(3, "ada", Decimal("1.00"))])
    later = evaluate(defs, instance)
    assert isinstance(later, RunRequest)
    assert later.run_key != first.run_key
    assert later.tags == {PIPELINE_TAG: "till"}


def test_what_is_new_waits_for_the_run_that_is_under_way(
    defs: Definitions, instance: DagsterInstance, inboxes: dict[str, Inbox]
) -> None:
    tags = {PIPELINE_TAG: "till"}
    run = create_run_for_test(instance, tags=tags, status=DagsterRunStatus.STARTED)
    assert f"run {run.run_id} is under way" in reason(evaluate(defs, instance))
    create_run_for_test(instance, tags={PIPELINE_TAG: "other"}, status=DagsterRunStatus.STARTED)
    instance.report_run_failed(run)
    assert isinstance(evaluate(defs, instance), RunRequest)


def test_every_view_has_its_own_frontier(
    spark: SparkSession,
    defs: Definitions,
    instance: DagsterInstance,
    flows: FlowStore,
    pipeline: Pipeline,
    inboxes: dict[str, Inbox],
) -> None:
    with flows.open(pipeline) as flow:
        flow.tick()
        assert "as of tick 1" in reason(evaluate(defs, instance))
        inboxes["sales"].append([(3, "ada", Decimal("1.00"))])
        assert look(pipeline, flows).behind == ["totals", "big"]
        flow.tick(views=["totals"])
    assert look(pipeline, flows).behind == ["big"]
    shutil.rmtree(inboxes["cities"].path)
    assert "cities: there is no Delta table" in reason(evaluate(defs, instance))
    inboxes["cities"].make()
    told = reason(evaluate(defs, instance))
    assert "replaced by others" in told
    assert "cities" in told
