"""Jobs of a pipeline and the time tables that it declares for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagster import AssetSelection, DefaultScheduleStatus, ScheduleDefinition, define_asset_job

from tideview.assets.maintenance import maintenance_job
from tideview.assets.names import CHECKS_TAG, COMPLETE, PIPELINE_TAG, tick_job, view_keys
from tideview.assets.resource_keys import USUAL

if TYPE_CHECKING:
    from dagster import JobDefinition
    from dagster._core.definitions.unresolved_asset_job_definition import (
        UnresolvedAssetJobDefinition,
    )

    from tideview.assets.resource_keys import ResourceKeys
    from tideview.resources.pipeline_spec import Pipeline


def jobs_and_schedules(
    pipeline: Pipeline, keys: ResourceKeys = USUAL
) -> tuple[list[UnresolvedAssetJobDefinition | JobDefinition], list[ScheduleDefinition]]:
    """A job to tick, one to check everything, one for upkeep; and a schedule where one is asked."""
    views = view_keys(pipeline)
    tick = define_asset_job(
        tick_job(pipeline),
        selection=AssetSelection.assets(*views),
        description=f"One tick of every view of {pipeline.name}, and the checks of all of them.",
        tags={PIPELINE_TAG: pipeline.name},
    )
    # no tag of the pipeline: checks only read, and ticks need not wait for them
    check = define_asset_job(
        f"{pipeline.name}_complete_check",
        selection=AssetSelection.checks_for_assets(*views),
        description=f"Every check of every view of {pipeline.name}, on all rows.",
        tags={CHECKS_TAG: COMPLETE},
    )
    upkeep = maintenance_job(pipeline, keys)
    tables = pipeline.schedules
    wanted = ((tick, "tick", tables.tick), (check, "complete_check", tables.replay))
    schedules = [
        ScheduleDefinition(
            name=f"{pipeline.name}_{name}_schedule",
            job=job,
            cron_schedule=cron,
            execution_timezone=tables.timezone,
            default_status=DefaultScheduleStatus.RUNNING,
        )
        for job, name, cron in (*wanted, (upkeep, "maintenance", tables.maintenance))
        if cron
    ]
    return [tick, check, upkeep], schedules
