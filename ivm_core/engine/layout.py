"""Where a flow keeps what: one folder a source, a view, a node of a view, a shared node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.model.errors import CorruptStore
from ivm_core.model.names import SHARED_PREFIX, TICK, WEIGHT
from ivm_core.model.schema import Field, Schema
from ivm_core.model.types import BIGINT
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.store.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from ivm_core.engine.history import Generation
    from ivm_core.store.location import Location


FOLDERS = ("sources", "views", "shared")
"""The folders of a flow that have traces."""


def weighted(schema: Schema) -> Schema:
    """The columns of a delta."""
    return Schema((*schema, Field(WEIGHT, BIGINT)), internal=True)


def ticked(schema: Schema) -> Schema:
    """The columns as a trace's files have them."""
    return Schema((*schema, Field(TICK, BIGINT)), internal=True)


class Layout:
    """Opens traces by what they are for, each once."""

    def __init__(
        self,
        root: Location,
        rows_folder: Callable[[str], str] = str,
        has_rows: Callable[[str], bool] = lambda name: False,
        log: Location | None = None,
        written: Mapping[str, int] | None = None,
    ) -> None:
        """`root` is the flow's own location, `rows_folder` knows where the rows of a view are.

        `has_rows` knows of which sources and views there must be a trace: it was written to;
        `written` has by folder the newest tick that must be there. `log` is the tick log, if that
        is not in its usual place.
        """
        self.root = root
        self.log = log or root.child("ticks")
        """Where the tick log is."""
        self._rows_folder = rows_folder
        self._has_rows = has_rows
        self._written = written if written is not None else {}
        self._open: dict[tuple[str, ...], Trace] = {}

    def has_source_rows(self, name: str) -> bool:
        """Whether anything was ever pushed into a fed source."""
        return self.root.child("sources", name.casefold(), "rows").exists("_delta_log")

    @property
    def views(self) -> Location:
        """Where the folders of views are."""
        return self.root.child("views")

    @property
    def shared(self) -> Location:
        """Where the folders of shared nodes are."""
        return self.root.child("shared")

    def source_rows(self, name: str, schema: Schema, key: Sequence[str] = ()) -> Trace:
        """The rows of a fed source."""
        parts = ("sources", name.casefold(), "rows")
        wanted = arrow_schema(weighted(schema))
        found = self._open.get(parts)
        if found is None or found.schema.names[:-1] != wanted.names:
            self._refuse_lost(name, parts)
            found = self._opened(parts, wanted, key, widens=True)
            self._open[parts] = found
        return found

    def stage_rows(self, relation: str, schema: Schema, key: Sequence[str] = ()) -> Trace:
        """The rows of a view, of a node inside it, or of a shared node."""
        parts = (*self._folder(relation), "rows")
        if parts not in self._open:
            self._refuse_lost(relation, parts)
        return self._trace(parts, weighted(schema), key)

    def rows_of(self, generation: Generation) -> Trace:
        """The rows of a view as it was, or is, defined."""
        parts = (*_parts(generation.folder), "rows")
        return self._trace(parts, weighted(generation.schema), ())

    def stage_state(self, relation: str, schema: Schema, key: Sequence[str] = ()) -> Trace:
        """The accumulators of a node."""
        return self._trace((*_parts(relation), "state"), schema, key)

    def place(self, relation: str, folder: str) -> str:
        """The folder, below the flow's, of a trace of a view or of a node inside it."""
        return "/".join((*self._folder(relation), folder))

    def stored(self, relation: str, folder: str) -> tuple[str, Trace | None]:
        """Where a trace of a view, or of a node inside it, is, and the trace if it is there."""
        place = self.place(relation, folder)
        location = self.root.child(*place.split("/"))
        found = Trace.open(location) if location.exists("_delta_log") else None
        return place, found

    @property
    def commits(self) -> int:
        """Delta commits made to traces by this process."""
        return sum(trace.commits for trace in self._open.values())

    def refresh(self) -> None:
        """See what other writers have committed."""
        for trace in self._open.values():
            trace.refresh()

    def forget(self) -> None:
        """Open every trace anew: their files were exchanged."""
        self._open.clear()

    @property
    def traces(self) -> list[Trace]:
        """All traces that are open."""
        return list(self._open.values())

    def _trace(self, parts: tuple[str, ...], schema: Schema, key: Sequence[str]) -> Trace:
        found = self._open.get(parts)
        if found is None:
            found = self._opened(parts, arrow_schema(schema), key)
            self._open[parts] = found
        return found

    def _opened(
        self, parts: tuple[str, ...], schema: pa.Schema, key: Sequence[str], *, widens: bool = False
    ) -> Trace:
        """The trace; `CorruptStore` if it lacks what ticks have recorded that they wrote to it."""
        location, name = self.root.child(*parts), "/".join(parts)
        tick = self._written.get(name, 0)
        if tick and not location.exists("_delta_log"):
            raise CorruptStore(f"the trace {name} is missing: tick {tick} has written to it")
        trace = Trace.open(location, schema, key, widens=widens)
        if trace.newest_tick < tick:
            raise CorruptStore(lacks(name, trace.newest_tick, tick))
        return trace

    def written_by(self, tick: int, epoch: int) -> list[str]:
        """The folders of traces that one attempt at a tick has written rows to."""
        done = [parts for parts, trace in self._open.items() if trace.written == (tick, epoch)]
        return sorted("/".join(parts) for parts in done)

    def _refuse_lost(self, name: str, parts: tuple[str, ...]) -> None:
        """A trace that was written to is never made anew: it would be empty."""
        if self._has_rows(name) and not self.root.child(*parts).exists("_delta_log"):
            raise CorruptStore(f"the trace {'/'.join(parts)} of {name} is missing")

    def _folder(self, relation: str) -> tuple[str, ...]:
        return _parts(relation if "#" in relation else self._rows_folder(relation))


def lacks(name: str, newest: int, tick: int) -> str:
    """What is said of a trace whose log has lost commits."""
    return f"the trace {name} ends with tick {newest}, but tick {tick} has written to it"


def _parts(relation: str) -> tuple[str, ...]:
    view, _, node = relation.partition("#")
    if view.startswith(SHARED_PREFIX):
        folder = ("shared", view.removeprefix(SHARED_PREFIX))
    else:
        folder = ("views", view.casefold())
    return (*folder, f"node_{node}") if node else folder
