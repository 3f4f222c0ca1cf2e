"""Replay: the recorded ticks once more, elsewhere, digest by digest."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from ivm_core.engine.definitions import FED, ViewDefinition
from ivm_core.engine.functions import Functions
from ivm_core.model.errors import ConstraintViolation, OutOfRange, TickFailed
from ivm_core.model.names import SHARED_PREFIX, WEIGHT
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.bound_batch import BoundBatch
from ivm_core.store.location import Location

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from ivm_core.engine.core import Engine
    from ivm_core.store.ticklog import Entry

DEFINING = ("source", "function", "shared", "view", "text", "columns", "drop", "rename")
"""Entries of the tick log that say what the flow is made of."""


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


def replay(engine: Engine, from_tick: int, to_tick: int | None) -> Replay:
    """Run ticks 1 … to_tick in a flow of its own; report those from `from_tick` on."""
    engine.refresh()
    newest = engine.history.tick
    last = newest if to_tick is None else to_tick
    if not 1 <= from_tick <= max(last, 1) or last > newest:
        raise OutOfRange(
            f"ticks {from_tick} to {last} are not all in this flow",
            where="replay",
            fix=f"give ticks from 1 to {newest}",
        )
    with tempfile.TemporaryDirectory(prefix="tideview-replay-") as folder:
        shadow = type(engine)(Location(folder), engine.gears.spark)
        shadow.functions = Functions(engine.functions.python, shadow.history.functions)
        try:
            found = _replayed(engine, shadow, from_tick, last)
            return Replay(
                tuple(each for each in found if not each.view.startswith(SHARED_PREFIX)),
                tuple(each for each in found if each.view.startswith(SHARED_PREFIX)),
            )
        finally:
            shadow.close()


def _replayed(engine: Engine, shadow: Engine, first: int, last: int) -> list[ReplayedDelta]:
    found: list[ReplayedDelta] = []
    rows_of = _RowsOfFlow(engine)
    for entry in engine.log.entries:
        if entry.kind in DEFINING:
            shadow.append(entry.kind, entry.body)
        elif entry.kind == "commit" and entry.tick <= last:
            try:
                replay_tick(shadow, entry, rows_of)
            except (ConstraintViolation, TickFailed) as error:
                return found + _unrepeatable(entry, error)
            if entry.tick >= first:
                found += _compared(entry, shadow)
    return found


def replay_tick(shadow: Engine, entry: Entry, rows_of: RowsOf) -> None:
    """Run a recorded tick again in another flow, on the rows that were pushed then."""
    body = entry.body
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
        views=list(body["views"]),
        altered=[ViewDefinition.parse(each) for each in body.get("altered", {}).values()],
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


def _unrepeatable(entry: Entry, error: ConstraintViolation | TickFailed) -> list[ReplayedDelta]:
    """Every delta of a tick whose recorded batches are refused, or that fails, when repeated."""
    return [
        ReplayedDelta(entry.tick, name, view["digest"], "", view["state_digest"], "", error.what)
        for name, view in _evaluated(entry.body).items()
    ]


def _compared(entry: Entry, shadow: Engine) -> list[ReplayedDelta]:
    again = _evaluated(shadow.history.commits[entry.tick])
    return [
        ReplayedDelta(
            entry.tick,
            name,
            view["digest"],
            again[name]["digest"],
            view["state_digest"],
            again[name]["state_digest"],
        )
        for name, view in _evaluated(entry.body).items()
    ]


def _evaluated(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a certificate says of shared nodes and views."""
    return {**body.get("shared", {}), **body["views"]}
