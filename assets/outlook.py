"""A pipeline's sources beside what its views have seen of them, from logs alone: no Spark.

For every source one word on what is new since the view that has seen least of it:

    nothing        no newer version, or newer ones that change no row
    insert-only    rows came, none went
    changed        rows came and went
    replaced       another table is in its place, or its columns changed: views can't go on
    unreadable     it can't be looked at; `why` says why
    new            no view has read it yet
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ivm_core import HistoryLost, IvmError, NotAFlow
from ivm_core.api.frontier import Frontier, FrontierReader, HistoryLeft, SourceTable, SourceVersion
from tideview.assets.patience import Patience

if TYPE_CHECKING:
    from collections.abc import Callable

    from tideview.resources.flow_store import FlowStore
    from tideview.resources.pipeline_spec import Pipeline

SECONDS = 10.0
"""How long a look may take."""
IDLE = timedelta(hours=12)
"""Versions that change no row wait so long; then a tick reads past them, before they are gone."""
KINDS = {"insert_only": "insert-only", "schema_changed": "replaced"}
USABLE = ("nothing", "insert-only", "changed", "new")
THE_FLOW = "\0the flow"


@dataclass(frozen=True)
class News:
    """What is new in one source."""

    kind: str
    newest: SourceVersion | None = None
    since: SourceVersion | None = None
    why: str = ""
    is_lost: bool = False
    """Whether it is unreadable because versions that nobody has read are gone."""
    left: HistoryLeft | None = None
    """What nobody has read yet, and how long it is sure to stay."""

    @property
    def is_worth_a_tick(self) -> bool:
        """Whether views that have not seen it are to be ticked for it."""
        if self.kind != "nothing":
            return self.kind in USABLE
        return self.left is not None and datetime.now(UTC) - self.left.unread_since > IDLE

    def __str__(self) -> str:
        if self.newest is None or self.since is None or self.why:
            return f"{self.kind}{f' ({self.why})' if self.why else ''}"
        return f"{self.kind} ({self.since.version} → {self.newest.version})"


@dataclass
class Outlook:
    """What a look at a pipeline found."""

    tick: int = 0
    meaning: str = ""
    """A digest of what a run would be made from."""
    news: dict[str, News] = field(default_factory=dict)
    behind: list[str] = field(default_factory=list)
    """Views that lack something their sources have, and can be ticked."""
    stuck: dict[str, str] = field(default_factory=dict)
    """Views that can't be, and the source that is why."""
    problem: str = ""
    """Why the flow itself can't be looked at."""

    @property
    def run_key(self) -> str:
        """One run for one state of the sources, of the flow and of what is declared."""
        newest = {name: each.newest for name, each in sorted(self.news.items()) if each.newest}
        versions = [f"{name}@{v.table_id[:8]}.{v.version}" for name, v in newest.items()]
        stuck = f" without {' '.join(sorted(self.stuck))}" if self.stuck else ""
        return f"after tick {self.tick}: {' '.join(versions)}{stuck} by {self.meaning}"

    def told(self, *kinds: str) -> str:
        """The news in a line, those of some kinds; without any, all but `nothing`."""
        wanted = tuple(kinds) or ("insert-only", "changed", "new", "replaced", "unreadable")
        return "; ".join(f"{n}: {each}" for n, each in self.news.items() if each.kind in wanted)


