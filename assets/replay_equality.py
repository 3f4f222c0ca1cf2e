"""A view beside its query, run from scratch on the sources that the view has seen.

A small view is compared whole. Of a large one a shard of its keys is: which one follows from the
tick, so that all have their turn, and how many had it lately is shown. A run that is tagged
complete, as the nightly one is, compares everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dagster import AssetCheckKey, DagsterEventType, IntMetadataValue, MetadataValue

from tideview.assets.markdown import rows_table
from tideview.assets.names import asset_key
from tideview.assets.verdicts import Asked, verdict

if TYPE_CHECKING:
    from dagster import AssetCheckResult

NAME = "replay_equality"


def replay_equality(asked: Asked, view: str) -> AssetCheckResult:
    """Compare all of a view, or a shard of it."""
    policy = asked.policy(view)
    is_whole = asked.is_complete or asked.rows_below(view) <= policy.complete_below
    metadata: dict[str, Any] = {"coverage": 1.0}
    shard = None
    if not is_whole:
        lately = _compared_lately(asked, view, policy.shards)
        part = next_shard(asked.frontier.views[view].tick, policy.shards, lately)
        shard = (part, policy.shards)
        covered = len({*lately, part})
        metadata = {
            "coverage": 1 / policy.shards,
            "shard": part,
            "shards": policy.shards,
            "shards_compared_lately": covered,
        }
    found = asked.flow.check(view, shard=shard)
    of = "" if shard is None else f" in shard {shard[0]} of {shard[1]}"
    differing = f"{found.missing} rows are missing, {found.extra} are too many{of}"
    return verdict(
        asked.pipeline,
        view,
        NAME,
        passed=found.equal,
        told=f"equal at tick {found.tick}{of}" if found.equal else differing,
        metadata={
            "tick": found.tick,
            "rows": found.rows,
            "missing": found.missing,
            "extra": found.extra,
            "differing_rows": MetadataValue.md(rows_table(found.sample) or "none"),
            **metadata,
        },
    )


def next_shard(tick: int, shards: int, lately: set[int]) -> int:
    """The tick's own shard, or the next one that was not compared lately."""
    turn = [(tick + step) % shards for step in range(shards)]
    return next((part for part in turn if part not in lately), turn[0])


def _compared_lately(asked: Asked, view: str, shards: int) -> set[int]:
    """The shards that the last checks of the view have compared; a whole round is never full."""
    key = AssetCheckKey(asset_key(asked.pipeline, view), NAME)
    # one more than a round has: the newest is the one that is being made
    records = asked.instance.event_log_storage.get_asset_check_execution_history(key, limit=shards)
    events = [record.event.dagster_event for record in records if record.event]
    made = [
        event.asset_check_evaluation_data.metadata.get("shard")
        for event in events
        if event and event.event_type == DagsterEventType.ASSET_CHECK_EVALUATION
    ]
    known = (part.value for part in made[: shards - 1] if isinstance(part, IntMetadataValue))
    return {part for part in known if part is not None}
