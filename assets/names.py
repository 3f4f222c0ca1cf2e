"""What a pipeline's things are called in Dagster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagster import AssetKey

if TYPE_CHECKING:
    from tideview.resources.pipeline_folder import Pipeline

PIPELINE_TAG = "tideview/pipeline"
DATA_VERSION_TAG = "dagster/data_version"
REPLAY_EQUALITY = "replay_equality"


def asset_key(pipeline: Pipeline, relation: str) -> AssetKey:
    """The asset of a source or view."""
    return AssetKey([pipeline.name, relation])


def view_keys(pipeline: Pipeline) -> list[AssetKey]:
    """The assets of all views, inputs first."""
    return [asset_key(pipeline, view.name) for view in pipeline.views]


def pool(pipeline: Pipeline) -> str:
    """The pool that keeps two runs from ticking one flow at once."""
    return f"tideview_{pipeline.name}"