class Lookout:
    """Looks at one pipeline again and again, and remembers what it has read."""

    def __init__(self, pipeline: Pipeline, flows: FlowStore, seconds: float = SECONDS) -> None:
        """Nothing is looked at yet."""
        self._pipeline = pipeline
        self._meaning = _meaning(pipeline)
        self._flow = FrontierReader(flows.flow_path(pipeline))
        self._tables = {name: SourceTable(place) for name, place in flows.tables(pipeline).items()}
        self._patience: Patience[object] = Patience(seconds)
        self._lock = threading.Lock()

    def is_for(self, pipeline: Pipeline) -> bool:
        """Whether it looks at this pipeline as it is declared now."""
        return self._pipeline == pipeline

    def look(self) -> Outlook:
        """Compare the newest version of every source with the frontier of every view."""
        with self._lock:
            found = self._patience.ask({THE_FLOW: self._flow.read})[THE_FLOW]
            if isinstance(found, NotAFlow):
                found = Frontier(0, {})
            if not isinstance(found, Frontier):
                return Outlook(problem=_words(found))
            outlook = Outlook(found.tick, self._meaning)
            answers = self._patience.ask(
                {name: self._question(name, found) for name in self._tables}
            )
        for name, answer in answers.items():
            is_lost = isinstance(answer, HistoryLost)
            unreadable = News("unreadable", why=_words(answer), is_lost=is_lost)
            outlook.news[name] = answer if isinstance(answer, News) else unreadable
        self._judge(outlook, found)
        return outlook

    def _question(self, name: str, frontier: Frontier) -> Callable[[], object]:
        readers = [
            v.name for v in self._pipeline.views if name in self._pipeline.sources_of(v.name)
        ]
        seen = [
            frontier.views[view].versions.get(name) for view in readers if view in frontier.views
        ]
        known = [version for version in seen if version is not None]
        oldest = min(known, key=lambda version: version.version, default=None)
        table = self._tables[name]

        def ask() -> News:
            newest = table.newest
            if oldest is None:
                return News("new", newest)
            if any(version.table_id != newest.table_id for version in known):
                return News("replaced", newest, oldest, "another table is in its place")
            if oldest.version == newest.version:
                return News("nothing", newest, oldest)
            change = table.change(oldest, newest)
            left = table.history_left(oldest.version)
            if change.stopped_by and change.until == oldest.version:
                return News("replaced", newest, oldest, change.stopped_by, left=left)
            return News(
                KINDS.get(change.kind, change.kind), newest, oldest, change.stopped_by, left=left
            )

        return ask

    def _judge(self, outlook: Outlook, frontier: Frontier) -> None:
        """Which views lack something, and which of them can be ticked."""
        for view in self._pipeline.views:
            sources = sorted(self._pipeline.sources_of(view.name))
            bad = next((s for s in sources if outlook.news[s].kind not in USABLE), None)
            seen = frontier.views.get(view.name)
            if bad is not None:
                outlook.stuck[view.name] = bad
            elif (
                seen is None
                or not seen.tick
                or any(
                    outlook.news[s].is_worth_a_tick
                    and seen.versions.get(s) != outlook.news[s].newest
                    for s in sources
                )
            ):
                outlook.behind.append(view.name)


def _meaning(pipeline: Pipeline) -> str:
    """A short digest of all that decides how a tick goes: what is corrected is tried again."""
    said = (
        *((each.name, each.schema.ddl, each.primary_key) for each in pipeline.sources),
        *((each.name, each.fingerprint, each.require, each.schema) for each in pipeline.views),
        (pipeline.recursion, pipeline.spark, pipeline.changed_views),
    )
    return hashlib.sha256(repr(said).encode()).hexdigest()[:12]


def _words(error: object) -> str:
    """The first line of what went wrong."""
    text = str(error) if isinstance(error, IvmError | TimeoutError) else repr(error)
    return text.splitlines()[0]


def look(pipeline: Pipeline, flows: FlowStore) -> Outlook:
    """One look, by someone who doesn't come back."""
    return Lookout(pipeline, flows).look()


_LOOKOUTS: dict[tuple[str, str], Lookout] = {}


def lookout(pipeline: Pipeline, flows: FlowStore) -> Lookout:
    """The lookout of this process for a pipeline in a store."""
    place = (pipeline.name, str(flows.flow_path(pipeline)))
    known = _LOOKOUTS.get(place)
    if known is None or not known.is_for(pipeline):
        known = _LOOKOUTS[place] = Lookout(pipeline, flows)
    return known
