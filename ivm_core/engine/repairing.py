"""Finding lost and damaged files of a flow, and making them again from the recorded ticks.

What a fed source was given is recorded nowhere else, so its files can't be made again. All else
(rows of views, of nodes, accumulators) is what a replay gives: the traces of the shadow take the
place of the damaged ones, after every digest of the replay was found to be the recorded one. A
published table is written again from its view.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.engine.definitions import FED
from ivm_core.engine.layout import lacks
from ivm_core.engine.publishing import FOLDER as PUBLISHED
from ivm_core.engine.publishing import Publisher
from ivm_core.engine.replaying import Replaying, first_whole_tick
from ivm_core.engine.unforeseen import written_in_steps
from ivm_core.model.digest import Digest
from ivm_core.model.errors import HistoryLost, OutOfRange
from ivm_core.model.names import WEIGHT
from ivm_core.operators.netting import net
from ivm_core.operators.row_identity import digest_of
from ivm_core.store.location import Location
from ivm_core.store.trace import Trace
from ivm_core.store.verifying import Damage, damages, exchange, published_damages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ivm_core.engine.core import Engine

PLACES = ("sources", "views", "shared")


@dataclass(frozen=True)
class Repair:
    """What was damaged, and has been made again."""

    damages: tuple[Damage, ...]
    traces: tuple[str, ...]
    """The folders that have new files."""
    replayed_ticks: int


def verify(engine: Engine) -> tuple[Damage, ...]:
    """Look at every file that counts, and compare the rows of sources and views by digest."""
    engine.refresh()
    committed = engine.history.committed
    found: list[Damage] = []
    for name in _expected(engine):
        location = engine.layout.root.child(*name.split("/"))
        wrong = damages(location, name, committed) or _cut_short(engine, name)
        found += wrong or _altered(engine, name)
    for entry in engine.layout.root.list(PUBLISHED):
        if entry.is_dir:
            found += published_damages(engine.layout.root.child(*entry.path.split("/")), entry.path)
    return tuple(found)


def repair(engine: Engine, progress: Callable[[int, int], None] | None = None) -> Repair:
    """Make again what is lost or damaged; `HistoryLost` names what can't be, and changes nothing.

    A followed table has its own files, and a source's own rows can't be made from anything.
    """
    engine.begin_writing()
    found = verify(engine)
    tables = tuple(dict.fromkeys(each.trace for each in found if _is_published(each)))
    with written_in_steps(engine.layout.root):
        replayed = _replayed(engine, [each for each in found if not _is_published(each)], progress)
        if tables:
            Publisher(engine).remake(name.removeprefix(f"{PUBLISHED}/") for name in tables)
    ticks = engine.history.tick if replayed else 0
    return Repair(found, (*replayed, *tables), ticks)


def _is_published(damage: Damage) -> bool:
    return damage.trace.startswith(f"{PUBLISHED}/")


def _replayed(
    engine: Engine, found: Sequence[Damage], progress: Callable[[int, int], None] | None
) -> tuple[str, ...]:
    """Make damaged traces again, all of them or none; returns their folders."""
    if not found:
        return ()
    _refuse_lost_sources(found)
    start = first_whole_tick(engine)
    if start:
        raise OutOfRange(
            f"{_listed(found)}; the ticks up to {start} are folded together, so that what they "
            "were can't be made again",
            fix="restore the flow from a checkpoint, or register the views anew under other names",
        )
    last = engine.history.tick
    with tempfile.TemporaryDirectory(prefix="tideview-repair-") as folder:
        shadow = engine.shadow(Location(folder))
        try:
            replaying = Replaying(engine, shadow, 1, last, progress)
            replaying.run()
            wrong = next((each for each in replaying.deltas if not each.equal), None)
            if wrong is not None:
                raise HistoryLost(
                    f"{_listed(found)}; a replay gives something else in tick {wrong.tick} for "
                    f"{wrong.view}: {wrong.problem or 'another digest'}",
                    fix="restore the flow from a checkpoint",
                )
            traces = tuple(dict.fromkeys(each.trace for each in found))
            for name in traces:
                like = Trace.open(shadow.layout.root.child(*name.split("/")))
                of = shadow.history.committed
                exchange(engine.layout.root, name, like, engine.history.committed, of)
        finally:
            shadow.close()
    engine.layout.forget()
    return traces


def _expected(engine: Engine) -> list[str]:
    """The folders of all traces that there are or must be."""
    root, history = engine.layout.root, engine.history
    found: dict[str, None] = {}
    for source in history.sources.values():
        if source.kind == FED and history.source_rows.get(source.name):
            found[f"sources/{source.name.casefold()}/rows"] = None
    for view, generations in history.generations.items():
        if history.states[view].upto:
            for each in generations:
                found["/".join(("views", each.folder.casefold(), "rows"))] = None
    for name in (*history.views, *history.shared):
        for stage in engine.catalog.program(name).stages if history.states[name].upto else ():
            relation = stage.stage.relation
            if stage.stage.keeps_rows:
                found[engine.layout.place(relation, "rows")] = None
            if stage.stage.aggregate is not None:
                found[engine.layout.place(relation, "state")] = None
    for place in PLACES:
        for entry in root.list(place, recursive=True) if root.exists(place) else ():
            if entry.is_dir and entry.path.endswith("/_delta_log"):
                found[entry.path.removesuffix("/_delta_log")] = None
    return sorted(found)


def _cut_short(engine: Engine, name: str) -> list[Damage]:
    """A trace whose log has lost its newest commits."""
    tick = engine.history.written.get(name, 0)
    newest = Trace.open(engine.layout.root.child(*name.split("/"))).newest_tick
    return [Damage(name, "", lacks(name, newest, tick), newest + 1, tick)] if newest < tick else []


def _altered(engine: Engine, name: str) -> list[Damage]:
    """Rows that are all there, and are not those that were written."""
    history = engine.history
    place, _, rest = name.partition("/")
    folder = rest.removesuffix("/rows")
    for source in history.sources.values() if place == "sources" else ():
        if source.name.casefold() == folder and source.kind == FED:
            recorded = history.source_digests.get(source.name)
            trace = engine.layout.source_rows(source.name, source.schema, source.primary_key)
            rows = trace.read(history.committed, None, None, [*source.schema.names, WEIGHT])
            found = digest_of(net(rows, source.schema), source.schema).hex
            return _differs(name, recorded, found)
    for view in history.live_views if place == "views" else ():
        generation = history.generation(view)
        if generation.folder.casefold() == folder and history.states[view].upto:
            trace = engine.layout.rows_of(generation)
            names = [*generation.schema.names, WEIGHT]
            rows = net(trace.read(history.committed, None, None, names), generation.schema)
            found = digest_of(rows, generation.schema).hex
            return _differs(name, history.states[view].digest, found)
    return []


def _differs(name: str, recorded: str | None, found: str) -> list[Damage]:
    if (recorded or Digest.zero().hex) == found:
        return []
    return [Damage(name, "", f"its rows have the digest {found}, recorded is {recorded}")]


def _refuse_lost_sources(found: Sequence[Damage]) -> None:
    lost = [each for each in found if each.trace.startswith("sources/")]
    if lost:
        raise HistoryLost(
            f"{_listed(lost)}; what a source was given is recorded nowhere else",
            fix="put the file back from a copy, or restore the flow from a checkpoint",
        )


def _listed(found: Sequence[Damage]) -> str:
    first = found[0]
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    place = "/".join(filter(None, (first.trace, first.file)))
    ticks = f" (ticks {first.first_tick} to {first.last_tick})" if first.last_tick else ""
    return f"{place}{ticks}: {first.problem}{more}"
