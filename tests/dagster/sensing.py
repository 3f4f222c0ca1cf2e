"""Evaluates the pipeline's sensor as Dagster's daemon does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagster import build_sensor_context

if TYPE_CHECKING:
    from dagster import DagsterInstance, Definitions, RunRequest
    from dagster._core.definitions.sensor_definition import SensorExecutionData

SENSOR = "till_sources"


def evaluate(defs: Definitions, instance: DagsterInstance) -> SensorExecutionData:
    sensor = defs.resolve_sensor_def(SENSOR)
    given = {key: (defs.resources or {})[key] for key in sensor.required_resource_keys}
    with build_sensor_context(instance, definitions=defs, resources=given) as context:
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
