"""The tick log folded into what a flow is now: definitions, committed ticks, what is pending."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ivm_core.engine.commits import Commits
from ivm_core.engine.costs import Costs
from ivm_core.engine.definitions import SharedDefinition, SourceDefinition, ViewDefinition
from ivm_core.engine.retention import Retention
from ivm_core.frontend.sql_functions import SqlFunction
from ivm_core.model.errors import InternalError
from ivm_core.model.names import SHARED_PREFIX
from ivm_core.model.schema import Schema, parse_schema
from ivm_core.store.trace_files import Committed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ivm_core.store.ticklog import Entry


@dataclass
class ViewState:
    """How far a view has come."""

    upto: int = 0
    """The newest tick whose changes it has seen; 0 before it is hydrated."""
    digest: str = ""
    rows: int = 0


@dataclass
class DedupState:
    """What became of the batches of a source that drops those that come again."""

    number: int = 0
    """Batches that were taken."""
    key: str = ""
    """The content of the last of them."""
    tick: int = 0
    """The tick that took it."""
    dropped: int = 0
    evicted: int = 0
    """Entries of the memory that were forgotten because there were too many."""
    forgotten: int = 0
    """The batches up to this number are not known any more."""

    def start_anew(self) -> None:
        """Know none of the batches that were taken."""
        self.forgotten, self.key = self.number, ""


@dataclass(frozen=True)
class Generation:
    """A view's columns from one tick on, and where its rows are since."""

    first_tick: int
    folder: str
    schema: Schema


