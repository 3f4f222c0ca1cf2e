"""Replay: the recorded ticks once more, in a flow of their own, digest by digest.

The shadow has the definitions and ticks of the flow in the order of its log, and nothing else. So
one that was stopped is gone on with: what it has is compared, what it lacks is ticked. Where old
ticks are folded together, it begins with a hydration at the first tick that is whole.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.engine.definitions import FED, ViewDefinition
from ivm_core.engine.history import History
from ivm_core.engine.replayed_views import ReplayedViews
from ivm_core.model.errors import ConstraintViolation, OutOfRange, TickFailed, UserError
from ivm_core.model.names import SHARED_PREFIX, WEIGHT
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.bound_batch import BoundBatch
from ivm_core.operators.netting import net
from ivm_core.operators.shown_rows import shown_rows
from ivm_core.store.leases import all_ticks_kept
from ivm_core.store.location import Location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ivm_core.engine.core import Engine
    from ivm_core.engine.definitions import SourceDefinition
    from ivm_core.store.ticklog import Entry

    Progress = Callable[[int, int], None]

DEFINING = ("source", "function", "shared", "view", "text", "columns", "drop", "rename")
"""Entries of the tick log that say what the flow is made of."""
SHOWN = 20


class RowsOf(Protocol):
    """Where the rows that were pushed into a source in a tick are."""

    def __call__(self, source: str, tick: int, columns: Sequence[str]) -> pa.Table | None:
        """They, with these columns; None for none."""


@dataclass(frozen=True)
class ReplayedDelta:
    """One view in one replayed tick."""

    tick: int
    view: str
    recorded: str
    replayed: str
    recorded_state: str
    replayed_state: str
    problem: str = ""
    """Why the tick can't be repeated; then nothing after it can be."""
    sample: tuple[dict[str, object], ...] = ()
    """Of the first difference some rows; `_weight` is positive where only the record has them."""

    @property
    def equal(self) -> bool:
        """Whether the tick did the same again."""
        same_state = self.recorded_state == self.replayed_state
        return not self.problem and self.recorded == self.replayed and same_state


@dataclass(frozen=True)
class Replay:
    """Digests per tick and view, as recorded and as replayed."""

    deltas: tuple[ReplayedDelta, ...]
    shared: tuple[ReplayedDelta, ...] = ()
    """The same of nodes that several views read."""
    hydrated_at: int = 0
    """The tick whose state the replay began with; 0 where it has all ticks from the first on."""

    @property
    def equal(self) -> bool:
        """Whether every delta and every state came out the same."""
        return self.first_difference is None

    @property
    def first_difference(self) -> ReplayedDelta | None:
        """The first delta that came out differently."""
        # in a tick nodes come before the views that read them
        found = sorted((*self.shared, *self.deltas), key=lambda each: each.tick)
        return next((each for each in found if not each.equal), None)


def replay(
    engine: Engine,
    from_tick: int,
    to_tick: int | None,
    into: Location | None = None,
    progress: Progress | None = None,
    *,
    hydrated: bool = False,
    scattered: bool = False,
    views: Iterable[str] | None = None,
) -> Replay:
    """Run the ticks up to `to_tick` in a flow of its own; report those from `from_tick` on.

    That flow is `into`, which may have some of them already, or one that is deleted again.
    `hydrated` begins with the rows of the newest whole tick before `from_tick`, instead of all
    ticks before. `scattered` gives every statement its rows in another order and partitioning.
    With `views` it is they and what they read: nothing else is looked at.
    """
    engine.refresh()
    newest = engine.history.tick
    last = newest if to_tick is None else to_tick
    for name, given in (("from_tick", from_tick), ("to_tick", last)):
        if isinstance(given, bool) or not isinstance(given, int):
            raise UserError(f"{name}={given!r} is not a tick", where="replay", fix="give a number")
    if not 1 <= from_tick <= max(last, 1) or last > newest:
        raise OutOfRange(
            f"ticks {from_tick} to {last} are not all in this flow",
            where="replay",
            fix=f"give ticks from 1 to {newest}",
        )
    chosen = ReplayedViews.of(engine, views)
    start = chosen.newest_whole_tick(engine, from_tick - 1) if hydrated else None
    with ExitStack() as stack:
        if into is None:
            made = tempfile.TemporaryDirectory(prefix="tideview-replay-")
            into = Location(stack.enter_context(made))
        refuse_entwined(into, engine.layout.root)
        stack.enter_context(all_ticks_kept(engine.layout.root))
        shadow = engine.shadow(into, scattered=scattered)
        stack.callback(shadow.close)
        shadow.recover()
        found = Replaying(engine, shadow, from_tick, last, progress, start, chosen)
        found.run()
        return Replay(
            tuple(each for each in found.deltas if not each.view.startswith(SHARED_PREFIX)),
            tuple(each for each in found.deltas if each.view.startswith(SHARED_PREFIX)),
            found.start,
        )


