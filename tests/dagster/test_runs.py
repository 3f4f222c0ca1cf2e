"""Runs as Dagster makes them: real ticks on a real Spark, in one process."""

from __future__ import annotations

import os
import signal
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from dagster import (
    AssetKey,
    DagsterEventType,
    DagsterExecutionInterruptedError,
    DagsterRunStatus,
    Definitions,
    TableColumnDep,
    asset,
)
from dagster._core.definitions.data_version import (
    CachingStaleStatusResolver,
    StaleStatus,
)
from dagster._core.loader import LoadingContextForTest

from ivm_core import IncrementalFlow
from ivm_core.api.frontier import read_frontier
from ivm_core.store import faults
from tests.dagster.conftest import DECLARATION, VIEWS, definitions_of, write_pipeline
from tests.dagster.running import Run, checks, materialized, observed, value
from tests.dagster.sensing import RETENTION, evaluate, reason, request
from tideview.assets import ResourceKeys, failures, tideview_definitions
from tideview.resources.pipeline_folder import load_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from dagster import DagsterEvent, DagsterInstance, ExecuteInProcessResult

    from tideview.resources.flow_store import FlowStore
    from tideview.resources.inbox import Inbox
    from tideview.resources.pipeline_spec import Pipeline

pytestmark = pytest.mark.usefixtures("spark")
IVM_CHECKS = {"determinism", "replay_equality", "certificate_chain"}


def test_a_selection_is_one_tick_with_its_certificate(
    run: Run,
    defs: Definitions,
    instance: DagsterInstance,
    flows: FlowStore,
    pipeline: Pipeline,
    inboxes: dict[str, Inbox],
) -> None:
    everything = run()
    assert everything.success
    first = materialized(everything)
    assert set(first) == {"totals", "big", "places"}
    assert {value(each, "tick") for each in first.values()} == {1}
    assert all(check.passed for check in checks(everything).values())
    assert set(checks(everything)) == {(view, name) for view in first for name in IVM_CHECKS}
    assert observed(everything)["sales"].metadata["rows_in"].value == 2
    seen = str(observed(everything)["sales"].data_version)
    assert seen.endswith(f"@{inboxes['sales'].version.version}")

    inboxes["sales"].append([(3, "ada", Decimal("4.00")), (4, "cleo", Decimal("1.00"))])
    inboxes["cities"].append([("cleo", "Porto")])
    selected = run("big")
    assert selected.success
    second = materialized(selected)
    assert set(second) == {"totals", "big"}  # what it reads was advanced too, and says so
    assert set(checks(selected)) == {("big", name) for name in IVM_CHECKS}
    totals, big = second["totals"], second["big"]
    numbers = ("tick", "rows_in", "rows_out", "deletions", "rows", "rows_inserted", "rows_updated")
    assert {key: value(totals, key) for key in numbers} == {
        "tick": 2,
        "rows_in": 2,
        "rows_out": 3,
        "deletions": 1,
        "rows": 3,
        "rows_inserted": 1,
        "rows_updated": 1,
    }
    assert value(totals, "rows_deleted") == 0
    assert value(totals, "state_rows") > 0  # type: ignore[operator]
    assert value(big, "rows_out") == 1
    assert value(big, "dagster/row_count") == 1
    for timed in ("duration_ms", "phase_prepare_ms", "phase_evaluate_ms", "phase_commit_ms"):
        assert isinstance(value(big, timed), float)
    assert value(big, "frontier") == {
        "sales": inboxes["sales"].version.version,
        "cities": inboxes["cities"].version.version - 1,  # nothing that was selected reads it
    }
    columns = totals.metadata["dagster/column_schema"].value.columns
    assert [(column.name, column.type) for column in columns] == [
        ("customer", "STRING"),
        ("total", "DECIMAL(22,2)"),
        ("n", "BIGINT"),
    ]
    lineage = totals.metadata["dagster/column_lineage"].value.deps_by_column
    assert lineage["total"] == [TableColumnDep(AssetKey(["till", "sales"]), "amount")]
    assert lineage["n"] == []
    of_big = big.metadata["dagster/column_lineage"].value.deps_by_column
    assert of_big["total"] == [TableColumnDep(AssetKey(["till", "totals"]), "total")]
    assert "totals" in str(value(totals, "ways"))
    assert "```sql" in str(value(totals, "compiled_sql"))
    assert "| cleo | 1.00 | 1 | 1 |" in str(value(totals, "changed_rows"))
    frontier = read_frontier(flows.flow_path(pipeline))
    assert {name: view.tick for name, view in frontier.views.items()} == {
        "totals": 2,
        "big": 2,
        "places": 1,
    }
    assert value(big, "digest") == frontier.views["big"].digest
    assert big.tags is not None
    assert big.tags["dagster/data_version"] == frontier.views["big"].digest
    assert statuses(defs, instance) == {
        "totals": StaleStatus.FRESH,
        "big": StaleStatus.FRESH,
        "places": StaleStatus.FRESH,  # nobody has looked at cities since
    }
    assert set(observed(selected)) == {"sales"}


