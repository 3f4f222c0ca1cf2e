"""The newest ticks again, every statement on its rows in another order and in other partitions.

A flow of its own is hydrated at the tick before, and ticked with what was recorded. The digests
of its deltas and rows must be the recorded ones. One such replay serves all views of a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagster import MetadataValue

from tideview.assets.markdown import rows_table
from tideview.assets.verdicts import Asked, verdict

if TYPE_CHECKING:
    from dagster import AssetCheckResult

    from ivm_core.engine.replaying import Replay

NAME = "determinism"
REPEATED_TICKS = 10
"""A view that has seen none of the newest ones is left for when it is ticked."""


def determinism(asked: Asked, view: str) -> AssetCheckResult:
    """Repeat the newest tick that a view has seen."""
    policy = asked.policy(view)
    tick, newest = asked.frontier.views[view].tick, asked.frontier.tick
    left = ""
    if newest - tick >= REPEATED_TICKS:
        left = f"left out: tick {tick} is {newest - tick} ticks ago; materialize the view"
    elif asked.rows_below(view) > policy.complete_below and not asked.is_complete:
        left = f"left for the complete check: more than {policy.complete_below} rows are read"
    if left:
        metadata = {"tick": tick, "recomputed": False}
        return verdict(asked.pipeline, view, NAME, passed=True, told=left, metadata=metadata)
    replay = _replayed(asked, tick)
    delta = next(each for each in replay.deltas if each.view == view and each.tick == tick)
    # a difference upstream comes before the one that it makes here
    first = replay.first_difference
    rows = delta.sample or (first.sample if first is not None and not delta.equal else ())
    same = f"tick {tick} has the same digests in another order and partitioning"
    other = delta.problem or f"tick {tick} has other digests when rows come in another order"
    return verdict(
        asked.pipeline,
        view,
        NAME,
        passed=delta.equal,
        told=same if delta.equal else other,
        metadata={
            "tick": tick,
            "recomputed": True,
            "recorded_digest": delta.recorded,
            "repeated_digest": delta.replayed,
            "differing_rows": MetadataValue.md(rows_table(rows) or "none"),
        },
    )


def _replayed(asked: Asked, tick: int) -> Replay:
    """A replay that has the tick; the oldest tick that any view of the flow asks for begins it."""
    if tick not in asked.replays:
        newest = asked.frontier.tick
        ticks = [view.tick for view in asked.frontier.views.values()]
        first = min(each for each in ticks if each and newest - each < REPEATED_TICKS)
        found = asked.flow.replay(first, newest, hydrated=True, scattered=True)
        asked.replays |= dict.fromkeys(range(first, newest + 1), found)
    return asked.replays[tick]
