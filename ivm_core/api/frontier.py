"""How far a flow has come, read from its tick log alone: no Spark, no JVM, no lock.

For schedulers and monitors, which ask often and must not pay a Spark start to learn that there is
nothing to do. `FrontierReader` and `SourceTable` remember what they have read: asked again, they
read what is new.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ivm_core.engine.history import History
from ivm_core.engine.layout import Layout
from ivm_core.engine.opening import FORMAT
from ivm_core.store.followed import Change, FollowedTable, SourceVersion
from ivm_core.store.history_left import HistoryLeft, history_left
from ivm_core.store.location import Location
from ivm_core.store.ticklog import TickLog

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date
    from os import PathLike

__all__ = [
    "Change",
    "Frontier",
    "FrontierReader",
    "HistoryLeft",
    "SourceTable",
    "SourceVersion",
    "ViewFrontier",
    "made_on",
    "newest_version",
    "read_frontier",
]


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
    source_rows: Mapping[str, int] = field(default_factory=dict)
    """Rows of every source as of the newest tick."""


class FrontierReader:
    """The frontier of one flow, for someone who asks again and again."""

    def __init__(self, path: str | PathLike[str]) -> None:
        """Nothing is read before it is asked for."""
        self._location = Layout(Location(path)).log
        self._log: TickLog | None = None
        self._history = History()
        self._mark: object = None

    def read(self) -> Frontier:
        """The frontier as it is now; `NotAFlow` where there is no flow."""
        mark = self._mark_of_log()
        if self._log is None or mark != self._mark:
            self._log, self._history, self._mark = None, History(), mark
            self._log = TickLog.open(self._location, FORMAT)
        else:
            self._log.refresh()
        self._history.catch_up(self._log.entries[self._history.read :])
        history = self._history
        views = {name: _view(history, name) for name in history.live_views}
        return Frontier(history.tick, views, dict(history.source_rows))

    def days(self) -> dict[int, date]:
        """The logical day of every tick, in UTC; `NotAFlow` where there is no flow."""
        self.read()
        commits = self._history.commits.items()
        moments = {tick: datetime.fromisoformat(body["logical_time"]) for tick, body in commits}
        return {tick: at.astimezone(UTC).date() for tick, at in moments.items()}

    def _mark_of_log(self) -> object:
        """A mark of the log's first commit: a flow that was made again has another."""
        if not self._location.is_local:
            return None
        try:
            stat = os.stat(self._location.path / "_delta_log" / f"{0:020d}.json")
        except OSError:
            return None
        return stat.st_ino, stat.st_mtime_ns


class SourceTable:
    """A Delta table that a flow follows, for someone who asks again and again."""

    def __init__(self, table: str | PathLike[str]) -> None:
        """Nothing is read before it is asked for."""
        self._table = FollowedTable(Location(table))

    @property
    def newest(self) -> SourceVersion:
        """The newest version; `UserError` where there is no table."""
        return self._table.head()

    def change(self, since: SourceVersion, until: SourceVersion) -> Change:
        """What kind of change the versions after `since` make; `HistoryLost` if they are gone."""
        return self._table.classify(since, until)

    def history_left(self, since: int) -> HistoryLeft | None:
        """How long what comes after a version is sure to stay; None where nothing does."""
        return history_left(self._table, since)


def read_frontier(path: str | PathLike[str]) -> Frontier:
    """The frontier of the flow at a path or URI; `NotAFlow` where there is none."""
    return FrontierReader(path).read()


def made_on(path: str | PathLike[str]) -> date | None:
    """The day, in UTC, on which a local flow was made; None where there is none, or elsewhere."""
    log = Layout(Location(path)).log
    if not log.is_local:
        return None
    file = log.path / "_delta_log" / f"{0:020d}.json"
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        infos = (json.loads(line).get("commitInfo", {}) for line in lines)
        # the file's own time is that of a copy
        made = next(info["timestamp"] for info in infos if "timestamp" in info)
        return datetime.fromtimestamp(made / 1000, UTC).date()
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError, StopIteration):
        return datetime.fromtimestamp(file.stat().st_mtime, UTC).date()


def newest_version(table: str | PathLike[str]) -> SourceVersion:
    """The newest version of a Delta table, from its log; `UserError` where there is no table."""
    return SourceTable(table).newest


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
