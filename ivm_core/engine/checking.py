"""Checking a view against its query, run from scratch by Spark at the view's frontier."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from ivm_core.compile.lowering import Lowering
from ivm_core.compile.type_book import relation_schema
from ivm_core.engine.definitions import DELTA
from ivm_core.engine.gears import FrameRows, LocalRows, StoredRows, is_remote
from ivm_core.engine.layout import ticked, weighted
from ivm_core.engine.netted_frames import netted_frame, shown_frame, unweighted
from ivm_core.engine.recursion.naive import InSpark, OnDriver, naive_fixpoint
from ivm_core.engine.relations import LOCAL_ROWS
from ivm_core.model.errors import HistoryLost
from ivm_core.model.names import WEIGHT, quote
from ivm_core.operators.netting import net
from ivm_core.operators.operator import Form
from ivm_core.operators.sql import text_of
from ivm_core.plan.nodes import CLOCKS, NOW

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from ivm_core.compile.program import ViewProgram
    from ivm_core.engine.core import Engine
    from ivm_core.engine.gears import Rows
    from ivm_core.model.schema import Schema

SHOWN = 20
GONE = ("FAILED_READ_FILE.FILE_NOT_EXIST", "FileNotFoundException", "DELTA_FILE_NOT_FOUND")


@dataclass(frozen=True)
class Comparison:
    """A view beside its query."""

    view: str
    tick: int
    equal: bool
    rows: int
    missing: int
    """Rows that the query has and the view lacks."""
    extra: int
    """Rows that the view has and the query lacks."""
    sample: tuple[dict[str, object], ...]
    """Some differing rows; `_weight` is positive where the view lacks them."""
    shard: tuple[int, int] | None = None
    """Which of how many shards was compared; None for all rows."""


def compare_with_query(
    engine: Engine, view: str, shard: tuple[int, int] | None = None
) -> Comparison:
    """Compare as bags, both ways, bit for bit; at tick 0 there is nothing to compare yet.

    With `shard` (k, n) only rows whose key falls into part k of n, on both sides.
    """
    engine.refresh()
    name = engine.catalog.view_name(view)
    upto = engine.history.states[name].upto
    if not upto:
        return Comparison(name, 0, True, 0, 0, 0, (), shard)
    engine.functions.check(engine.history.views[each] for each in engine.catalog.order([name]))
    program = engine.catalog.program(name)
    oracle = Oracle(engine, upto)
    expected = oracle.frame(name).withColumn(WEIGHT, F.lit(1).cast("bigint"))
    actual = oracle.rows(name, program.schema)
    negated = [*[F.col(quote(n)) for n in program.schema.names], (-F.col(WEIGHT)).alias(WEIGHT)]
    both = expected.select(*[quote(n) for n in program.schema.names], WEIGHT).unionAll(
        actual.select(*negated)
    )
    if shard is not None:
        # Spark takes a condition on group keys down to the rows that are grouped
        keys = engine.catalog.row_key(program) or program.schema.names
        part, parts = shard
        both = both.where(F.pmod(F.xxhash64(*[quote(n) for n in keys]), F.lit(parts)) == part)
    difference = netted_frame(both, program.schema)
    with engine.gears.folding(), _with_all_files(name, upto):
        totals = difference.agg(
            F.sum(F.when(F.col(WEIGHT) > 0, F.col(WEIGHT))),
            F.sum(F.when(F.col(WEIGHT) < 0, -F.col(WEIGHT))),
        ).first()
        missing, extra = (int(each or 0) for each in totals or (0, 0))
        sample = shown_frame(difference.limit(SHOWN)) if missing or extra else ()
    return Comparison(
        name,
        upto,
        not (missing or extra),
        engine.history.states[name].rows,
        missing,
        extra,
        sample,
        shard,
    )


@contextmanager
def _with_all_files(view: str, tick: int) -> Iterator[None]:
    """HistoryLost where a source can't be read any more as it was at the view's frontier."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if not any(word in str(error) for word in GONE):
            raise
        raise HistoryLost(
            "files that the query needs are gone: they were vacuumed or deleted",
            where=f"view {view} at tick {tick}",
            fix="tick the view, so that it has seen a newer version, and check again; where that "
            f"is refused as well, {HistoryLost.default_fix}",
        ) from error


