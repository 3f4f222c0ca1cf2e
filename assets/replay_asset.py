"""A pipeline's history replayed: an asset with a partition a day, for backfills from the UI.

Views themselves have no partitions: a view is one thing as of its newest tick. What can be done
again by day is the ticks of that day. A range of days is one run; it compares what the ticks give
now with what they recorded, and changes nothing. So the same range twice is harmless.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime

from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    BackfillPolicy,
    Config,
    DailyPartitionsDefinition,
    MaterializeResult,
    MetadataValue,
    multi_asset,
)
from pydantic import Field

from ivm_core import IncrementalFlow, NotAFlow, OutOfRange
from ivm_core.api.frontier import FrontierReader, made_on
from ivm_core.engine.replaying import Replay
from tideview.assets.failures import told_in_our_words
from tideview.assets.markdown import rows_table
from tideview.assets.names import REPAIR, REPLAY_TAG, asset_key, replay_key
from tideview.assets.resource_keys import USUAL, ResourceKeys
from tideview.resources.flow_store import FlowStore
from tideview.resources.pipeline_spec import Pipeline

SAME_DIGESTS = "same_digests"
DESCRIPTION = """The ticks of a day, run again in a flow of their own and compared digest by digest.

Materialize a range of days: it is one run. The tag `tideview/replay: repair` (or `repair: true` in
the run's config) first makes lost and damaged files of the flow again.
"""


class ReplayConfig(Config):
    """What a run of the replay does."""

    repair: bool = Field(
        default=False, description="Make lost and damaged files again before comparing."
    )
    from_tick: int = Field(default=0, description="The first tick, instead of the days; 0: days.")
    to_tick: int = Field(default=0, description="The last tick, instead of the days; 0: days.")


def replay_asset(
    pipeline: Pipeline, flows: FlowStore | None = None, keys: ResourceKeys = USUAL
) -> AssetsDefinition:
    """The asset; its first day is the one on which the flow in a store was made."""
    key = replay_key(pipeline)
    first = first_day(pipeline, flows or FlowStore())

    @multi_asset(
        name=f"{pipeline.name}_replay",
        specs=[
            AssetSpec(
                key,
                deps=_last_views(pipeline),
                group_name=pipeline.name,
                description=DESCRIPTION,
                kinds={"spark", "delta"},
            )
        ],
        check_specs=[
            AssetCheckSpec(
                SAME_DIGESTS, asset=key, description="Every tick gave the same digests again."
            )
        ],
        partitions_def=DailyPartitionsDefinition(first.isoformat(), end_offset=1),
        backfill_policy=BackfillPolicy.single_run(),
        required_resource_keys=keys.both,
    )
    def replay(
        context: AssetExecutionContext, config: ReplayConfig
    ) -> Iterator[MaterializeResult[None]]:
        flows, spark = keys.store(context), keys.session(context)
        with told_in_our_words():
            days = _days(pipeline, flows)
            wanted = _ticks(context, config, days)

        def progress(tick: int, last: int) -> None:
            context.log.info(f"tick {tick}, up to {last}")

        path = flows.flow_path(pipeline)
        repaired: tuple[str, ...] = ()
        found: Replay | None = None
        with told_in_our_words():
            if config.repair or context.run.tags.get(REPLAY_TAG) == REPAIR:
                with IncrementalFlow.open(path, spark.session(pipeline.spark)) as flow:
                    repaired = flow.repair(progress=progress).traces
                context.log.info(f"made again: {', '.join(repaired) or 'nothing was damaged'}")
            if wanted:
                with flows.read(pipeline, spark.session(pipeline.spark)) as flow:
                    found = flow.replay(wanted[0], wanted[-1], hydrated=True, progress=progress)
        if found is not None:
            _tell_days(context, days, found)
        yield MaterializeResult(
            asset_key=key,
            metadata={
                "range_from_tick": wanted[0] if wanted else 0,
                "range_to_tick": wanted[-1] if wanted else 0,
                "range_ticks": len(wanted),
                "range_deltas": len(found.deltas) if found else 0,
                "repaired": MetadataValue.md("\n".join(f"- `{each}`" for each in repaired) or "-"),
            },
            check_results=[_verdict(wanted, found)],
        )

    return replay


def _last_views(pipeline: Pipeline) -> list[AssetKey]:
    """The views that no other reads: through them it comes after all, with few lines drawn."""
    read = {name for view in pipeline.views for name in view.inputs}
    return [asset_key(pipeline, view.name) for view in pipeline.views if view.name not in read]


def first_day(pipeline: Pipeline, flows: FlowStore) -> date:
    """The day on which the flow in a store was made; today where there is none."""
    return made_on(flows.flow_path(pipeline)) or datetime.now(UTC).date()


def _days(pipeline: Pipeline, flows: FlowStore) -> dict[int, date]:
    try:
        return FrontierReader(flows.flow_path(pipeline)).days()
    except NotAFlow:
        return {}


def _ticks(
    context: AssetExecutionContext, config: ReplayConfig, days: dict[int, date]
) -> list[int]:
    """The ticks that are asked for, by number or by day, in order.

    Numbers that aren't there are `OutOfRange`.
    """
    if config.from_tick or config.to_tick:
        newest = max(days, default=0)
        first, last = config.from_tick or 1, config.to_tick or newest
        if not 1 <= first <= last <= newest:
            raise OutOfRange(
                f"ticks {first} to {last} are not all in this flow",
                where="the run's config, from_tick and to_tick",
                fix=f"give ticks from 1 to {newest}" if newest else "materialize the views first",
            )
        return [tick for tick in sorted(days) if first <= tick <= last]
    asked = context.partition_key_range
    since, until = date.fromisoformat(asked.start), date.fromisoformat(asked.end)
    return [tick for tick, day in sorted(days.items()) if since <= day <= until]


def _tell_days(context: AssetExecutionContext, days: dict[int, date], found: Replay) -> None:
    """What each day's partition is told of its own ticks."""
    for day in context.partition_keys:
        own = [each for each in found.deltas if days[each.tick].isoformat() == day]
        context.add_asset_metadata(
            {
                "ticks": len({each.tick for each in own}),
                "deltas": len(own),
                "differing_deltas": sum(not each.equal for each in own),
            },
            partition_key=day,
        )


def _verdict(wanted: list[int], found: Replay | None) -> AssetCheckResult:
    if found is None:
        told = "there are no ticks in this range"
        return AssetCheckResult(passed=True, check_name=SAME_DIGESTS, description=told)
    first = found.first_difference
    told = f"{len(wanted)} ticks, {len(found.deltas)} deltas, all digests equal"
    if first is not None:
        why = first.problem or f"recorded {first.recorded}, replayed {first.replayed}"
        told = f"tick {first.tick}, {first.view}: {why}"
    rows = first.sample if first is not None else ()
    return AssetCheckResult(
        passed=found.equal,
        check_name=SAME_DIGESTS,
        severity=AssetCheckSeverity.ERROR,
        description=told,
        metadata={
            "from_tick": wanted[0],
            "to_tick": wanted[-1],
            "deltas": len(found.deltas),
            "differing_rows": MetadataValue.md(rows_table(rows) or "none"),
        },
    )
