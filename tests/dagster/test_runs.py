"""Runs as Dagster makes them: real ticks on a real Spark, in one process."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dagster import AssetKey, DagsterEventType, Failure

from ivm_core import IncrementalFlow
from ivm_core.api.frontier import read_frontier
from tests.dagster.sensing import reason, request

if TYPE_CHECKING:
    from pathlib import Path

    from dagster import (
        AssetCheckEvaluation,
        AssetMaterialization,
        DagsterInstance,
        Definitions,
        ExecuteInProcessResult,
    )
    from pyspark.sql import SparkSession

    from tideview.resources.flow_store import FlowStore
    from tideview.resources.inbox import Inbox
    from tideview.resources.pipeline_folder import Pipeline

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def run(defs: Definitions, instance: DagsterInstance) -> Run:
    return Run(defs, instance)


class Run:
    """Executes the pipeline's job, all of it or a selection."""

    def __init__(self, defs: Definitions, instance: DagsterInstance) -> None:
        self._job = defs.resolve_job_def("till_job")
        self._instance = instance

    def __call__(
        self, *views: str, raises: bool = True, tags: dict[str, str] | None = None
    ) -> ExecuteInProcessResult:
        selection = [AssetKey(["till", view]) for view in views] or None
        return self._job.execute_in_process(
            instance=self._instance, asset_selection=selection, raise_on_error=raises, tags=tags
        )


def materialized(result: ExecuteInProcessResult) -> dict[str, AssetMaterialization]:
    found = {}
    for event in result.all_events:
        if event.event_type == DagsterEventType.ASSET_MATERIALIZATION:
            materialization = event.step_materialization_data.materialization
            found[materialization.asset_key.path[-1]] = materialization
    return found


def value(materialization: AssetMaterialization, key: str) -> object:
    return materialization.metadata[key].value


def checks(result: ExecuteInProcessResult) -> dict[str, AssetCheckEvaluation]:
    return {each.asset_key.path[-1]: each for each in result.get_asset_check_evaluations()}


def test_a_selection_is_one_tick_with_its_certificate(
    run: Run, flows: FlowStore, pipeline: Pipeline, inboxes: dict[str, Inbox]
) -> None:
    everything = run()
    assert everything.success
    first = materialized(everything)
    assert set(first) == {"totals", "big", "places"}
    assert {value(each, "tick") for each in first.values()} == {1}
    assert all(check.passed for check in checks(everything).values())
    assert set(checks(everything)) == set(first)
    observed = {
        event.asset_key.path[-1]: event.asset_observation_data.asset_observation
        for event in everything.all_events
        if event.event_type == DagsterEventType.ASSET_OBSERVATION and event.asset_key
    }
    assert observed["sales"].metadata["rows_in"].value == 2
    assert str(observed["sales"].data_version).endswith(f"@{inboxes['sales'].version.version}")

    inboxes["sales"].append([(3, "ada", Decimal("4.00")), (4, "cleo", Decimal("1.00"))])
    inboxes["cities"].append([("cleo", "Porto")])
    selected = run("big")
    assert selected.success
    second = materialized(selected)
    assert set(second) == {"totals", "big"}  # what it reads was advanced too, and says so
    assert set(checks(selected)) == {"big"}
    totals, big = second["totals"], second["big"]
    assert {key: value(totals, key) for key in ("tick", "rows_out", "deletions", "rows")} == {
        "tick": 2,
        "rows_out": 3,
        "deletions": 1,
        "rows": 3,
    }
    assert value(big, "rows_out") == 1
    assert value(big, "dagster/row_count") == 1
    assert isinstance(value(big, "duration_ms"), float)
    assert value(big, "frontier") == {
        name: inbox.version.version for name, inbox in inboxes.items()
    }
    columns = totals.metadata["dagster/column_schema"].value.columns
    assert [(column.name, column.type) for column in columns] == [
        ("customer", "STRING"),
        ("total", "DECIMAL(22,2)"),
        ("n", "BIGINT"),
    ]
    assert "totals" in str(value(totals, "ways"))
    assert "```sql" in str(value(totals, "compiled_sql"))
    frontier = read_frontier(flows.flow_path(pipeline))
    assert {name: view.tick for name, view in frontier.views.items()} == {
        "totals": 2,
        "big": 2,
        "places": 1,
    }
    assert value(big, "digest") == frontier.views["big"].digest
    assert big.tags is not None
    assert big.tags["dagster/data_version"] == frontier.views["big"].digest


