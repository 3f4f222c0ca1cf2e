"""What a session reads of its flow on the driver: facts that are there, changes of some ticks.

One thread reads or steps at a time: whoever comes meanwhile waits.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from ivm_core.api.fact_rows import FactRows, changes_in, facts_in
from ivm_core.engine.active_session import active_session_kept
from ivm_core.engine.reading import Reader
from ivm_core.model.errors import ClosedFlow
from ivm_core.model.names import TICK, WEIGHT
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.netting import net
from ivm_core.store.limit import ColumnLimit, Limit, limits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

    from ivm_core.api.fact_rows import Fact
    from ivm_core.engine.core import Engine

LIMITING_COLUMNS = 2


class SessionReader:
    """Reads the flow of one session, in whatever thread."""

    def __init__(self, engine: Engine) -> None:
        """`busy` is held by whoever reads or steps."""
        self._engine = engine
        self.busy = threading.RLock()
        self.is_closed = False

    def present(self, source: str, facts: Iterable[Fact]) -> set[Fact]:
        """Those of the facts that a source has, and perhaps others."""
        engine = self._engine
        definition = engine.history.sources[source]
        schema = arrow_schema(definition.schema)
        rows = list(facts)
        columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
        wanted = pa.table(
            [pa.array(v, f.type) for v, f in zip(columns, schema, strict=True)],
            names=schema.names,
        )
        conjunction = [
            ColumnLimit(name, wanted.column(name))
            for name in wanted.column_names
            if limits(wanted.schema.field(name).type)
        ]
        limit = Limit.all_of(conjunction[:LIMITING_COLUMNS]) if conjunction else None
        trace = engine.layout.source_rows(source, definition.schema, definition.primary_key)
        names = [*definition.schema.names, WEIGHT]
        held = net(
            trace.read(engine.history.committed, None, None, names, limit), definition.schema
        )
        return set(facts_in(held.select(schema.names)))

    def facts(self, view: str, at: int) -> FactRows[Fact]:
        """All facts of a relation as of a tick."""

        def load() -> list[Fact]:
            with self._reading() as reader:
                trace, schema = reader.trace(reader.relation(view)[0], at)
                names = [*schema.names, WEIGHT]
                table = net(trace.read(self._engine.history.committed, at, None, names), schema)
                return [fact for fact, _ in changes_in(table, view)]

        def frame() -> DataFrame:
            with self._reading() as reader, active_session_kept(lambda: self._engine.spark):
                return reader.snapshot(view, at)

        return FactRows(load, frame)

    def all_new(self, view: str, at: int) -> FactRows[tuple[Fact, int]]:
        """All facts of a relation as of a tick, as if they had come with it."""
        facts = self.facts(view, at)

        def frame() -> DataFrame:
            return facts.df.withColumn(WEIGHT, F.lit(1).cast("bigint"))

        return FactRows(lambda: [(fact, 1) for fact in facts], frame)

    def changes(self, view: str, since: int, at: int) -> FactRows[tuple[Fact, int]]:
        """What came and went after one tick up to another."""

        def load() -> list[tuple[Fact, int]]:
            with self._reading() as reader:
                schema = reader.same_columns_since(view, since)
                trace, _ = reader.trace(view, at)
                names = [*schema.names, WEIGHT]
                table = trace.read(self._engine.history.committed, at, since, names)
                return changes_in(net(table, schema), view)

        def frame() -> DataFrame:
            with self._reading() as reader, active_session_kept(lambda: self._engine.spark):
                found = reader.changes(view, since)
                names = [name for name in found.columns if name not in (TICK, WEIGHT)]
                kept = found.where(found[TICK] <= at)
                if at == since + 1:
                    return kept.select(*names, WEIGHT)
                summed = kept.groupBy(*names).agg({WEIGHT: "sum"}).toDF(*names, WEIGHT)
                return summed.where(summed[WEIGHT] != 0)

        return FactRows(load, frame)

    def _reading(self) -> _Reading:
        return _Reading(self)

    @property
    def engine(self) -> Engine:
        """The engine of a session that is open; else `ClosedFlow`."""
        if self.is_closed:
            raise ClosedFlow("this session is destroyed", fix="create it again with Session.create")
        return self._engine


class _Reading:
    """A reader for as long as nobody else reads or steps."""

    def __init__(self, of: SessionReader) -> None:
        self._of = of

    def __enter__(self) -> Reader:
        self._of.busy.acquire()
        try:
            return Reader(self._of.engine)
        except BaseException:
            self._of.busy.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._of.busy.release()