class Replaying:
    """One replay under way."""

    def __init__(
        self,
        engine: Engine,
        shadow: Engine,
        first: int,
        last: int,
        progress: Progress | None = None,
        start: int | None = None,
        chosen: ReplayedViews | None = None,
    ) -> None:
        """Ticks up to `last` are run in the shadow, those from `first` on compared.

        It begins with the rows of tick `start`, where that is given and later than it has to; it
        is about the views that are chosen, or all.
        """
        self._engine = engine
        self._shadow = shadow
        self._first = first
        self._last = last
        self._progress = progress
        self._chosen = chosen or ReplayedViews()
        self._has = _told(shadow.log.entries, last)
        self.start = max(first_whole_tick(engine), start or 0)
        self.deltas: list[ReplayedDelta] = []

    def run(self) -> None:
        """Do what the shadow lacks; `UserError` where it is of another flow."""
        if self.start > self._last:
            raise OutOfRange(
                f"ticks up to {self.start} are folded together",
                where="replay",
                fix=f"give ticks from {self.start} to {self._engine.history.tick}",
            )
        entries = list(self._engine.log.entries)
        if self.start:
            entries = self._hydrated(entries)
        for entry in _told(entries, self._last):
            if self._has:
                self._check_same(entry)
            elif entry.kind in DEFINING:
                self._shadow.append(entry.kind, entry.body)
            elif not self._tick(entry):
                return

    def _hydrated(self, entries: list[Entry]) -> list[Entry]:
        """Begin with the state of a tick; gives back what comes after it."""
        at = next(e.seq for e in entries if e.kind == "commit" and e.tick == self.start)
        then = History()
        then.catch_up(entries[: at + 1])
        told: list[tuple[str, Mapping[str, Any]]] = [
            *(("source", each.body) for each in then.sources.values()),
            *(("function", each.entry) for each in then.functions.values()),
            *(("shared", each.body) for each in then.shared.values()),
            *(("view", each.body) for each in then.views.values()),
        ]
        for kind, body in told:
            if not self._has:
                self._shadow.append(kind, body)
            elif self._has.pop(0).body != body:
                raise self._another()
        self._chosen.begin(self._shadow)
        commit = entries[at]
        if self._has:
            self._check_same(commit, only_state=True)
        else:
            sources = self._shadow.history.sources.values()
            batches = recorded(self._engine, sources, None, self.start)
            moment = datetime.fromisoformat(commit.body["logical_time"])
            self._shadow.tick(
                batches,
                pull=False,
                views=self._chosen.there(self._shadow),
                logical_time=moment,
                pins=then.pins,
                dedup={},
                number=self.start,
            )
            self._compare(commit, self._shadow.history.commits[self.start], only_state=True)
        return entries[at + 1 :]

    def _check_same(self, recorded: Entry, *, only_state: bool = False) -> None:
        """Take the next entry that the shadow has already for a recorded one."""
        shadowed = self._has.pop(0)
        is_same = recorded.kind == shadowed.kind and recorded.tick == shadowed.tick
        if recorded.kind in DEFINING:
            is_same = recorded.kind == shadowed.kind and recorded.body == shadowed.body
        if not is_same:
            raise self._another()
        if recorded.kind == "commit":
            self._compare(recorded, shadowed.body, only_state=only_state)

    def _another(self) -> UserError:
        return UserError(
            "what is there is no replay of this flow",
            where=f"into={self._shadow.layout.root.uri!r}",
            fix="give an empty or new directory, or one that this flow was replayed into",
        )

    def _tick(self, entry: Entry) -> bool:
        if self._progress is not None:
            self._progress(entry.tick, self._last)
        try:
            replay_tick(self._shadow, entry, _RowsOfFlow(self._engine), self._chosen)
        except (ConstraintViolation, TickFailed) as error:
            found = _unrepeatable(entry, error)
            self.deltas += [each for each in found if self._chosen.is_compared(each.view)]
            return False
        self._compare(entry, self._shadow.history.commits[entry.tick])
        return True

    def _compare(
        self, entry: Entry, replayed: Mapping[str, Any], *, only_state: bool = False
    ) -> None:
        """Put the digests of a tick side by side; of the first difference rows too."""
        if entry.tick < self._first:
            return
        again = _evaluated(replayed)
        for name, view in _evaluated(entry.body).items():
            if not self._chosen.is_compared(name):
                continue
            delta = "state_digest" if only_state else "digest"
            found = ReplayedDelta(
                entry.tick,
                name,
                view[delta],
                again[name][delta],
                view["state_digest"],
                again[name]["state_digest"],
            )
            if not found.equal and all(each.equal for each in self.deltas):
                found = replace(found, sample=self._sample(name, entry.tick))
            self.deltas.append(found)

    def _sample(self, name: str, tick: int) -> tuple[dict[str, object], ...]:
        """Rows in which the recorded and the replayed delta, or else the states, differ."""
        engine, shadow = self._engine, self._shadow
        if name not in engine.history.generations or name not in shadow.history.generations:
            return ()  # it is gone or renamed by now, or a node
        generation = engine.history.generation(name, tick)
        kept = (engine.layout.rows_of(generation), engine.history.committed)
        again = shadow.layout.rows_of(shadow.history.generation(name, tick))
        names = [*generation.schema.names, WEIGHT]
        for since in (tick - 1, None):
            ours = kept[0].read(kept[1], tick, since, names)
            theirs = again.read(shadow.history.committed, tick, since, names)
            negated = pc.negate(theirs[WEIGHT])
            theirs = theirs.set_column(theirs.column_names.index(WEIGHT), WEIGHT, negated)
            rows = net(pa.concat_tables([ours, theirs]), generation.schema)
            if rows.num_rows:
                return tuple(shown_rows(rows.slice(0, SHOWN)))
        return ()


