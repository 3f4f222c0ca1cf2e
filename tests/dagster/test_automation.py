"""Schedules, automation conditions and freshness: what Dagster's own daemon goes by. No Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from dagster import AssetKey, AssetSelection, DefaultScheduleStatus, evaluate_automation_conditions
from dagster._core.definitions.freshness import CronFreshnessPolicy, TimeWindowFreshnessPolicy

from tests.dagster.conftest import DECLARATION, VIEWS, definitions_of, write_pipeline
from tests.dagster.sensing import evaluate
from tideview.assets.names import CHECKS_TAG, COMPLETE, PIPELINE_TAG
from tideview.resources.pipeline_folder import load_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from dagster import AutomationConditionCursor, DagsterInstance

    from tideview.resources.flow_store import FlowStore
    from tideview.resources.inbox import Inbox

SETTINGS = f"""{DECLARATION}
schedules:
  tick: "*/10 * * * *"
  replay: 0 2 * * *
  maintenance: 30 3 * * 0
  timezone: Europe/Lisbon
sensor:
  every: 1m
  running: false
owners: [team:sales]
tags: {{layer: gold}}
"""
CONDITIONED = AssetSelection.assets(*(AssetKey(["till", name]) for name in VIEWS))
FRONT = {
    "totals": "/*---\nautomation: eager\nfreshness: 2h\nowners: [ada@example.org]\n---*/\n",
    "places": "/*---\nautomation: {on_cron: 0 6 * * *}\n"
    "freshness: {cron: 0 7 * * *, lookback: 90m}\ngroup: geography\n---*/\n",
}


def test_views_say_when_they_run(
    tmp_path: Path, instance: DagsterInstance, flows: FlowStore, inboxes: dict[str, Inbox]
) -> None:
    views = {name: FRONT.get(name, "") + sql for name, sql in VIEWS.items()}
    pipeline = load_pipeline(write_pipeline(tmp_path / "till", SETTINGS, views))
    defs = definitions_of(pipeline, flows)
    now = datetime(2026, 3, 1, 5, 50, tzinfo=UTC)
    cursor: AutomationConditionCursor | None = None

    def asked_for(minutes: int = 0) -> set[str]:
        """Observe the sources as the daemon does, then ask every condition."""
        nonlocal cursor, now
        now += timedelta(minutes=minutes)
        for event in evaluate(defs, instance).asset_events:
            instance.report_runless_asset_event(event)
        found = evaluate_automation_conditions(
            defs, instance, CONDITIONED, cursor=cursor, evaluation_time=now
        )
        cursor = found.cursor
        views = (AssetKey(["till", name]) for name in VIEWS)
        return {key.path[-1] for key in views if found.get_num_requested(key)}

    asked_for()
    assert asked_for() == set()  # the same versions again
    inboxes["sales"].append([(3, "ada", Decimal("4.00"))])
    assert asked_for() == {"totals"}
    assert asked_for() == set()
    inboxes["cities"].append([("cleo", "Porto")])
    assert asked_for() == set()
    assert asked_for(minutes=20) == set()  # six o'clock has come, and nothing since
    inboxes["cities"].append([("dan", "Porto")])
    assert asked_for(minutes=1) == {"places"}
    assert asked_for(minutes=1) == set()

    specs = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    totals, places = (specs[AssetKey(["till", name])] for name in ("totals", "places"))
    assert list(totals.owners) == ["team:sales", "ada@example.org"]
    assert totals.tags["layer"] == "gold"
    assert places.group_name == "geography"
    assert isinstance(totals.freshness_policy, TimeWindowFreshnessPolicy)
    assert totals.freshness_policy.fail_window.to_timedelta() == timedelta(hours=2)
    assert isinstance(places.freshness_policy, CronFreshnessPolicy)
    assert places.freshness_policy.deadline_cron == "0 7 * * *"
    assert places.freshness_policy.lower_bound_delta == timedelta(minutes=90)

    schedules = {each.name: each for each in defs.schedules or ()}
    crons = {name: each.cron_schedule for name, each in schedules.items()}
    assert crons == {
        "till_tick_schedule": "*/10 * * * *",
        "till_complete_check_schedule": "0 2 * * *",
        "till_maintenance_schedule": "30 3 * * 0",
    }
    for each in schedules.values():
        assert each.execution_timezone == "Europe/Lisbon"
        assert each.default_status == DefaultScheduleStatus.RUNNING
    night = defs.resolve_job_def("till_complete_check")
    assert night.tags[CHECKS_TAG] == COMPLETE
    assert night.asset_layer.executable_asset_keys == set()
    assert {
        key.asset_key.path[-1] for key in night.asset_layer.asset_graph.asset_check_keys
    } == set(VIEWS)
    assert defs.resolve_job_def("till_job").tags[PIPELINE_TAG] == "till"
    sensor = defs.resolve_sensor_def("till_sources")
    assert sensor.minimum_interval_seconds == 60
    assert sensor.default_status.value == "STOPPED"
