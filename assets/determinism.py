"""The newest ticks again, every statement on its rows in another order and in other partitions.

A flow of its own is hydrated at the tick before, and ticked with what was recorded. The digests
of its deltas and rows must be the recorded ones. One such replay serves all views of a run; where
it can't be made, every view has one of its own, so that it says what is in its own way.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dagster import MetadataValue

from ivm_core import UserError
from tideview.assets.markdown import rows_table
from tideview.assets.verdicts import Asked, not_checked, verdict

if TYPE_CHECKING:
    from dagster import AssetCheckResult

    from ivm_core.engine.replaying import Replay, ReplayedDelta

NAME = "determinism"
REPEATED_TICKS = 10
"""A view that has seen none of the newest ones is left for when it is ticked."""


def determinism(asked: Asked, view: str) -> AssetCheckResult:
    """Repeat the newest tick that a view has seen."""
    tick = asked.frontier.views[view].tick
    left = _left_out(asked, view)
    if left:
        metadata = {"tick": tick, "recomputed": False}
        return verdict(asked.pipeline, view, NAME, passed=True, told=left, metadata=metadata)
    replay, delta = _repeated(asked, view)
    if delta is None:
        stopped = replay.first_difference
        why = f": tick {stopped.tick} can't be" if stopped is not None else ""
        return not_checked(asked.pipeline, view, NAME, f"tick {tick} was not repeated{why}")
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


def _left_out(asked: Asked, view: str) -> str:
    """Why a view is not repeated; empty for one that is."""
    policy = asked.policy(view)
    tick, newest = asked.frontier.views[view].tick, asked.frontier.tick
    if newest - tick >= REPEATED_TICKS:
        return f"left out: tick {tick} is {newest - tick} ticks ago; materialize the view"
    if asked.rows_below(view) > policy.complete_below and not asked.is_complete:
        return f"left for the complete check: more than {policy.complete_below} rows are read"
    return ""


def _repeated(asked: Asked, view: str) -> tuple[Replay, ReplayedDelta | None]:
    """The newest tick of a view again: with the others where that can be, else by itself."""
    if not asked.is_repeated:
        asked.is_repeated = True
        with suppress(UserError):  # of whatever view: each says its own
            every = [each for each in asked.repeated if not _left_out(asked, each)]
            asked.replay = _replayed(asked, every)
    delta = None if asked.replay is None else _delta(asked, view, asked.replay)
    if asked.replay is not None and delta is not None:
        return asked.replay, delta
    replay = _replayed(asked, [view])
    return replay, _delta(asked, view, replay)


def _delta(asked: Asked, view: str, replay: Replay) -> ReplayedDelta | None:
    tick = asked.frontier.views[view].tick
    return next((each for each in replay.deltas if (each.view, each.tick) == (view, tick)), None)


def _replayed(asked: Asked, views: list[str]) -> Replay:
    """The newest ticks, from the oldest that any of these views asks for on."""
    first = min(asked.frontier.views[each].tick for each in views)
    return asked.flow.replay(first, asked.frontier.tick, hydrated=True, scattered=True, views=views)