def replay_tick(
    shadow: Engine, entry: Entry, rows_of: RowsOf, chosen: ReplayedViews | None = None
) -> None:
    """Run a recorded tick again in another flow, on the rows that were pushed then."""
    body = entry.body
    altered = [ViewDefinition.parse(each) for each in body.get("altered", {}).values()]
    views = list(body["views"])
    if chosen is not None:
        views, altered = chosen.of_tick(shadow, views, altered)
    batches = {}
    for name in body["sources"]:
        source = shadow.history.sources[name]  # with the columns that it had then
        if source.kind != FED:
            continue
        wanted = arrow_schema(source.schema, weight=True)
        rows = rows_of(name, entry.tick, [*source.schema.names, WEIGHT])
        rows = wanted.empty_table() if rows is None else rows.cast(wanted)
        batches[name] = BoundBatch(name, source.schema, source.primary_key, rows)
    shadow.tick(
        batches,
        pull=False,
        views=views,
        altered=altered,
        dropped=body.get("dropped", ()),
        logical_time=datetime.fromisoformat(body["logical_time"]),
        batch_id=body.get("batch_id"),
        pins=body["pins"],
        dedup=body.get("dedup", {}),
    )


class _RowsOfFlow:
    """The pushed rows of a flow, tick by tick."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __call__(self, source: str, tick: int, columns: Sequence[str]) -> pa.Table:
        engine = self._engine
        now = engine.history.sources[source]
        trace = engine.layout.source_rows(source, now.schema, now.primary_key)
        return trace.read(engine.history.committed, tick, tick - 1, columns)


def recorded(
    engine: Engine, sources: Iterable[SourceDefinition], since: int | None, tick: int
) -> dict[str, BoundBatch]:
    """What fed sources got in the ticks after `since`, with the columns that are asked for."""
    batches = {}
    for source in sources:
        if source.kind != FED:
            continue
        now = engine.history.sources[source.name]
        trace = engine.layout.source_rows(now.name, now.schema, now.primary_key)
        columns = [*source.schema.names, WEIGHT]
        rows = trace.read(engine.history.committed, tick, since, columns)
        rows = rows.cast(arrow_schema(source.schema, weight=True))
        if since is None:
            rows = net(rows, source.schema)
        batches[source.name] = BoundBatch(source.name, source.schema, source.primary_key, rows)
    return batches


def first_whole_tick(engine: Engine) -> int:
    """The tick that a replay has to begin with: 0, or one at which nothing lags behind."""
    bases = [
        engine.layout.source_rows(each.name, each.schema, each.primary_key).base_tick
        for each in engine.history.sources.values()
        if each.kind == FED
    ]
    base = max(bases, default=0)
    if not base:
        return 0
    then = History()
    for entry in engine.log.entries:
        then.catch_up([entry])
        if entry.kind == "commit" and entry.tick >= base and then.is_whole:
            return entry.tick
    raise OutOfRange(
        "there is no tick that a replay could begin with: some view always lags behind",
        where="replay",
        fix="tick all views once: flow.tick()",
    )


def refuse_entwined(into: Location, flow: Location) -> None:
    """`UserError` for a shadow that would be the flow itself, in it or around it."""
    if into.is_entwined_with(flow):
        raise UserError(
            "a flow and its replay can't be one, nor inside of each other",
            where=f"into={into.uri!r}",
            fix="give a folder elsewhere",
        )


def _told(entries: Iterable[Entry], last: int) -> list[Entry]:
    """Definitions and ticks up to a tick; what was defined after the newest one is with it."""
    found: list[Entry] = []
    kept = 0
    for entry in entries:
        if entry.kind == "commit" and entry.tick > last:
            return found[:kept]
        if entry.kind == "commit" or entry.kind in DEFINING:
            found.append(entry)
        if entry.kind == "commit":
            kept = len(found)
    return found


def _unrepeatable(entry: Entry, error: ConstraintViolation | TickFailed) -> list[ReplayedDelta]:
    """Every delta of a tick whose recorded batches are refused, or that fails, when repeated."""
    return [
        ReplayedDelta(entry.tick, name, view["digest"], "", view["state_digest"], "", error.what)
        for name, view in _evaluated(entry.body).items()
    ]


def _evaluated(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a certificate says of shared nodes and views."""
    return {**body.get("shared", {}), **body["views"]}
