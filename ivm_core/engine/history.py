"""The tick log folded into what a flow is now: definitions, committed ticks, what is pending."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ivm_core.engine.costs import Costs
from ivm_core.engine.definitions import SharedDefinition, SourceDefinition, ViewDefinition
from ivm_core.model.errors import InternalError
from ivm_core.store.trace_files import Committed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ivm_core.store.ticklog import Entry


@dataclass
class ViewState:
    """How far a view has come."""

    upto: int = 0
    """The newest tick whose changes it has seen; 0 before it is hydrated."""
    digest: str = ""
    rows: int = 0


@dataclass
class History:
    """The flow as its log tells it."""

    sources: dict[str, SourceDefinition] = field(default_factory=dict)
    views: dict[str, ViewDefinition] = field(default_factory=dict)
    shared: dict[str, SharedDefinition] = field(default_factory=dict)
    """Nodes that several views read; each is ticked like a view, and shown as none."""
    begun: set[str] = field(default_factory=set)
    """Views that a tick has begun to evaluate: their nodes stay as they are."""
    committed: Committed = field(default_factory=Committed)
    commits: dict[int, dict[str, Any]] = field(default_factory=dict)
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
    pending: Entry | None = None
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
        elif entry.kind == "intent":
            self.pending = entry
            self.begun.update(entry.body["views"])
        elif entry.kind == "abort":
            self.pending = None
        elif entry.kind == "commit":
            self._commit(entry)
        elif entry.kind not in ("create", "epoch", "compaction"):
            raise InternalError(f"the tick log has an entry of kind {entry.kind!r}")

    def _declare(self, view: ViewDefinition) -> None:
        """A new view, or one that no tick has seen yet and that shares nodes with another now."""
        known = self.views.get(view.name)
        is_same = known is not None and known.fingerprint == view.fingerprint
        if not is_same or view.name in self.begun:
            self._refuse_second(view.name)
        self.views[view.name] = view
        self.states[view.name] = ViewState()

    def _refuse_second(self, name: str) -> None:
        if name in self.sources or name in self.views or name in self.shared:
            raise InternalError(f"the tick log declares {name} twice")

    def _commit(self, entry: Entry) -> None:
        body = entry.body
        self.pending = None
        self.committed.add(entry.tick, entry.epoch)
        self.commits[entry.tick] = body
        views = {**body["views"], **body.get("shared", {})}
        for name, each in (*views.items(), *body["sources"].items()):
            if each["deletions"]:
                self.first_deletion.setdefault(name, entry.tick)
        for name, view in views.items():
            if not view["skipped"]:
                self.states[name] = ViewState(entry.tick, view["state_digest"], view["rows"])
            else:
                self.states[name].upto = entry.tick
            self.costs.add(entry.tick, view.get("costs", {}))
        for name, source in body["sources"].items():
            self.source_digests[name] = source["state_digest"]
            self.source_rows[name] = source["rows"]
        self.pins = {**self.pins, **body["pins"]}
        self.pins_at[entry.tick] = self.pins
        if body.get("batch_id"):
            self.batches[body["batch_id"]] = entry.tick