@dataclass
class History:
    """The flow as its log tells it."""

    sources: dict[str, SourceDefinition] = field(default_factory=dict)
    views: dict[str, ViewDefinition] = field(default_factory=dict)
    """By name; the next definitions of views, prepared beside them, are among them."""
    shared: dict[str, SharedDefinition] = field(default_factory=dict)
    """Nodes that several views read; each is ticked like a view, and shown as none."""
    functions: dict[str, SqlFunction] = field(default_factory=dict)
    """SQL functions by name, as they were declared last."""
    begun: set[str] = field(default_factory=set)
    """Views that a tick has begun to evaluate: their nodes stay as they are."""
    generations: dict[str, list[Generation]] = field(default_factory=dict)
    """Views: one more for every definition that gave them other columns."""
    folders: set[str] = field(default_factory=set)
    """Folders of views and shared nodes, those that are gone too: none is used twice."""
    committed: Committed = field(default_factory=Committed)
    commits: Commits = field(default_factory=Commits)
    committed_at: dict[int, datetime] = field(default_factory=dict)
    """When ticks were committed, by the writer's clock; for retention alone."""
    whole_ticks: list[int] = field(default_factory=list)
    """Ticks after which no view lagged behind: a replay can begin with such a one."""
    retention: Retention = field(default_factory=lambda: Retention())
    states: dict[str, ViewState] = field(default_factory=dict)
    source_digests: dict[str, str] = field(default_factory=dict)
    source_rows: dict[str, int] = field(default_factory=dict)
    pins: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Followed sources: the version that the newest tick has read."""
    pins_at: dict[int, dict[str, dict[str, Any]]] = field(default_factory=dict)
    first_deletion: dict[str, int] = field(default_factory=dict)
    """Fed sources and views: the first tick that took rows away."""
    costs: Costs = field(default_factory=Costs)
    """What the steps of views took lately."""
    batches: dict[str, int] = field(default_factory=dict)
    """Batch ids of producers and the tick that took them."""
    dedup: dict[str, DedupState] = field(default_factory=dict)
    """By source, of those that drop batches that come again."""
    gone: dict[str, str] = field(default_factory=dict)
    """Views that were dropped or renamed, and what became of them, for messages."""
    registered_again: dict[str, int] = field(default_factory=dict)
    """Views whose name, in lower case, was another one's before; the tick that both were after."""
    written: dict[str, int] = field(default_factory=dict)
    """By folder of a trace the newest tick that has written rows to it."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Former names of views, in lower case, and the names that came after them."""
    pending: Entry | None = None
    _provisional: set[str] = field(default_factory=set)
    """Next definitions and new views that come with the pending tick, until it is committed."""
    epoch: int = 0
    read: int = 0

    @property
    def tick(self) -> int:
        """The newest committed tick."""
        return self.committed.newest

    @property
    def logical_time(self) -> datetime | None:
        """The logical time of the newest tick."""
        body = self.commits.get(self.tick)
        return None if body is None else datetime.fromisoformat(body["logical_time"])

    @property
    def is_whole(self) -> bool:
        """Whether every view and shared node has seen the newest tick."""
        return all(state.upto == self.tick for state in self.states.values())

    def time_at(self, tick: int) -> datetime | None:
        """The logical time of a tick; None for tick 0."""
        body = self.commits.get(tick)
        return None if body is None else datetime.fromisoformat(body["logical_time"])

    def catch_up(self, entries: Iterable[Entry]) -> None:
        """Take in entries that are new."""
        for entry in entries:
            if entry.seq >= self.read:
                self._apply(entry)
                self.read = entry.seq + 1

    def _apply(self, entry: Entry) -> None:
        self.epoch = max(self.epoch, entry.epoch)
        if entry.kind == "source":
            source = SourceDefinition.parse(entry.body)
            self._refuse_second(source.name)
            self.sources[source.name] = source
        elif entry.kind == "view":
            self._declare(ViewDefinition.parse(entry.body))
        elif entry.kind == "shared":
            node = SharedDefinition.parse(entry.body)
            self._refuse_second(node.name)
            self.shared[node.name] = node
            self.states[node.name] = ViewState()
            start = f"shared/{node.name.removeprefix(SHARED_PREFIX)}/"  # it may have been before
            for folder in [each for each in self.written if each.startswith(start)]:
                del self.written[folder]
            self.folders.add(node.name.casefold())
        elif entry.kind == "function":
            function = SqlFunction.parse(entry.body)
            self.functions[function.name] = function
        elif entry.kind == "drop":
            self._drop(entry.tick, entry.body["names"])
            for source in entry.body.get("sources", ()):
                self.sources.pop(source, None)
        elif entry.kind == "text":
            view = ViewDefinition.parse(entry.body["view"])
            self.views[view.name] = view
        elif entry.kind == "columns":
            source = SourceDefinition.parse(entry.body["source"])
            if source.name in self.dedup and not self.sources[source.name].options.get("dedup"):
                self.dedup[source.name].start_anew()
            self.sources[source.name] = source
            self.source_digests[source.name] = entry.body["state_digest"]
            for view in map(ViewDefinition.parse, entry.body.get("views", ())):
                self.views[view.name] = view
            for node in map(SharedDefinition.parse, entry.body.get("shared", ())):
                self.shared[node.name] = node
        elif entry.kind == "rename":
            self._rename(entry.body)
        elif entry.kind == "intent":
            self._intend(entry)
        elif entry.kind == "abort":
            self.pending = None
            self._forget(self._provisional)
            self._forget_unread()
        elif entry.kind == "commit":
            self._commit(entry)
        elif entry.kind == "retention":
            self.retention = Retention.parse(entry.body)
        elif entry.kind not in ("create", "epoch", "compaction"):
            raise InternalError(f"the tick log has an entry of kind {entry.kind!r}")

    def changed_by(self, tick: int) -> set[str]:
        """The views and shared nodes that a committed tick evaluated."""
        body = self.commits[tick]
        views = {**body["views"], **body.get("shared", {})}
        return {name for name, view in views.items() if not view["skipped"]}

    # --- definitions ---

    @property
    def live_views(self) -> list[str]:
        """Names of the views without what is prepared beside them or inside of them."""
        return [n for n, view in self.views.items() if not view.shadow_of and not view.inside]

    def shadow(self, view: str) -> ViewDefinition | None:
        """The next definition of a view that is prepared beside it, if there is one."""
        found = (each for each in self.views.values() if each.shadow_of == view)
        return next((each for each in found if each.name not in self._provisional), None)

    def is_new(self, view: str) -> bool:
        """Whether there is no such view yet, but for one that comes with the pending tick."""
        return view not in self.views or view in self._provisional

    def generation(self, view: str, at: int | None = None) -> Generation:
        """A view as it was at a tick; as it is for None."""
        found = self.generations[view]
        return next((g for g in reversed(found) if at is None or g.first_tick <= at), found[0])

    def rows_folder(self, view: str) -> str:
        """Where a view's rows are."""
        known = self.views.get(view)
        return view if known is None else known.rows_in

    def has_rows(self, name: str) -> bool:
        """Whether a tick has written rows of a source or view that are still there."""
        state = self.states.get(name)
        return bool(state.rows if state is not None else self.source_rows.get(name))

    def free_folder(self, name: str, *, for_shadow: bool = False) -> str:
        """A folder for a view that no view has or had; that of a shadow is no view's name."""
        folder, number = name, 1
        while folder.casefold() in self.folders or (for_shadow and number == 1):
            number += 1
            folder = f"{name}@{number}"
        return folder

    def _declare(self, view: ViewDefinition) -> None:
        """A new view, or one that no tick has seen yet and that shares nodes with another now."""
        known = self.views.get(view.name)
        if known is None and any(name.casefold() == view.name.casefold() for name in self.gone):
            self.registered_again[view.name.casefold()] = self.tick
        is_same = known is not None and known.fingerprint == view.fingerprint
        if not is_same or view.name in self.begun:
            self._refuse_second(view.name)
        self.views[view.name] = view
        self.states[view.name] = ViewState()
        self.generations[view.name] = [Generation(0, view.rows_in, parse_schema(view.schema))]
        self.folders |= {view.kept_in.casefold(), view.rows_in.casefold()}

    def _forget(self, views: Iterable[str]) -> None:
        for view in list(views):
            for part in (self.views, self.states, self.generations, self.first_deletion):
                part.pop(view, None)
            self._provisional.discard(view)
            self.begun.discard(view)
            self.costs.forget(view)

    def _drop(self, tick: int, views: Iterable[str]) -> None:
        self._forget(views)
        self._forget_unread()
        self.gone |= dict.fromkeys(views, f"it was dropped after tick {tick}; ")

    def _forget_unread(self) -> None:
        """Shared nodes that no view reads any more, itself or through another node."""
        read: set[str] = set()
        waiting = [name for view in self.views.values() for name in view.shared]
        while waiting:
            name = waiting.pop()
            if name not in read:
                read.add(name)
                waiting += self.shared[name].shared
        for name in [each for each in self.shared if each not in read]:
            del self.shared[name]
            self._forget([name])

    def _intend(self, entry: Entry) -> None:
        self.pending = entry
        self.begun.update(entry.body["views"])
        for body in entry.body.get("altered", {}).values():
            view = ViewDefinition.parse(body)
            come = view if self.is_new(view.name) else shadow_of(view)
            if come.name not in self.views:
                self._declare(come)
                self._provisional.add(come.name)

    def _swap(self, tick: int, view: ViewDefinition) -> None:
        """The next definition takes the place of the one before, or a new view is there to stay."""
        if view.name in self._provisional:
            self._provisional.discard(view.name)
            return
        generation = self.generation(view.name)
        if generation.folder != view.rows_in:
            schema = parse_schema(view.schema)
            self.generations[view.name].append(Generation(tick, view.rows_in, schema))
            gone = self.first_deletion.get(view.kept_in)
            if gone is not None:
                self.first_deletion[view.name] = min(gone, self.first_deletion.get(view.name, gone))
        self.views[view.name] = view
        self.begun.add(view.name)
        own = view.recursions.values()
        former = [n for n, each in self.views.items() if each.inside == view.name and n not in own]
        self._forget([view.kept_in, *former])

    def _rename(self, body: Mapping[str, Any]) -> None:
        old, view = body["old"], ViewDefinition.parse(body["view"])
        self.gone[old] = f"it is called {view.name} now; "
        self.renamed[old.casefold()] = view.name
        self.views = {view.name if name == old else name: each for name, each in self.views.items()}
        self.views[view.name] = view
        self.states[view.name] = self.states.pop(old)
        self.generations[view.name] = self.generations.pop(old)
        if old in self.first_deletion:
            self.first_deletion[view.name] = self.first_deletion.pop(old)
        if old in self.begun:
            self.begun = {*self.begun, view.name} - {old}
        self.costs.rename(old, view.name)
        for node in map(SharedDefinition.parse, body["shared"]):
            self.shared[node.name] = node
        for reader in map(ViewDefinition.parse, body["readers"]):
            self.views[reader.name] = reader
        for name, each in self.views.items():
            if each.inside == old:
                self.views[name] = replace(each, inside=view.name)
        if body["shadow"]:
            shadow = self.views[body["shadow"]]
            self.views[shadow.name] = replace(shadow, shadow_of=view.name)
        for tick in list(self.commits):
            commit = self.commits[tick]
            if old in commit["views"]:
                views = with_key(commit["views"], old, view.name)
                views[view.name] = {
                    **views[view.name],
                    "ways": with_key(views[view.name]["ways"], old, view.name),
                    "costs": with_key(views[view.name].get("costs", {}), old, view.name),
                }
                self.commits[tick] = {**commit, "views": views}

    def _refuse_second(self, name: str) -> None:
        if name in self.sources or name in self.views or name in self.shared:
            raise InternalError(f"the tick log declares {name} twice")

    def _commit(self, entry: Entry) -> None:
        body = entry.body
        self.pending = None
        self.committed.add(entry.tick, entry.epoch)
        self.commits.add(entry)
        views = {**body["views"], **body.get("shared", {})}
        for name, each in (*views.items(), *body["sources"].items()):
            if each["deletions"]:
                self.first_deletion.setdefault(name, entry.tick)
        for altered in body.get("altered", {}):
            self.costs.forget(altered)
        for name, view in views.items():
            if not view["skipped"]:
                self.states[name] = ViewState(entry.tick, view["state_digest"], view["rows"])
            else:
                self.states[name].upto = entry.tick
            self.costs.add(entry.tick, view.get("costs", {}))
        for name, source in body["sources"].items():
            self.source_digests[name] = source["state_digest"]
            self.source_rows[name] = source["rows"]
        self.written.update(dict.fromkeys(body.get("traces", ()), entry.tick))
        if body["pins"]:
            self.pins = {**self.pins, **body["pins"]}
        self.pins_at[entry.tick] = self.pins
        for name, record in body.get("dedup", {}).items():
            state = self.dedup.setdefault(name, DedupState())
            state.dropped += record["dropped"]
            state.evicted += record["evicted"]
            state.forgotten += record["evicted"]
            if not record["dropped"]:
                state.number, state.key, state.tick = record["number"], record["key"], entry.tick
        if body.get("batch_id"):
            self.batches[body["batch_id"]] = entry.tick
        if "altered" in body:
            for altered in body["altered"].values():
                self._swap(entry.tick, ViewDefinition.parse(altered))
            self._forget_unread()
        if "dropped" in body:
            self._drop(entry.tick, body["dropped"])
        self.committed_at[entry.tick] = entry.at
        if self.is_whole:
            self.whole_ticks.append(entry.tick)


def with_key(found: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """The mapping with one of its keys renamed."""
    return {new if name == old else name: each for name, each in found.items()}


def shadow_of(view: ViewDefinition) -> ViewDefinition:
    """A view's next definition, as it is prepared beside the view under its folder's name."""
    return replace(view, name=view.kept_in, folder="", rows_folder="", shadow_of=view.name)