def test_a_run_that_the_sensor_asked_for(
    run: Run, defs: Definitions, instance: DagsterInstance, inboxes: dict[str, Inbox]
) -> None:
    keys = []
    for tick in (1, 2):
        asked = request(defs, instance)
        keys.append(asked.run_key)
        result = run(tags=dict(asked.tags))
        assert result.success
        assert value(materialized(result)["totals"], "tick") == tick
        assert f"as of tick {tick}" in reason(defs, instance)
        inboxes["sales"].merge([(1, "ada", Decimal("20.00"))], [(2, "ben", Decimal("3.00"))])
    assert len(set(keys)) == 2
    assert value(materialized(result)["big"], "rows") == 1
    assert value(materialized(result)["places"], "skipped") is True
    assert all(check.passed for check in checks(result).values())


def test_a_check_that_fails_names_the_row(
    run: Run, flows: FlowStore, pipeline: Pipeline, inboxes: dict[str, Inbox]
) -> None:
    assert run().success
    [file] = rows_of_view(flows.flow_path(pipeline), "totals")
    rows = pq.read_table(file)
    forged = [Decimal("99.99") if name == "ben" else total for name, total in pairs(rows)]
    column = pa.array(forged, rows.schema.field("total").type)
    pq.write_table(rows.set_column(rows.schema.get_field_index("total"), "total", column), file)

    result = run("totals", "places")
    assert result.success  # the check does not block
    found = checks(result)
    assert found["places"].passed
    assert not found["totals"].passed
    assert found["totals"].metadata["missing"].value == 1
    assert found["totals"].metadata["extra"].value == 1
    shown = str(found["totals"].metadata["differing_rows"].value)
    assert "| ben | 99.99 | 1 | -1 |" in shown
    assert "| ben | 3.00 | 1 | 1 |" in shown


def rows_of_view(flow: Path, view: str) -> list[Path]:
    return sorted((flow / "views" / view / "rows").glob("*.parquet"))


def pairs(rows: pa.Table) -> list[tuple[str, Decimal]]:
    return list(zip(rows["customer"].to_pylist(), rows["total"].to_pylist(), strict=True))


def test_a_refusal_is_told_in_our_words(
    run: Run, flows: FlowStore, pipeline: Pipeline, inboxes: dict[str, Inbox]
) -> None:
    with IncrementalFlow.open(flows.flow_path(pipeline)) as other:
        other.register_source("elsewhere", "id INT")
        result = run(raises=False)
        assert not result.success
        [failed] = result.get_step_failure_events()
        failure = failed.step_failure_data.user_failure_data
        assert failure is not None
        assert "another writer is at work on this flow" in (failure.description or "")
        assert "fix:" in (failure.description or "")
        with pytest.raises(Failure):
            run()


def test_a_check_before_the_first_tick_says_what_to_do(
    defs: Definitions, instance: DagsterInstance, spark: SparkSession
) -> None:
    job = defs.resolve_implicit_global_asset_job_def()
    every_check = set(defs.resolve_asset_graph().asset_check_keys)
    subset = job.get_subset(asset_selection=set(), asset_check_selection=every_check)
    result = subset.execute_in_process(instance=instance)
    assert result.success
    for check in checks(result).values():
        assert not check.passed
        assert "materialize it first" in (check.description or "")
