"""Replays by day, upkeep and observations, as runs that someone asks for in the UI."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from dagster import AssetKey, DagsterEventType

from ivm_core import IncrementalFlow
from tests.dagster.running import Run, checks, observed
from tideview.assets.names import REPAIR, REPLAY_TAG

if TYPE_CHECKING:
    from dagster import (
        AssetMaterialization,
        DagsterInstance,
        Definitions,
        ExecuteInProcessResult,
    )

    from tideview.resources.flow_store import FlowStore
    from tideview.resources.inbox import Inbox
    from tideview.resources.pipeline_spec import Pipeline

pytestmark = pytest.mark.usefixtures("spark")
REPLAY = AssetKey(["till", "history", "replay"])


def test_a_range_of_days_is_one_run_that_compares_or_repairs(
    run: Run,
    defs: Definitions,
    instance: DagsterInstance,
    flows: FlowStore,
    pipeline: Pipeline,
    inboxes: dict[str, Inbox],
) -> None:
    def replay(**tags: str) -> ExecuteInProcessResult:
        today = datetime.now(UTC).date().isoformat()
        ranged = {
            "dagster/asset_partition_range_start": today,
            "dagster/asset_partition_range_end": today,
        }
        job = defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection={REPLAY})
        return job.execute_in_process(instance=instance, tags={**ranged, **tags})

    nothing = replay()
    assert nothing.success
    assert "no ticks" in (checks(nothing)["replay", "same_digests"].description or "")

    assert run.only_ticks().success
    inboxes["sales"].append([(3, "ada", Decimal("4.00"))])
    assert run.only_ticks("totals", "big").success
    for first, last in ((1, 3), (3, 0), (2, 1)):
        config = {"from_tick": first, "to_tick": last}
        job = defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection={REPLAY})
        wrong = job.execute_in_process(
            instance=instance,
            partition_key=datetime.now(UTC).date().isoformat(),
            run_config={"ops": {"till_replay": {"config": config}}},
            raise_on_error=False,
        )
        [failed] = wrong.get_step_failure_events()
        error = failed.step_failure_data.user_failure_data
        assert error is not None
        assert "are not all in this flow" in (error.description or "")
        assert "give ticks from 1 to 2" in (error.description or "")
    before = flows.flow_path(pipeline)
    for _ in range(2):  # the same range twice is harmless
        result = replay()
        assert result.success
        verdict = checks(result)["replay", "same_digests"]
        assert verdict.passed
        assert verdict.metadata["deltas"].value == 5
        [day] = days(result)
        assert day.metadata["ticks"].value == 2
        assert day.metadata["differing_deltas"].value == 0
        assert day.metadata["range_to_tick"].value == 2

    [first, *_] = sorted((before / "views" / "totals" / "rows").glob("*.parquet"))
    first.unlink()
    repaired = replay(**{REPLAY_TAG: REPAIR})
    assert repaired.success
    [day] = days(repaired)
    assert "views/totals/rows" in str(day.metadata["repaired"].value)
    assert all(check.passed for check in run.only_checks().values())

    upkeep = defs.resolve_job_def("till_maintenance").execute_in_process(instance=instance)
    assert upkeep.success
    with IncrementalFlow.open(before.parent / "restored") as restored:
        done = restored.restore(before.parent / "checkpoints")
        assert done.tick == 2

    source = AssetKey(["till", "sales"])
    job = defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection={source})
    seen = observed(job.execute_in_process(instance=instance))
    assert set(seen) == {"sales"}
    assert seen["sales"].metadata["version"].value == inboxes["sales"].version.version


def days(result: ExecuteInProcessResult) -> list[AssetMaterialization]:
    return [
        event.step_materialization_data.materialization
        for event in result.all_events
        if event.event_type == DagsterEventType.ASSET_MATERIALIZATION
    ]
