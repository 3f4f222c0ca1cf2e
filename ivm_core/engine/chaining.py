"""The chain of a view's certificates: every state is the state before plus the change.

    state digest of tick n  =  state digest of tick n−1  +  digest of the change of tick n

That is read from the tick log alone. The newest change is also read from the view's rows, and its
digest computed anew: a file that says something else than what was certified is found there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ivm_core.model.digest import Digest
from ivm_core.model.names import WEIGHT
from ivm_core.operators.netting import net
from ivm_core.operators.row_identity import digest_of
from ivm_core.operators.shown_rows import shown_rows

if TYPE_CHECKING:
    from ivm_core.engine.core import Engine

SHOWN = 20
READ_ROWS = 200_000
"""Rows of a change above which its digest is not computed anew."""


@dataclass(frozen=True)
class Chain:
    """The certificates of a view, from the first tick of its columns on."""

    view: str
    ticks: int
    """How many ticks were added up."""
    newest: int
    broken_at: int | None = None
    """The first tick that doesn't fit."""
    problem: str = ""
    sample: tuple[dict[str, object], ...] = ()
    """Some rows of the change that has another digest than its certificate says."""
    rows_read: bool = True
    """Whether the newest change was read; it isn't where it is very large or folded away."""

    @property
    def equal(self) -> bool:
        """Whether all digests add up."""
        return self.broken_at is None


def check_chain(engine: Engine, view: str) -> Chain:
    """Add up a view's digests, tick by tick; `UnknownName` for one that there isn't."""
    engine.refresh()
    history = engine.history
    name = engine.catalog.view_name(view)
    told = [
        (tick, history.commits[tick]["views"][name])
        for tick in sorted(history.commits)
        if name in history.commits[tick]["views"]
    ]
    # the first tick of a view begins with nothing, and so does one that gives it other columns
    first_ticks = {generation.first_tick for generation in history.generations[name]}
    state = Digest.zero()
    changed = 0
    for count, (tick, entry) in enumerate(told, 1):
        if entry["hydrated"] or tick in first_ticks:
            state = Digest.zero()
        state += Digest.parse(entry["digest"])
        if state.hex != entry["state_digest"]:
            what = (
                f"the rows before and the change add up to the digest {state.hex}, "
                f"recorded is {entry['state_digest']}"
            )
            return Chain(name, count, tick, tick, what)
        changed = changed if entry["skipped"] else tick
    whole = Chain(name, len(told), told[-1][0] if told else 0)
    return _with_newest_change(engine, whole, changed) if changed else whole


def _with_newest_change(engine: Engine, chain: Chain, tick: int) -> Chain:
    """The chain, with the newest change read from the rows that are stored."""
    history = engine.history
    entry = history.commits[tick]["views"][chain.view]
    generation = history.generation(chain.view, tick)
    trace = engine.layout.rows_of(generation)
    if entry["rows_out"] > READ_ROWS or trace.base_tick >= tick:
        return replace(chain, rows_read=False)
    names = [*generation.schema.names, WEIGHT]
    rows = net(trace.read(history.committed, tick, tick - 1, names), generation.schema)
    found = digest_of(rows, generation.schema).hex
    if found == entry["digest"]:
        return chain
    what = f"the stored rows of its change have the digest {found}, recorded is {entry['digest']}"
    sample = tuple(shown_rows(rows.slice(0, SHOWN)))
    return replace(chain, broken_at=tick, problem=what, sample=sample)