class Oracle:
    """The normalised queries over the sources as of one tick."""

    def __init__(self, engine: Engine, tick: int) -> None:
        """Small flows run in the low gear, where a query costs little."""
        self._engine = engine
        self._tick = tick
        self._frames: dict[str, DataFrame] = {}
        gears = engine.gears
        total = sum(state.rows for state in engine.history.states.values())
        total += sum(engine.history.source_rows.values())
        self.is_small = total <= LOCAL_ROWS
        self.session: SparkSession = gears.low if self.is_small else gears.high

    def frame(self, name: str) -> DataFrame:
        """A relation: sources as they were, views by their queries."""
        if name not in self._frames:
            if name in self._engine.history.views and self._engine.catalog.is_recursive(name):
                self._frames |= self._fixpoint(self._engine.catalog.component(name))
            elif name in self._engine.history.views:
                self._frames[name] = self._query(self._engine.catalog.program(name))
            else:
                schema = relation_schema(name, self._engine.catalog.schemas())
                self._frames[name] = unweighted(
                    netted_frame(self.rows(name, schema), schema), schema
                )
        return self._frames[name]

    def _query(self, program: ViewProgram, bound: Sequence[str] = ()) -> DataFrame:
        """The view's query; what is `bound` is there as temporary views already."""
        # all frames before the first name: those of views bind names of their own
        read = {name: self.frame(name) for name in program.plan.relations if name not in bound}
        for name, frame in read.items():
            frame.createOrReplaceTempView(quote(name))
        try:
            return self._engine.gears.query(self.session, recompute_sql(self._engine, program))
        finally:
            # over Connect they are looked up when the query runs
            for name in () if is_remote(self.session) else read:
                self.session.catalog.dropTempView(name)

    def _fixpoint(self, members: tuple[str, ...]) -> dict[str, DataFrame]:
        programs = {name: self._engine.catalog.program(name) for name in members}
        for program in programs.values():
            for relation in program.plan.relations - set(members):
                self.frame(relation)
        return naive_fixpoint(
            self.session,
            {name: program.schema for name, program in programs.items()},
            lambda name: self._query(programs[name], members),
            partial((OnDriver if self.is_small else InSpark).of, self._engine.gears),
            self._engine.catalog.limits(members[0]).iterations,
        )

    def rows(self, name: str, schema: Schema) -> DataFrame:
        """The stored rows of a view or source, with weights."""
        history = self._engine.history
        gears = self._engine.gears
        if name in CLOCKS:
            time = history.time_at(self._tick)
            value = None if time is None else (time if name == NOW else time.date())
            rows = [] if value is None else [(value, 1)]
            field, ddl = CLOCKS[name]
            return self.session.createDataFrame(rows, f"{quote(field)} {ddl}, {WEIGHT} BIGINT")
        source = history.sources.get(name)
        if source is not None and source.kind == DELTA:
            pin = history.pins_at.get(self._tick, {}).get(name)
            if pin is None:
                ddl = f"{schema.ddl}, {WEIGHT} BIGINT"
                return self.session.createDataFrame([], ddl)
            version = int(pin["version"])
            frame = self._engine.followed.pinned(name, pin).spark_frame(self.session, version)
            return frame.select(
                *[quote(n) for n in schema.names], F.lit(1).cast("bigint").alias(WEIGHT)
            )
        if source is not None:
            trace = self._engine.layout.source_rows(name, schema, source.primary_key)
        else:
            trace = self._engine.layout.rows_of(history.generation(name, self._tick))
        bound: Rows
        if self.is_small:
            names = [*schema.names, WEIGHT]
            table = net(trace.read(history.committed, self._tick, None, names), schema)
            bound = LocalRows(table, weighted(schema))
        else:
            uris = trace.uris(history.committed, self._tick)
            bound = StoredRows(uris, ticked(weighted(schema)), at=self._tick)
        return gears.frame_in(self.session, bound)


def recompute_sql(engine: Engine, program: ViewProgram) -> str:
    """The normalised query, with exact sums spelled out where Spark's own depend on row order."""
    lowering = Lowering(engine.catalog.schemas(), program.column_types, exact=True)
    query = lowering.render(program.plan, Form.PLAIN)
    return "" if query is None else text_of(query)


__all__ = ["Comparison", "FrameRows", "Oracle", "compare_with_query"]
