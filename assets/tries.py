"""Runs that a sensor asks for again: a run that failed is tried a few more times, and then told of.

Dagster drops a request whose run key was used, without a word. So the sensor looks itself: whether
a state of the sources was tried, how that ended, and when it is worth another try. What failed for
a writer in its way, a process that was killed or a table that was mended since goes on by itself;
what fails alike each time ends with a reason.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dagster import DagsterRunStatus, RunsFilter

from tideview.assets.names import tick_job

if TYPE_CHECKING:
    from dagster import DagsterInstance, RunRecord

    from tideview.resources.pipeline_spec import Pipeline

RUN_KEY_TAG = "dagster/run_key"
WAITS = (60.0, 300.0, 1500.0)
"""Seconds after each failure before the next try; after the last one there is none."""


def next_try(instance: DagsterInstance, pipeline: Pipeline, run_key: str) -> tuple[str, str]:
    """The key of a run to ask for, or why there is none: one of the two is empty."""
    keys = [run_key, *(f"{run_key}, try {number}" for number in range(2, 2 + len(WAITS)))]
    record = None
    for key, wait in zip(keys, (0.0, *WAITS), strict=True):
        tried = RunsFilter(job_name=tick_job(pipeline), tags={RUN_KEY_TAG: key})
        records = instance.get_run_records(tried, limit=1)
        if not records:
            why_not = "" if record is None else _why_not(record, wait)
            return ("", why_not) if why_not else (key, "")
        record = records[0]
    why_not = _why_not(record, None) if record is not None else ""
    return "", why_not


def _why_not(record: RunRecord, wait: float | None) -> str:
    """Why there is no other try after a run; empty where it is time for one."""
    run = record.dagster_run
    told = f"run {run.run_id} has tried this state of the sources"
    if run.status is DagsterRunStatus.CANCELED:
        return f"{told}, and was cancelled; materialize the views to go on"
    if run.status is not DagsterRunStatus.FAILURE:
        return f"{told}, and ended as {run.status.value}; materialize what is behind"
    if wait is None:
        return (
            f"{told}, and failed like the {len(WAITS)} before it; nothing is asked for until "
            "something changes, in the sources or in what is declared; or materialize the views"
        )
    left = wait - (time.time() - (record.end_time or 0.0))
    return f"{told}, and failed; it is tried again in {left:.0f} s" if left > 0 else ""
