"""What a pipeline's things are called in Dagster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagster import AssetKey

if TYPE_CHECKING:
    from ivm_core.api.frontier import SourceVersion
    from tideview.resources.pipeline_spec import Pipeline

PIPELINE_TAG = "tideview/pipeline"
CHECKS_TAG = "tideview/checks"
"""On a run: `complete` compares all rows of every view, whatever their number."""
COMPLETE = "complete"
NEWS_TAG = "tideview/news"
"""On a run that the sensor asked for: what it saw in the sources."""
REPLAY_TAG = "tideview/replay"
"""On a run of the replay asset: `repair` makes lost and damaged files again before it compares."""
REPAIR = "repair"
DATA_VERSION_TAG = "dagster/data_version"
INPUT_VERSION_TAG = "dagster/input_data_version/"


def asset_key(pipeline: Pipeline, relation: str) -> AssetKey:
    """The asset of a source or view."""
    return AssetKey([pipeline.name, relation])


def view_keys(pipeline: Pipeline) -> list[AssetKey]:
    """The assets of all views, inputs first."""
    return [asset_key(pipeline, view.name) for view in pipeline.views]


def replay_key(pipeline: Pipeline) -> AssetKey:
    """The asset of the pipeline's replayed history; no view's key has three parts."""
    return AssetKey([pipeline.name, "history", "replay"])


def source_data_version(version: SourceVersion) -> str:
    """A source's data version: which table, and which version of it."""
    return f"{version.table_id}@{version.version}"


def pool(pipeline: Pipeline) -> str:
    """The pool that keeps two runs from ticking one flow at once."""
    return f"tideview_{pipeline.name}"


def tick_step(pipeline: Pipeline) -> str:
    """The step that ticks views, in whatever job."""
    return f"{pipeline.name}_tick"


def tick_job(pipeline: Pipeline) -> str:
    """The job that ticks all views."""
    return f"{pipeline.name}_job"
