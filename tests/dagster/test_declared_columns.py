"""What is declared of a source's columns is held to what its table has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.dagster.conftest import DECLARATION, VIEWS, definitions_of, write_pipeline
from tests.dagster.running import Run, materialized
from tideview.resources.pipeline_folder import load_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from dagster import DagsterInstance
    from pyspark.sql import SparkSession

    from tideview.resources.flow_store import FlowStore
    from tideview.resources.inbox import Inbox

WIDER = DECLARATION.replace("city STRING", "city STRING, zip INT")


class Files:
    """The pipeline with other declarations and views, run in one store."""

    def __init__(self, folder: Path, flows: FlowStore, instance: DagsterInstance) -> None:
        self._folder, self._flows, self._instance = folder, flows, instance

    def run(self, declaration: str, **views: str) -> Run:
        folder = write_pipeline(self._folder, declaration, {**VIEWS, **views})
        return Run(definitions_of(load_pipeline(folder), self._flows), self._instance)

    def refusal(self, declaration: str, *views: str) -> str:
        result = self.run(declaration)(*views, raises=False)
        assert not result.success
        [failure] = [each for each in result.all_events if each.is_step_failure]
        return str(failure.step_failure_data.user_failure_data.description)  # type: ignore[union-attr]


@pytest.fixture
def files(
    tmp_path: Path, flows: FlowStore, instance: DagsterInstance, inboxes: dict[str, Inbox]
) -> Files:
    return Files(tmp_path / "till", flows, instance)


@pytest.mark.parametrize("is_known", [False, True])
def test_a_column_that_the_table_does_not_have_as_declared(files: Files, is_known: bool) -> None:
    if is_known:
        assert files.run(DECLARATION).only_ticks().success
    told = files.refusal(DECLARATION.replace("DECIMAL(12,2)", "DECIMAL(14,2)"), "totals")
    assert (
        "source sales declares amount DECIMAL(14,2), and its table has amount DECIMAL(12,2)" in told
    )
    assert "pipeline.yaml, line 4, key sources.sales" in told
    assert "inbox/sales" in told
    told = files.refusal(WIDER, "places")
    assert "source cities declares zip INT, and its table has no such column" in told
    assert "ADD COLUMNS (`zip` INT)" in told
    # whoever doesn't read it goes on
    assert files.run(WIDER).only_ticks("totals").success


def test_a_column_that_the_table_was_given_is_there_for_views_at_once(
    files: Files, inboxes: dict[str, Inbox], spark: SparkSession
) -> None:
    assert files.run(DECLARATION).only_ticks().success
    place = inboxes["cities"].path
    spark.sql(f"ALTER TABLE delta.`{place}` ADD COLUMNS (zip INT)")
    spark.sql(f"INSERT INTO delta.`{place}` VALUES ('eve', 'Rome', 7)")
    zips = "SELECT zip, COUNT(*) AS n FROM cities GROUP BY zip"
    done = files.run(WIDER, places=zips).only_ticks()
    assert done.success
    assert materialized(done)["places"].metadata["rows"].value == 2
