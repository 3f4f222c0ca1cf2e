"""A pipeline of three small views, a store in a temporary folder, and runs of it."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from dagster import DagsterInstance, Definitions, in_process_executor

from tests.dagster.running import Run
from tideview.assets.pipeline_definitions import pipeline_definitions
from tideview.resources.flow_store import FlowStore
from tideview.resources.local_spark import LocalSpark
from tideview.resources.pipeline_folder import load_pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tideview.resources.inbox import Inbox
    from tideview.resources.pipeline_spec import Pipeline

DECLARATION = """
name: till
sources:
  sales:
    schema: id BIGINT, customer STRING, amount DECIMAL(12,2)
    primary_key: [id]
  cities:
    schema: customer STRING, city STRING
    primary_key: customer
"""
VIEWS = {
    "big": "SELECT customer, total FROM totals WHERE total >= 10",
    "places": "SELECT city, COUNT(*) AS customers FROM cities GROUP BY city",
    "totals": "-- What each has spent.\n"
    "SELECT customer, SUM(amount) AS total, COUNT(*) AS n FROM sales GROUP BY customer",
}


def write_pipeline(folder: Path, declaration: str, views: dict[str, str]) -> Path:
    (folder / "views").mkdir(parents=True, exist_ok=True)
    (folder / "pipeline.yaml").write_text(declaration)
    for name, text in views.items():
        file = name if name.endswith(".dl") else f"{name}.sql"
        (folder / "views" / file).write_text(text)
    return folder


def definitions_of(pipeline: Pipeline, flows: FlowStore) -> Definitions:
    return Definitions.merge(
        pipeline_definitions(pipeline),
        Definitions(
            resources={"flows": flows, "spark": LocalSpark()}, executor=in_process_executor
        ),
    )


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return load_pipeline(write_pipeline(tmp_path / "till", DECLARATION, VIEWS))


@pytest.fixture
def flows(tmp_path: Path) -> FlowStore:
    return FlowStore(path=str(tmp_path / "store"))


@pytest.fixture
def inboxes(pipeline: Pipeline, flows: FlowStore) -> dict[str, Inbox]:
    """The sources, filled outside of any run."""
    made = flows.inboxes(pipeline)
    for inbox in made.values():
        inbox.make()
    made["sales"].append([(1, "ada", Decimal("7.00")), (2, "ben", Decimal("3.00"))])
    made["cities"].append([("ada", "Lund"), ("ben", "Lund")])
    return made


@pytest.fixture
def defs(pipeline: Pipeline, flows: FlowStore) -> Definitions:
    return definitions_of(pipeline, flows)


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def run(defs: Definitions, instance: DagsterInstance) -> Run:
    return Run(defs, instance)
