"""The code location: the shop, and what its runs are given."""

from __future__ import annotations

from pathlib import Path

from dagster import Definitions, in_process_executor

from tideview.assets.pipeline_definitions import pipeline_definitions
from tideview.resources.flow_store import FlowStore
from tideview.resources.local_spark import LocalSpark
from tideview.resources.pipeline_folder import load_pipeline

SHOP = load_pipeline(Path(__file__).with_name("shop"))

# One process a run: with a process a step, every step would start a Spark of its own.
defs = Definitions.merge(
    pipeline_definitions(SHOP),
    Definitions(
        resources={"flows": FlowStore(), "spark": LocalSpark()}, executor=in_process_executor
    ),
)
