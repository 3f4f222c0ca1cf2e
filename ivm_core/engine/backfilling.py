"""Backfill: a view as if it had been there from the first tick, in a flow of its own.

The flow's own view was hydrated at one frontier and has no history before. Here the recorded
changes of the sources are ticked through today's definitions of the view and of what it reads, one
recorded tick after the other. Both ways end with the same rows, and the digests say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ivm_core.engine.declaring import declare_source, declare_views
from ivm_core.engine.recursion.declaring import Component
from ivm_core.engine.replaying import first_whole_tick, recorded, refuse_entwined
from ivm_core.plan.recursion import Limits
from ivm_core.store.leases import all_ticks_kept

if TYPE_CHECKING:
    from collections.abc import Callable

    from ivm_core.engine.core import Engine
    from ivm_core.engine.history import History
    from ivm_core.store.location import Location


@dataclass(frozen=True)
class Backfill:
    """What became of a view when the log was replayed for it."""

    view: str
    from_tick: int
    """The first tick with changes of its own; those before are folded together in it."""
    to_tick: int
    rows: int
    state_digest: str
    live_digest: str
    """That of the flow's own view; empty where that has no rows yet, or was further back."""

    @property
    def equal(self) -> bool:
        """Whether replaying and hydrating at one frontier gave the same rows."""
        return self.state_digest == self.live_digest


def backfill(
    engine: Engine, view: str, into: Location, progress: Callable[[int, int], None] | None = None
) -> Backfill:
    """Tick the view's history, up to what it has seen, into a flow of its own, or go on there."""
    engine.refresh()
    name = engine.catalog.view_name(view)
    refuse_entwined(into, engine.layout.root)
    with all_ticks_kept(engine.layout.root):
        shadow = engine.shadow(into)
        try:
            shadow.recover()
            return _backfilled(engine, shadow, name, progress)
        finally:
            shadow.close()


def _component(history: History, names: tuple[str, ...]) -> Component:
    """Views that read each other, as they were declared."""
    views = {name: history.views[name] for name in names}
    return Component(
        {name: view.sql for name, view in views.items()},
        {},
        {name: view.schema for name, view in views.items()},
        Limits(*views[names[0]].limits),
    )


def _backfilled(
    engine: Engine, shadow: Engine, name: str, progress: Callable[[int, int], None] | None
) -> Backfill:
    history = engine.history
    sources = [history.sources[each] for each in engine.catalog.sources_of([name])]
    for source in sources:
        declare_source(shadow, source)
    for function in history.functions.values():
        if shadow.history.functions.get(function.name) != function:
            shadow.append("function", function.entry)
    # what is inside of a view comes with its text
    needed = [each for each in engine.catalog.order([name]) if not history.views[each].inside]
    texts = {each: history.views[each].sql for each in needed}
    tied = dict.fromkeys(history.views[each].component for each in needed)
    components = [_component(history, names) for names in tied if names]
    over = {each: history.views[each].over for each in needed}
    declare_views(shadow, texts, {}, components, over)
    start = first_whole_tick(engine)
    live = history.states[name]
    last = live.upto or history.tick
    followed = {source.name for source in sources}
    for tick in range(max(start, 1), last + 1):
        if tick <= shadow.history.tick:
            continue
        if progress is not None:
            progress(tick, last)
        since = None if tick == start else tick - 1
        pins = history.pins_at[tick]
        shadow.tick(
            recorded(engine, sources, since, tick),
            pull=False,
            views=[name],
            logical_time=datetime.fromisoformat(history.commits[tick]["logical_time"]),
            pins={each: pin for each, pin in pins.items() if each in followed},
            dedup={},
            number=tick,
        )
    state = shadow.history.states[name]
    is_there = shadow.history.tick == live.upto
    found = live.digest if is_there else ""
    return Backfill(name, max(start, 1), last, state.rows, state.digest, found)
