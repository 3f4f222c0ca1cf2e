"""What a flow is and how far it has come, from logs alone: no Spark, no JVM, no lock."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ivm_core.engine.catalog import Catalog
from ivm_core.engine.definitions import DELTA
from ivm_core.engine.following import warnings
from ivm_core.engine.history import History
from ivm_core.engine.layout import Layout
from ivm_core.engine.opening import FORMAT
from ivm_core.engine.pinning import FollowedTables
from ivm_core.model.errors import IvmError
from ivm_core.store.followed import FollowedTable
from ivm_core.store.location import Location
from ivm_core.store.ticklog import TickLog

if TYPE_CHECKING:
    from os import PathLike

    from ivm_core.store.ticklog import Entry


@dataclass(frozen=True)
class SourceStatus:
    """One source."""

    name: str
    kind: str
    """`fed` or `delta`."""
    rows: int
    table: str = ""
    read_version: int | None = None
    """A followed table: the version that the newest tick has read."""
    newest_version: int | None = None
    problem: str = ""
    """Why the followed table can't be looked at."""
    warning: str = ""
    """When the followed table may let go of what the flow has yet to read."""

    @property
    def has_news(self) -> bool:
        """Whether a tick would find something new in a followed table."""
        return self.newest_version is not None and self.newest_version != self.read_version


@dataclass(frozen=True)
class ViewStatus:
    """One view."""

    name: str
    tick: int
    """The newest tick that it has seen; 0 before it is hydrated."""
    rows: int
    digest: str
    require: str
    fingerprint: str
    duration_ms: float | None
    """What its last tick took."""
    way: str
    """How its last tick computed its rows."""


@dataclass(frozen=True)
class FlowStatus:
    """A flow."""

    flow: str
    tick: int
    logical_time: str | None
    committed_at: str | None
    pending: int | None
    """A tick that was begun and is neither committed nor aborted: killed, or still running."""
    last_abort: str
    """Why the newest tick was aborted, where nothing was committed since."""
    sources: tuple[SourceStatus, ...]
    views: tuple[ViewStatus, ...]

    @property
    def is_up_to_date(self) -> bool:
        """Whether a tick would find nothing to do."""
        is_behind = any(view.tick < self.tick or not view.tick for view in self.views)
        has_news = any(source.has_news or source.problem for source in self.sources)
        return self.pending is None and not is_behind and not has_news

    def to_dict(self) -> dict[str, Any]:
        """Everything, in types that JSON has."""
        content = asdict(self)
        for each, source in zip(content["sources"], self.sources, strict=True):
            each["has_news"] = source.has_news
        return {"format": 1, **content, "up_to_date": self.is_up_to_date}


def read_status(path: str | PathLike[str]) -> FlowStatus:
    """The status of the flow at a path or URI; `NotAFlow` where there is none."""
    root = Location(path)
    log = TickLog.open(Layout(root).log, FORMAT)
    history = History()
    history.catch_up(log.entries)
    ended = [each for each in log.entries if each.kind in ("commit", "abort")]
    committed = [each for each in ended if each.kind == "commit"]
    body = history.commits.get(history.tick, {})
    return FlowStatus(
        flow=root.uri,
        tick=history.tick,
        logical_time=body.get("logical_time"),
        committed_at=committed[-1].at.isoformat() if committed else None,
        pending=None if history.pending is None else history.pending.tick,
        last_abort=_abort(ended),
        sources=_sources(history),
        views=tuple(_view(history, name) for name in history.live_views),
    )


def _abort(ended: list[Entry]) -> str:
    return ended[-1].body["error"] if ended and ended[-1].kind == "abort" else ""


def _sources(history: History) -> tuple[SourceStatus, ...]:
    told = warnings(history, Catalog(history), FollowedTables(history))
    found = [_source(history, name) for name in history.sources]
    return tuple(
        each if each.problem else replace(each, warning=told.get(each.name, "")) for each in found
    )


def _source(history: History, name: str) -> SourceStatus:
    source = history.sources[name]
    rows = history.source_rows.get(name, 0)
    if source.kind != DELTA:
        return SourceStatus(name, source.kind, rows)
    table = source.options["table"]
    pin = history.pins.get(name)
    read = None if pin is None else int(pin["version"])
    try:
        newest = FollowedTable(Location(table)).head().version
    except IvmError as error:
        problem = str(error).splitlines()[0]
        return SourceStatus(name, source.kind, rows, table, read, problem=problem)
    return SourceStatus(name, source.kind, rows, table, read, newest)


def _view(history: History, name: str) -> ViewStatus:
    state, definition = history.states[name], history.views[name]
    last = history.commits.get(state.upto, {}).get("views", {}).get(name, {})
    return ViewStatus(
        name,
        state.upto,
        state.rows,
        state.digest,
        definition.require,
        definition.fingerprint,
        last.get("duration_ms"),
        last.get("ways", {}).get(name, ""),
    )
