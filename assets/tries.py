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
    from dagster import DagsterInstance

    from tideview.resources.pipeline_spec import Pipeline

RUN_KEY_TAG = "dagster/run_key"
WAITS = (60.0, 300.0, 1500.0)
"""Seconds after each failure before the next try; after the last one there is none."""


def next_try(instance: DagsterInstance, pipeline: Pipeline, run_key: str) -> tuple[str, str]:
    """The key of a run to ask for, or why there is none: one of the two is empty."""
    key, last = run_key, ""
    for number, wait in enumerate((*WAITS, None), 2):
        tried = RunsFilter(job_name=tick_job(pipeline), tags={RUN_KEY_TAG: key})
        records = instance.get_run_records(tried, limit=1)
        if not records:
            return key, ""
        run = records[0].dagster_run
        last = f"run {run.run_id} has tried this state of the sources"
        if run.status is DagsterRunStatus.CANCELED:
            return "", f"{last}, and was cancelled; materialize the views to go on"
        if run.status is not DagsterRunStatus.FAILURE:
            return "", f"{last}, and ended as {run.status.value}; materialize what is behind"
        if wait is None:
            break
        left = wait - (time.time() - (records[0].end_time or 0.0))
        if left > 0:
            return "", f"{last}, and failed; it is tried again in {left:.0f} s"
        key = f"{run_key}, try {number}"
    return "", (
        f"{last}, and failed like the {len(WAITS)} before it; nothing is asked for until something "
        "changes, in the sources or in what is declared; or materialize the views"
    )
