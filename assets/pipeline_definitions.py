"""Everything that Dagster shows of a pipeline, made from its folder by one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagster import AssetSelection, Definitions, define_asset_job

from tideview.assets.names import PIPELINE_TAG, view_keys
from tideview.assets.replay_equality import replay_equality_checks
from tideview.assets.source_sensor import source_sensor
from tideview.assets.view_assets import source_specs, tick_assets

if TYPE_CHECKING:
    from tideview.resources.pipeline_folder import Pipeline


def pipeline_definitions(pipeline: Pipeline) -> Definitions:
    """Assets, checks, a job and a sensor; they want the resources `flows` and `spark`."""
    job = define_asset_job(
        f"{pipeline.name}_job",
        selection=AssetSelection.assets(*view_keys(pipeline)),
        description=f"One tick of every view of {pipeline.name}, and the checks of all of them.",
        tags={PIPELINE_TAG: pipeline.name},
    )
    return Definitions(
        assets=[*source_specs(pipeline), tick_assets(pipeline)],
        asset_checks=[replay_equality_checks(pipeline)],
        jobs=[job],
        sensors=[source_sensor(pipeline, job.name)],
    )
