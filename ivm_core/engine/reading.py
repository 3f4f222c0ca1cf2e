"""Reading a flow: snapshots without weights, changes with them, at any tick that is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from ivm_core.engine.definitions import DELTA
from ivm_core.engine.gears import StoredRows
from ivm_core.engine.layout import ticked, weighted
from ivm_core.engine.netted_frames import netted_frame, unweighted
from ivm_core.model.errors import OutOfRange, UnknownName, Unsupported
from ivm_core.model.names import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ivm_core.engine.core import Engine
    from ivm_core.model.schema import Schema
    from ivm_core.store.trace import Trace


def another_view(name: str, tick: int) -> OutOfRange:
    """What is said of changes from before a view had its name."""
    return OutOfRange(
        f"another view was called {name} up to tick {tick}: what both have changed doesn't add up",
        where=f"view {name}",
        fix=f"read snapshot({name!r}, at=…) of a later tick, and go on with that as since=",
    )


class Reader:
    """Reads what is committed, and only whole ticks."""

    def __init__(self, engine: Engine) -> None:
        """See what has been committed up to now."""
        engine.refresh()
        self._engine = engine

    def snapshot(self, name: str, at: int | None = None) -> DataFrame:
        """Rows of a view or source as of a tick, each as often as it is there."""
        stored, _ = self.relation(name)
        history = self._engine.history
        tick = self.checked(at, "at")
        source = history.sources.get(stored)
        if source is not None and source.kind == DELTA:
            pins = history.pins_at.get(tick, {})
            if stored not in pins:
                raise OutOfRange(f"tick {tick} has not read {stored}", fix="tick the flow first")
            table = self._engine.followed.pinned(stored, pins[stored])
            version = int(pins[stored]["version"])
            return table.spark_frame(self._engine.gears.spark, version)
        trace, schema = self.trace(stored, tick)
        frame = self._frame(trace, schema, tick, None)
        return unweighted(netted_frame(frame, schema), schema)

    def changes(self, name: str, since: int) -> DataFrame:
        """Net changes per tick after `since`, with `_weight` and `_tick`."""
        stored, _ = self.relation(name)
        history = self._engine.history
        source = history.sources.get(stored)
        if source is not None and source.kind == DELTA:
            raise Unsupported(
                f"changes of the followed table {stored}",
                reason="a followed table is its own history",
                rewrite=f"read the change data feed of {source.options['table']}",
            )
        tick = self.checked(since, "since")
        self.same_view_since(stored, tick)
        schema = self.same_columns_since(stored, tick)
        trace, _ = self.trace(stored, history.tick)
        frame = self._frame(trace, schema, history.tick, tick)
        return netted_frame(frame, schema, per_tick=True)

    def _frame(self, trace: Trace, schema: Schema, at: int, since: int | None) -> DataFrame:
        """Rows in the user's own session, so that they go with the user's other frames.

        What is not whole is `CorruptStore` here; what is lost later only Spark can tell.
        """
        committed, gears = self._engine.history.committed, self._engine.gears
        rows = StoredRows(trace.uris(committed, at, since), ticked(weighted(schema)), at, since)
        try:
            return gears.frame_in(gears.spark, rows)
        except AnalysisException:
            trace.require(trace.files(committed, at, since))
            raise

    def relation(self, name: str) -> tuple[str, Schema]:
        """The stored name and columns of a view or source; UnknownName with what there is."""
        schemas = self._engine.catalog.schemas()
        wanted = name.casefold() if isinstance(name, str) else None
        for stored, schema in schemas.items():
            if stored.casefold() == wanted:
                return stored, schema
        there = ", ".join(schemas) or "none"
        gone = self._engine.history.gone.get(name, "") if isinstance(name, str) else ""
        fix = f"{gone}{did_you_mean(name, schemas)}there are: {there}"
        raise UnknownName(f"there is no view or source {name!r}", fix=fix)

    def trace(self, name: str, at: int) -> tuple[Trace, Schema]:
        """The rows of a view or fed source at a tick, and the columns that it had then."""
        history, layout = self._engine.history, self._engine.layout
        source = history.sources.get(name)
        if source is not None:
            return layout.source_rows(name, source.schema, source.primary_key), source.schema
        generation = history.generation(name, at)
        return layout.rows_of(generation), generation.schema

    def same_view_since(self, name: str, since: int) -> None:
        """OutOfRange where the name was another view's at a tick; tick 0 had none."""
        history = self._engine.history
        tick = history.registered_again.get(name.casefold(), -1)
        if 0 < since <= tick and since < history.tick:
            raise another_view(name, tick)

    def same_columns_since(self, name: str, since: int) -> Schema:
        """The columns of a view or source; OutOfRange where they changed after a tick."""
        history = self._engine.history
        if name in history.sources:
            return history.sources[name].schema
        newest = history.generation(name)
        if newest.first_tick > since:
            before = history.generation(name, newest.first_tick - 1)
            raise OutOfRange(
                f"tick {newest.first_tick} gave view {name} the columns ({newest.schema.ddl}) "
                f"instead of ({before.schema.ddl}): changes don't add up across it",
                where=f"view {name}",
                fix=f"read snapshot({name!r}, at={newest.first_tick}), and go on with "
                f"since={newest.first_tick}",
            )
        return newest.schema

    def checked(self, tick: int | None, argument: str) -> int:
        """The tick that is meant, the newest for None; OutOfRange for one that isn't there."""
        newest = self._engine.history.tick
        if tick is None:
            return newest
        if isinstance(tick, bool) or not isinstance(tick, int) or not 0 <= tick <= newest:
            raise OutOfRange(
                f"{argument}={tick!r} is not a tick of this flow",
                where=f"{argument}=",
                fix=f"give a tick from 0 to {newest}",
            )
        return tick
