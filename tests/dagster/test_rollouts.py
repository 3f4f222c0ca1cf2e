"""Changed definitions in runs: what reads them, what no file declares, what a failed tick leaves."""

from __future__ import annotations

import shutil
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from ivm_core import CorruptStore, HistoryLost, SourceReplaced, TickConflict
from tests.dagster.conftest import DECLARATION, VIEWS, definitions_of, write_pipeline
from tests.dagster.running import Run, materialized, value
from tideview.assets.rollout import opened_for_a_tick
from tideview.assets.way_out import in_dagster
from tideview.resources.pipeline_folder import load_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from dagster import DagsterInstance, ExecuteInProcessResult
    from pyspark.sql import SparkSession

    from tideview.resources.flow_store import FlowStore
    from tideview.resources.inbox import Inbox

pytestmark = pytest.mark.usefixtures("spark", "inboxes")
EXACT = "SELECT customer, SUM(amount) + 0.001 AS total, COUNT(*) AS n FROM sales GROUP BY customer"


def told(result: ExecuteInProcessResult) -> str:
    assert not result.success
    [failed] = result.get_step_failure_events()
    error = failed.step_failure_data.user_failure_data
    assert error is not None
    return error.description or ""


class Files:
    """The pipeline's folder, changed between two runs."""

    def __init__(self, folder: Path, flows: FlowStore, instance: DagsterInstance) -> None:
        self.folder = folder
        self._flows = flows
        self._instance = instance

    def run(self, **views: str) -> Run:
        write_pipeline(self.folder, DECLARATION, {**VIEWS, **views})
        return self.as_they_are()

    def as_they_are(self) -> Run:
        return Run(definitions_of(load_pipeline(self.folder), self._flows), self._instance)


@pytest.fixture
def files(tmp_path: Path, flows: FlowStore, instance: DagsterInstance) -> Files:
    return Files(tmp_path / "till", flows, instance)


def test_readers_of_a_column_that_has_another_type_are_altered_with_it(files: Files) -> None:
    assert files.run().only_ticks().success
    done = files.run(totals=EXACT, big=VIEWS["big"].replace(">= 10", ">= 5"))("totals", "big")
    assert done.success
    found = materialized(done)
    assert value(found["totals"], "definition_rows_inserted") == 2
    assert value(found["big"], "rows") == 1
    files.run(totals=EXACT, big=VIEWS["big"])("big")
    wider = EXACT.replace("0.001", "0.00001")
    again = files.run(totals=wider, big=VIEWS["big"])("totals")  # the reader's file is as it was
    assert again.success
    assert value(materialized(again)["totals"], "definition_rows_inserted") == 2


def test_a_view_that_no_file_declares_is_named_with_the_way_out(files: Files) -> None:
    assert files.run().only_ticks().success
    (files.folder / "views" / "big.sql").unlink()
    without = "SELECT customer, COUNT(*) AS n FROM sales GROUP BY customer"
    (files.folder / "views" / "totals.sql").write_text(without)
    said = told(files.as_they_are()("totals", raises=False))
    assert "the new columns break views: big" in said
    assert "no file of till declares big any more" in said
    assert "tideview drop FLOW big" in said


def test_what_a_new_definition_changed_is_told_also_where_the_tick_fails(
    files: Files, inboxes: dict[str, Inbox]
) -> None:
    failing = {"shares": "SELECT customer, 10 / (total - 8) AS share FROM totals"}
    assert files.run(**failing)("totals", "big", "places", "shares").success
    inboxes["sales"].append([(3, "cy", Decimal("8.00"))])
    lower = VIEWS["big"].replace(">= 10", ">= 5")
    result = files.run(**failing, big=lower)("big", "shares", raises=False)
    assert "where: view shares" in told(result)
    swapped = materialized(result)["big"]
    assert value(swapped, "definition_rows_inserted") == 1
    assert value(swapped, "definition_tick") == value(swapped, "tick")


def test_rows_that_a_swap_changed_downstream_are_told_of_the_reader(files: Files) -> None:
    assert files.run().only_ticks().success
    twice = VIEWS["totals"].replace("SUM(amount)", "SUM(amount) + SUM(amount)")
    done = files.run(totals=twice)("totals", "big")
    assert done.success
    found = materialized(done)["big"]
    if "definition_change" in found.metadata:  # its columns have another type, so it changed too
        assert value(found, "definition_rows_inserted") == 1
    else:
        assert value(found, "definition_rows_out") == 1


def test_a_view_that_is_only_laid_out_otherwise_is_no_news(
    files: Files, flows: FlowStore, spark: SparkSession
) -> None:
    assert files.run().only_ticks().success
    aliased = VIEWS["totals"].replace("sales GROUP BY customer", "sales s GROUP BY s.customer")
    assert files.run(totals=aliased).only_ticks("totals").success
    for big, notes in (
        (VIEWS["big"], []),
        (VIEWS["big"].replace(">= 10", ">= 5"), ["view big keeps its stored definition"]),
    ):
        files.run(totals=aliased, big=big)
        pipeline = load_pipeline(files.folder)
        with opened_for_a_tick(flows, pipeline, spark, ["places"]) as (flow, rollout):
            assert flow.view_sql("totals").strip() != aliased.strip()
        assert [note.split(" until")[0] for note in rollout.notes] == notes


def test_an_inbox_that_is_gone_is_told_with_its_declaration(
    files: Files, inboxes: dict[str, Inbox]
) -> None:
    assert files.run().only_ticks().success
    shutil.rmtree(inboxes["cities"].path)
    said = told(files.as_they_are()("places", raises=False))
    assert "the inbox of source cities is gone" in said
    assert "pipeline.yaml, line 7, key sources.cities" in said
    assert files.as_they_are().only_ticks("totals").success


def test_ways_out_can_be_gone_in_dagster() -> None:
    for error in (
        HistoryLost("gone"),
        SourceReplaced("another one"),
        CorruptStore("a file is lost", CorruptStore.repairable),
        TickConflict("another writer has the flow"),
    ):
        words = in_dagster(str(error))
        assert words != str(error)
        assert "flow." not in words
        assert "reopen" not in words
        assert "tick(" not in words
