"""How far a flow has come, read from its tick log alone: no Spark, no JVM, no lock.

For schedulers and monitors, which ask often and must not pay a Spark start to learn that there is
nothing to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.engine.history import History
from ivm_core.engine.layout import Layout
from ivm_core.engine.opening import FORMAT
from ivm_core.store.followed import FollowedTable, SourceVersion
from ivm_core.store.location import Location
from ivm_core.store.ticklog import TickLog

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

__all__ = ["Frontier", "SourceVersion", "ViewFrontier", "newest_version", "read_frontier"]


@dataclass(frozen=True)
class ViewFrontier:
    """One view as of the newest tick that has seen it."""

    tick: int
    """0 before the view is hydrated."""
    versions: Mapping[str, SourceVersion]
    """Followed sources: the version of each that the view has seen, whether it reads it or not."""
    rows: int
    digest: str
    schema: str
    fingerprint: str


@dataclass(frozen=True)
class Frontier:
    """A flow as its tick log tells it."""

    tick: int
    views: Mapping[str, ViewFrontier]


def read_frontier(path: str | PathLike[str]) -> Frontier:
    """The frontier of the flow at a path or URI; `NotAFlow` where there is none."""
    log = TickLog.open(Layout(Location(path)).log, FORMAT)
    history = History()
    history.catch_up(log.entries)
    return Frontier(history.tick, {name: _view(history, name) for name in history.live_views})


def newest_version(table: str | PathLike[str]) -> SourceVersion:
    """The newest version of a Delta table, from its log; `UserError` where there is no table."""
    return FollowedTable(Location(table)).head()


def _view(history: History, name: str) -> ViewFrontier:
    state = history.states[name]
    definition = history.views[name]
    pins = history.pins_at.get(state.upto, {})
    return ViewFrontier(
        state.upto,
        {each: SourceVersion(pin["table_id"], int(pin["version"])) for each, pin in pins.items()},
        state.rows,
        state.digest,
        definition.schema,
        definition.fingerprint,
    )
