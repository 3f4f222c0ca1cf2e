"""What the sensors make of a corrected view and of a flow that can't be read; the first day."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dagster import AssetCheckKey, AssetKey, DailyPartitionsDefinition

from ivm_core.engine.layout import Layout
from ivm_core.store.location import Location
from tests.dagster.conftest import DECLARATION, VIEWS, definitions_of, write_pipeline
from tests.dagster.sensing import RETENTION, evaluate, reason, request
from tideview.assets import tideview_definitions
from tideview.assets.names import replay_key
from tideview.resources.pipeline_folder import load_pipeline
from tideview.resources.pipeline_spec import Recursion

if TYPE_CHECKING:
    from pathlib import Path

    from dagster import DagsterInstance

    from tideview.resources.flow_store import FlowStore
    from tideview.resources.inbox import Inbox
    from tideview.resources.pipeline_spec import Pipeline


def test_what_is_corrected_is_tried_again(
    tmp_path: Path,
    pipeline: Pipeline,
    instance: DagsterInstance,
    flows: FlowStore,
    inboxes: dict[str, Inbox],
) -> None:
    def key(declared: Pipeline) -> str | None:
        return request(definitions_of(declared, flows), instance).run_key

    wrong = VIEWS | {"big": "SELECT customer, 1 / (total - total) AS total FROM totals"}
    right = key(pipeline)
    assert key(load_pipeline(write_pipeline(tmp_path / "till", DECLARATION, wrong))) != right
    laid_out = VIEWS | {"big": f"-- Said.\n{VIEWS['big']}"}
    assert key(load_pipeline(write_pipeline(tmp_path / "till", DECLARATION, laid_out))) == right
    assert key(replace(pipeline, recursion=Recursion(max_iterations=7))) != right


def test_a_flow_that_cannot_be_read_is_told_by_both_sensors(
    pipeline: Pipeline, instance: DagsterInstance, flows: FlowStore, inboxes: dict[str, Inbox]
) -> None:
    log = first_commit(flows.flow_path(pipeline))
    log.write_text("no commit")
    defs = definitions_of(pipeline, flows)
    told = reason(defs, instance)
    assert "the flow can't be looked at: " in told
    assert evaluate(defs, instance, RETENTION).skip_message == told


def test_a_flow_that_cannot_be_read_fails_runs_in_our_words(
    tmp_path: Path, instance: DagsterInstance, flows: FlowStore
) -> None:
    front = "/*---\nexpectations: [{type: expect_column_to_exist, kwargs: {column: n}}]\n---*/\n"
    views = VIEWS | {"totals": front + VIEWS["totals"]}
    pipeline = load_pipeline(write_pipeline(tmp_path / "till", DECLARATION, views))
    first_commit(flows.flow_path(pipeline)).write_text("no commit")
    defs = definitions_of(pipeline, flows)
    every = defs.resolve_implicit_global_asset_job_def()
    today = datetime.now(UTC).date().isoformat()
    edges = ("start", "end")
    ranged = {f"dagster/asset_partition_range_{edge}": today for edge in edges}
    check = AssetCheckKey(AssetKey(["till", "totals"]), "expect_column_to_exist_n")
    for job in (
        defs.resolve_job_def("till_maintenance"),
        every.get_subset(asset_selection={replay_key(pipeline)}),
        every.get_subset(asset_selection={AssetKey(["till", "sales"])}),
        every.get_subset(asset_selection=set(), asset_check_selection={check}),
    ):
        tags = ranged if replay_key(pipeline) in job.asset_layer.selected_asset_keys else {}
        done = job.execute_in_process(instance=instance, raise_on_error=False, tags=tags)
        [failed] = done.get_step_failure_events()
        error = failed.step_failure_data.user_failure_data
        assert error is not None
        assert "can't be read" in (error.description or "")
        assert "backtrace" not in (error.description or "")
        assert len((error.description or "").splitlines()) < 4


def test_the_first_day_of_the_history_is_that_of_the_flow_in_the_store(
    tmp_path: Path, pipeline: Pipeline, flows: FlowStore
) -> None:
    made = datetime(2024, 3, 5, 12, tzinfo=UTC)
    log = first_commit(flows.flow_path(pipeline))
    log.write_text(json.dumps({"commitInfo": {"timestamp": int(made.timestamp() * 1000)}}))
    os.utime(log)  # as of a flow that was copied today
    defs = tideview_definitions(tmp_path / "till", store=flows.path)
    days = defs.resolve_asset_graph().get(replay_key(pipeline)).partitions_def
    assert isinstance(days, DailyPartitionsDefinition)
    assert days.start.date() == made.date()


def first_commit(flow: Path) -> Path:
    """An empty file where a flow's log begins."""
    folder = Layout(Location(flow)).log.path / "_delta_log"
    folder.mkdir(parents=True)
    file = folder / f"{0:020d}.json"
    file.touch()
    return file
