"""Evaluates the pipeline's sensor as Dagster's daemon does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagster import build_sensor_context

if TYPE_CHECKING:
    from dagster import DagsterInstance, Definitions, RunRequest
    from dagster._core.definitions.sensor_definition import SensorExecutionData

SENSOR = "till_sources"
RETENTION = "till_retention"


def evaluate(
    defs: Definitions, instance: DagsterInstance, name: str = SENSOR, cursor: str | None = None
) -> SensorExecutionData:
    sensor = defs.resolve_sensor_def(name)
    given = {key: (defs.resources or {})[key] for key in sensor.required_resource_keys}
    with build_sensor_context(
        instance, definitions=defs, resources=given, cursor=cursor
    ) as context:
        return sensor.evaluate_tick(context)


def request(defs: Definitions, instance: DagsterInstance) -> RunRequest:
    found = evaluate(defs, instance)
    assert found.run_requests, found.skip_message
    [asked] = found.run_requests
    return asked


def reason(defs: Definitions, instance: DagsterInstance) -> str:
    found = evaluate(defs, instance)
    assert not found.run_requests
    assert found.skip_message is not None
    return found.skip_message