def statuses(defs: Definitions, instance: DagsterInstance) -> dict[str, StaleStatus]:
    graph = defs.resolve_asset_graph()
    resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
    return {name: resolver.get_status(AssetKey(["till", name])) for name in VIEWS}


def test_a_run_that_the_sensor_asked_for(
    run: Run, defs: Definitions, instance: DagsterInstance, inboxes: dict[str, Inbox]
) -> None:
    keys = []
    for tick, views in ((1, set(VIEWS)), (2, {"totals", "big"})):
        asked = request(defs, instance)
        keys.append(asked.run_key)
        assert asked.asset_selection is not None
        selected = {key.path[-1] for key in asked.asset_selection}
        assert selected == views
        result = run(*selected, tags=dict(asked.tags))
        assert result.success
        assert value(materialized(result)["totals"], "tick") == tick
        assert f"as of tick {tick}" in reason(defs, instance)
        inboxes["sales"].merge([(1, "ada", Decimal("20.00"))], [(2, "ben", Decimal("3.00"))])
    assert len(set(keys)) == 2
    assert value(materialized(result)["big"], "rows") == 1
    assert all(check.passed for check in checks(result).values())


def test_a_refusal_is_told_in_our_words_and_a_retry_is_safe(
    instance: DagsterInstance,
    flows: FlowStore,
    pipeline: Pipeline,
    inboxes: dict[str, Inbox],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(failures, "RETRIES", 1)
    monkeypatch.setattr(failures, "SECONDS_BETWEEN", 0.0)
    run = Run(definitions_of(pipeline, flows), instance)
    with IncrementalFlow.open(flows.flow_path(pipeline)) as other:
        other.register_source("elsewhere", "id INT")
        result = run(raises=False)
        assert not result.success
        assert len(retries(result)) == 1
        assert "another writer is at work on this flow" in failure(result)
        assert "fix:" in failure(result)
    again = run.only_ticks()
    assert again.success
    assert value(materialized(again)["totals"], "rows") == 2


def test_a_tick_that_fails_names_the_row_and_the_next_one_goes_on(
    tmp_path: Path, instance: DagsterInstance, flows: FlowStore, inboxes: dict[str, Inbox]
) -> None:
    views = {**VIEWS, "shares": "SELECT customer, 10 / (total - 7) AS share FROM totals"}
    folder = write_pipeline(tmp_path / "till", DECLARATION, views)
    defs = definitions_of(load_pipeline(folder), flows)
    run = Run(defs, instance)
    result = run(raises=False)
    assert not result.success
    assert retries(result) == []  # it would fail alike
    told = failure(result)
    assert "where: view shares" in told
    assert "ada" in told
    [failed] = result.get_step_failure_events()
    assert failed.step_failure_data.error is not None
    assert failed.step_failure_data.error.cause is not None  # Spark's own words are below ours
    assert request(defs, instance).run_key  # another state of the sources is another try
    inboxes["sales"].merge([(1, "ada", Decimal("8.00"))], [])
    again = run()
    assert again.success
    assert all(check.passed for check in checks(again).values())


def test_a_cancelled_run_leaves_the_flow_whole(
    run: Run,
    defs: Definitions,
    instance: DagsterInstance,
    flows: FlowStore,
    pipeline: Pipeline,
    inboxes: dict[str, Inbox],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run.only_ticks().success
    inboxes["sales"].append([(3, "ada", Decimal("4.00"))])
    passed: list[str] = []

    def cancel(point: str) -> None:
        """What the UI's button comes to, once the tick has written rows that nobody sees yet."""
        passed.append(point)
        if passed.count("after:trace.commit") == 1 and point == "after:trace.commit":
            [under_way] = instance.get_runs(limit=1)
            instance.report_run_canceling(under_way)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(faults, "on_fault_point", cancel)
    with pytest.raises((DagsterExecutionInterruptedError, KeyboardInterrupt)):
        run.only_ticks()
    monkeypatch.setattr(faults, "on_fault_point", None)
    assert "after:trace.commit" in passed
    [cancelled] = instance.get_runs(limit=1)
    assert cancelled.status == DagsterRunStatus.CANCELED
    assert read_frontier(flows.flow_path(pipeline)).tick == 1
    # the next run finishes the tick, also for views that it doesn't select, and tells it
    assert run.only_ticks("places").success
    assert ticks_of(instance, "big") == [1, 2]
    assert ticks_of(instance, "totals") == [1, 2]
    assert ticks_of(instance, "places")[-1] == 3
    assert set(statuses(defs, instance).values()) == {StaleStatus.FRESH}
    again = run()
    assert again.success
    assert value(materialized(again)["totals"], "tick") == 4
    assert ticks_of(instance, "big") == [1, 2, 4]
    assert all(check.passed for check in checks(again).values())
    with IncrementalFlow.open(flows.flow_path(pipeline), read_only=True) as flow:
        assert flow.tick_change("big", 2).num_rows == 1


def ticks_of(instance: DagsterInstance, view: str) -> list[int]:
    """The ticks that Dagster has heard of, the oldest first."""
    records = instance.fetch_materializations(AssetKey(["till", view]), limit=20).records
    found = [each.asset_materialization for each in records]
    return [int(str(value(each, "tick"))) for each in reversed(found) if each is not None]


def failure(result: ExecuteInProcessResult) -> str:
    """What the reader of a failed run sees first."""
    [failed] = result.get_step_failure_events()
    told = failed.step_failure_data.user_failure_data
    assert told is not None
    return told.description or ""


def retries(result: ExecuteInProcessResult) -> list[DagsterEvent]:
    wanted = DagsterEventType.STEP_UP_FOR_RETRY
    return [event for event in result.all_events if event.event_type == wanted]


def test_a_changed_view_is_rolled_out_by_its_next_run(
    tmp_path: Path,
    instance: DagsterInstance,
    run: Run,
    flows: FlowStore,
    inboxes: dict[str, Inbox],
) -> None:
    assert run.only_ticks().success

    def changed(declaration: str = DECLARATION, **views: str) -> Run:
        folder = write_pipeline(tmp_path / "till", declaration, {**VIEWS, **views})
        return Run(definitions_of(load_pipeline(folder), flows), instance)

    stricter = changed(big=f"-- require: incremental\n{VIEWS['big']}")("big", raises=False)
    assert "put back what the file said of require" in failure(stricter)
    lower = VIEWS["big"].replace("10", "5").replace("customer, total", "customer AS who, total")
    another = {"big": lower, "none": "SELECT who FROM big WHERE total > 6"}
    refused = changed(f"{DECLARATION}changed_views: refuse\n", **another)("big", raises=False)
    assert "view big is declared differently" in failure(refused)
    assert "say changed_views: alter in pipeline.yaml" in failure(refused)
    assert "views/big.sql" in failure(refused)
    assert "flow." not in failure(refused)

    result = changed(**another)("totals", "big", "none", "places")
    assert result.success
    assert all(check.passed for check in checks(result).values())
    found = materialized(result)
    assert value(found["big"], "definition_rows_inserted") == 1
    assert value(found["big"], "definition_rows_deleted") == 0
    assert "swapped in tick 2" in str(value(found["big"], "definition_change"))
    assert "| ada | 7.00 |" in str(value(found["big"], "definition_changed_rows"))
    assert value(found["none"], "rows") == 1
    assert "definition_change" not in found["totals"].metadata

    cosmetic = {**another, "big": f"-- Large ones.\n{lower.lower()}"}
    again = changed(**cosmetic).only_ticks("big")
    assert "definition_change" not in materialized(again)["big"].metadata
    assert value(materialized(again)["big"], "rows") == 1


def test_a_project_with_a_spark_of_its_own_names_ours(
    tmp_path: Path, instance: DagsterInstance, flows: FlowStore, inboxes: dict[str, Inbox]
) -> None:
    @asset(required_resource_keys={"spark"})
    def mine(context) -> None:  # type: ignore[no-untyped-def]
        assert context.resources.spark == "theirs"

    theirs = Definitions(assets=[mine], resources={"spark": "theirs", "flows": "theirs"})
    folder = write_pipeline(tmp_path / "till", DECLARATION, VIEWS)
    keys = ResourceKeys(flows="tideview_flows", spark="tideview_spark")
    defs = Definitions.merge(
        theirs, tideview_definitions(folder, store=flows.path, resource_keys=keys)
    )
    assert request(defs, instance).run_key
    result = Run(defs, instance)()
    assert result.success
    assert all(check.passed for check in checks(result).values())
    every = defs.resolve_implicit_global_asset_job_def()
    others = {AssetKey("mine"), AssetKey(["till", "sales"])}
    assert every.get_subset(asset_selection=others).execute_in_process(instance=instance).success
    upkeep = defs.resolve_job_def("till_maintenance")
    assert upkeep.execute_in_process(instance=instance).success
    assert evaluate(defs, instance, RETENTION).skip_message
