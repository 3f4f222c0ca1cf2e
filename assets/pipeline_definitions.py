"""Everything that Dagster shows of a pipeline, made from its folder by one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagster import Definitions

from tideview.assets.checks import view_checks
from tideview.assets.expectations import expectation_checks
from tideview.assets.replay_asset import replay_asset
from tideview.assets.resource_keys import USUAL
from tideview.assets.retention_sensor import retention_sensor
from tideview.assets.schedules import jobs_and_schedules
from tideview.assets.source_assets import source_assets
from tideview.assets.source_sensor import source_sensor
from tideview.assets.view_assets import tick_assets

if TYPE_CHECKING:
    from tideview.assets.resource_keys import ResourceKeys
    from tideview.resources.flow_store import FlowStore
    from tideview.resources.pipeline_spec import Pipeline


def pipeline_definitions(
    pipeline: Pipeline, flows: FlowStore | None = None, keys: ResourceKeys = USUAL
) -> Definitions:
    """Assets, checks, jobs, schedules, sensors; they want resources under the keys.

    The days that can be replayed begin with the flow in a store, the usual one for None.
    """
    jobs, schedules = jobs_and_schedules(pipeline, keys)
    return Definitions(
        assets=[
            source_assets(pipeline, keys),
            tick_assets(pipeline, keys),
            replay_asset(pipeline, flows, keys),
        ],
        asset_checks=[*view_checks(pipeline, keys), *expectation_checks(pipeline, keys)],
        jobs=jobs,
        schedules=schedules,
        sensors=[source_sensor(pipeline, keys), retention_sensor(pipeline, keys)],
    )
