"""The sensor of a pipeline: new versions of its sources become one run, without starting Spark."""

import json

from dagster import (
    AssetObservation,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    DefaultSensorStatus,
    RunRequest,
    RunsFilter,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)

from tideview.assets.names import (
    DATA_VERSION_TAG,
    NEWS_TAG,
    PIPELINE_TAG,
    asset_key,
    source_data_version,
    tick_job,
    tick_step,
    view_keys,
)
from tideview.assets.outlook import Outlook, lookout
from tideview.assets.resource_keys import USUAL, ResourceKeys
from tideview.assets.tries import next_try
from tideview.resources.pipeline_spec import Pipeline

UNDER_WAY = [
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]
FIRST_RUN = "inboxes are made by whoever feeds them, or by the first run: materialize the views"
LOOKED_AT = 500
"""Runs under way of the whole instance, the newest of them."""


def source_sensor(pipeline: Pipeline, keys: ResourceKeys = USUAL) -> SensorDefinition:
    """A sensor that asks for a run of the views that lack something their sources have.

    It waits while a run is under way, so that a burst of changes becomes one tick, and says why it
    skips. A run that failed is asked for again a few times, later each time. Views whose sources
    can't be read are left out, the others go on. The newest versions are reported as observations
    of the sources.
    """

    @sensor(
        name=f"{pipeline.name}_sources",
        description=f"New versions of the sources of {pipeline.name} become a tick of its views.",
        job_name=tick_job(pipeline),
        minimum_interval_seconds=max(int(pipeline.sensor.every.total_seconds()), 1),
        default_status=(
            DefaultSensorStatus.RUNNING if pipeline.sensor.running else DefaultSensorStatus.STOPPED
        ),
        required_resource_keys={keys.flows},
    )
    def sources(context: SensorEvaluationContext) -> SensorResult:
        outlook = lookout(pipeline, keys.store(context)).look()
        observed, cursor = _observed(pipeline, outlook, context.cursor)
        asked = _asked(pipeline, outlook, context)
        if isinstance(asked, RunRequest):
            return SensorResult(run_requests=[asked], asset_events=observed, cursor=cursor)
        return SensorResult(skip_reason=asked, asset_events=observed, cursor=cursor)

    return sources


def _asked(
    pipeline: Pipeline, outlook: Outlook, context: SensorEvaluationContext
) -> RunRequest | SkipReason:
    if outlook.problem:
        return SkipReason(f"the flow can't be looked at: {outlook.problem}")
    stuck = _stuck(pipeline, outlook)
    if not outlook.behind:
        idle = f"every view has seen what is new, as of tick {outlook.tick}"
        return SkipReason(stuck or idle)
    run = _under_way(pipeline, context.instance)
    if run is not None:
        return SkipReason(f"run {run.run_id} is under way; what is new waits for it")
    if stuck:
        context.log.warning(stuck)
    key, tried = next_try(context.instance, pipeline, outlook.run_key)
    if tried:
        return SkipReason(tried)
    return RunRequest(
        run_key=key,
        asset_selection=[asset_key(pipeline, view) for view in outlook.behind],
        tags={PIPELINE_TAG: pipeline.name, NEWS_TAG: outlook.told() or "views that are new"},
    )


def _under_way(pipeline: Pipeline, instance: DagsterInstance) -> DagsterRun | None:
    """A run that ticks the pipeline or keeps it up: of its jobs, by hand, or by a condition."""
    runs = instance.get_runs(RunsFilter(statuses=UNDER_WAY), limit=LOOKED_AT)
    return next((run for run in runs if _is_of(pipeline, run, instance)), None)


def _is_of(pipeline: Pipeline, run: DagsterRun, instance: DagsterInstance) -> bool:
    if PIPELINE_TAG in run.tags:
        return run.tags[PIPELINE_TAG] == pipeline.name
    if run.asset_selection is not None:
        return not run.asset_selection.isdisjoint(view_keys(pipeline))
    if run.execution_plan_snapshot_id is None:
        return False
    plan = instance.get_execution_plan_snapshot(run.execution_plan_snapshot_id)
    return tick_step(pipeline) in plan.step_keys_to_execute


def _stuck(pipeline: Pipeline, outlook: Outlook) -> str:
    """Which sources keep which views from going on, and why; empty for none."""
    told = outlook.told("unreadable", "replaced")
    if not outlook.stuck:
        return ""
    unmade = {source.name for source in pipeline.sources if source.is_inbox} & {
        name for name, news in outlook.news.items() if news.kind == "unreadable"
    }
    first = "" if outlook.tick or not unmade else f"; {FIRST_RUN}"
    return f"{told}; views that can't go on: {', '.join(outlook.stuck)}{first}"


def _observed(
    pipeline: Pipeline, outlook: Outlook, cursor: str | None
) -> tuple[list[AssetObservation], str]:
    """Observations of sources whose version was not reported yet, and what is reported then."""
    reported: dict[str, str] = json.loads(cursor) if cursor else {}
    events = []
    for name, news in outlook.news.items():
        if news.newest is None:
            continue
        version = source_data_version(news.newest)
        if reported.get(name) == version:
            continue
        reported[name] = version
        events.append(
            AssetObservation(
                asset_key(pipeline, name),
                metadata={"version": news.newest.version, "news": str(news)},
                tags={DATA_VERSION_TAG: version},
            )
        )
    return events, json.dumps(reported, sort_keys=True)
