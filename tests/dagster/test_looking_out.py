"""What the sensors make of a corrected view and of a flow that can't be read; the first day."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dagster import DailyPartitionsDefinition

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


def test_the_first_day_of_the_history_is_that_of_the_flow_in_the_store(
    tmp_path: Path, pipeline: Pipeline, flows: FlowStore
) -> None:
    made = datetime(2024, 3, 5, 12, tzinfo=UTC)
    os.utime(first_commit(flows.flow_path(pipeline)), (made.timestamp(), made.timestamp()))
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
