"""The sensor that speaks up before a followed table lets go of what the flow has not read yet."""

from datetime import UTC, datetime

from dagster import (
    DefaultSensorStatus,
    SensorDefinition,
    SensorEvaluationContext,
    SkipReason,
    sensor,
)

from ivm_core import HistoryLost
from tideview.assets.outlook import Outlook, lookout
from tideview.assets.resource_keys import USUAL, ResourceKeys
from tideview.resources.pipeline_spec import Pipeline

EVERY_SECONDS = 600
SPEAK_UP_AT = 0.5
"""The share of the time that a table keeps its history after which unread versions are told."""


def retention_sensor(pipeline: Pipeline, keys: ResourceKeys = USUAL) -> SensorDefinition:
    """A sensor that fails, with what to do, while there is still time to do it."""

    @sensor(
        name=f"{pipeline.name}_retention",
        description=f"Fails before a source of {pipeline.name} loses versions that nobody read.",
        minimum_interval_seconds=EVERY_SECONDS,
        default_status=DefaultSensorStatus.RUNNING,
        required_resource_keys={keys.flows},
    )
    def retention(context: SensorEvaluationContext) -> SkipReason:
        outlook = lookout(pipeline, keys.store(context)).look()
        if outlook.problem:
            return SkipReason(f"the flow can't be looked at: {outlook.problem}")
        endangered = endangered_sources(outlook, datetime.now(UTC))
        if endangered:
            raise HistoryLost(
                "; ".join(endangered),
                where=f"pipeline {pipeline.name}",
                fix="tick the views that read it (the materialize button), or let the table keep "
                "more: raise delta.logRetentionDuration and delta.deletedFileRetentionDuration",
            )
        return SkipReason(_all_well(outlook))

    return retention


def endangered_sources(outlook: Outlook, now: datetime) -> list[str]:
    """Sources with unread versions of which half of their time is over, or all of it."""
    told = []
    for name, news in outlook.news.items():
        if news.is_lost:
            told.append(f"{name}: {news.why}")
        left = news.left
        if left is None or now < left.unread_since + SPEAK_UP_AT * left.kept:
            continue
        told.append(
            f"{name}: versions {left.since + 1} to {left.newest} are not read, and from "
            f"{left.until:%Y-%m-%d %H:%M} UTC on they may be gone ({left.by})"
        )
    return told


def _all_well(outlook: Outlook) -> str:
    unread = {name: news.left for name, news in outlook.news.items() if news.left is not None}
    if not unread:
        return "every version of every source that can be read was read"
    until = "; ".join(
        f"{name} until {left.until:%Y-%m-%d %H:%M} UTC" for name, left in unread.items()
    )
    return f"what is not read yet is kept: {until}"
