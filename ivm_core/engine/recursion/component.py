"""A component in one tick: the steps below its rules, then all its views together."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ivm_core.engine.costs import LOW, WHOLE, Cost
from ivm_core.engine.evaluation import HYDRATED_LOCALLY, ViewResult
from ivm_core.engine.fetching import FETCHED_ROWS, TooLarge
from ivm_core.engine.gears import LocalRows, StoredRows
from ivm_core.engine.layout import ticked, weighted
from ivm_core.engine.netted_frames import netted_frame
from ivm_core.engine.recursion.bag_delta import BagDeltas
from ivm_core.engine.recursion.delta import Deltas
from ivm_core.engine.recursion.in_spark import InSpark
from ivm_core.engine.recursion.inputs import DRIVER_ROWS, rows_now
from ivm_core.engine.recursion.whole import on_driver
from ivm_core.engine.recursion.work import Work
from ivm_core.engine.relations import LOCAL_ROWS, Change, local_change
from ivm_core.engine.whole import ASKED_FOR
from ivm_core.model.digest import Digest
from ivm_core.model.errors import InternalError, RecursionLimit
from ivm_core.model.names import WEIGHT, quote
from ivm_core.operators.netting import net, stacked
from ivm_core.operators.row_identity import digest_of
from ivm_core.operators.row_sets import taken_away, with_weight

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from ivm_core.engine.evaluation import ViewEvaluation
    from ivm_core.plan.recursion import Limits
    from ivm_core.store.trace import Trace


WORTH_A_LOOK_MS = 1_000
"""A delta that takes less is taken, whatever all rows would take: they are more some day."""


class ComponentEvaluation:
    """Views that read each other, brought to their fixpoint as one."""

    def __init__(self, views: Mapping[str, ViewEvaluation], limits: Limits) -> None:
        """By name, a next definition by that of the view; all have seen the same ticks."""
        self._views = views
        self._limits = limits
        self._results: dict[str, ViewResult] = {}
        self._beyond: tuple[int, str] | None = None

    @property
    def tasks(self) -> dict[str, Callable[[], ViewResult]]:
        """The first view's task does the work; those of the others, run after it, tell of it."""
        first, *others = self._views
        return {first: self._run, **{name: partial(self._result, name) for name in others}}

    def _result(self, name: str) -> ViewResult:
        if name not in self._results:
            raise InternalError(f"{name} was asked for before its component was evaluated")
        return self._results[name]

    def _run(self) -> ViewResult:
        started = time.perf_counter()
        self._results = {name: ViewResult() for name in self._views}
        for name, view in self._views.items():
            view.run_below(self._results[name])
        first = next(iter(self._views))
        with self._views[first].telling(first):
            self._evaluate(Work(self._views, self._limits))
        for result in self._results.values():
            result.duration_ms = (time.perf_counter() - started) * 1000
        return self._results[first]

    def _evaluate(self, work: Work) -> None:
        dirty = [name for name in work.below if work.reader[name].change(name) is not None]
        if not dirty and not work.first.hydrates:
            for name, view in self._views.items():
                view.take(None)
                self._results[name].skipped = True
                self._results[name].ways[name] = "skipped: no input changed"
            return
        began = time.perf_counter()
        way, told = self._by_delta(work, dirty)
        if told is None:
            told = self._whole(work, way)
            way = WHOLE
        ms = (time.perf_counter() - began) * 1000
        for name in self._views:
            self._results[name].ways[name] = told
        rows = self._changed(work, dirty) if way == LOW else self._read_by_all(work)
        self._results[work.names[0]].costs[work.names[0]] = Cost(
            way, rows, ms, beyond_low=self._beyond
        )

    def _by_delta(self, work: Work, dirty: list[str]) -> tuple[str, str | None]:
        """Fold the change on the driver; what there is to say of it, or why it isn't done."""
        if work.first.hydrates:
            return "", None
        if work.first.by_difference:
            return ASKED_FOR, None
        changed = self._changed(work, dirty)
        costs, first = work.relations.history.costs, work.names[0]
        reason = costs.why_not_low(first, changed)
        if (costs.expected_ms(first, LOW, changed) or 0) > WORTH_A_LOOK_MS:
            reason = reason or costs.why_whole(first, LOW, changed, self._read_by_all(work)) or ""
        if reason:
            return reason, None
        deltas = (BagDeltas if work.is_bag else Deltas)(work, dirty)
        try:
            found = deltas.run()
        except TooLarge as large:
            self._beyond = (changed, str(large))
            work.ledger.restart()
            return str(large), None
        except RecursionLimit:
            if not work.is_bag:
                raise
            # rows that go may run in circles that nothing reaches any more
            work.ledger.restart()
            return "the delta found no end", None
        for name in self._views:
            if name in found:
                self._emit(work, name, found[name])
            else:
                self._take(name, None, Digest.zero())
        ledger = work.ledger
        phases = ", ".join(f"{count} to {phase}" for phase, count in ledger.phases.items())
        return LOW, f"delta, low gear, iterations: {phases or 'none'}; {ledger.rows} rows derived"

    @staticmethod
    def _changed(work: Work, dirty: list[str]) -> int:
        changes = (work.reader[name].change(name) for name in dirty)
        return sum(change.count for change in changes if change is not None)

    @staticmethod
    def _read_by_all(work: Work) -> int:
        own = sum(work.relations.row_count(name, work.first.upto) for name in work.names)
        return own + sum(rows_now(work, name) for name in work.below)

    def _whole(self, work: Work, reason: str) -> str:
        """All rows anew, compared with those that there were; what there is to say of it."""
        hydrates = work.first.hydrates
        way = "hydrated" if hydrates else "recomputed and compared"
        count = sum(rows_now(work, name) for name in work.below)
        is_small = count <= HYDRATED_LOCALLY
        if is_small or (count <= DRIVER_ROWS and not work.is_bag):
            work.is_large = not is_small
            try:
                found = on_driver(work, FETCHED_ROWS if is_small else DRIVER_ROWS)
            except TooLarge as large:
                reason = reason or str(large)
                work.ledger.restart()
            else:
                for name, table in found.items():
                    rows = table if work.is_bag else with_weight(table, 1)
                    self._emit(work, name, rows if hydrates else self._without_own(name, rows))
                return _told(work, f"{way}, low gear", reason)
            finally:
                work.is_large = False
        for name, frame in InSpark(work).run().items():
            self._emit_frame(work, name, frame)
        return _told(work, f"{way}, high gear", reason or f"{count} rows to read")

    def _without_own(self, name: str, rows: pa.Table) -> pa.Table:
        """The rows without those that the view has."""
        view = self._views[name]
        own = view.relations.old(name, view.upto)
        if own is None:
            raise InternalError(f"the rows of {name} can't be read")
        return stacked(rows, taken_away(own.select(rows.column_names)))

    def _emit(self, work: Work, name: str, rows: pa.Table) -> None:
        """Store a view's change from the driver."""
        schema, relations = work.schemas[name], work.relations
        table = net(rows, schema)
        if table.num_rows > LOCAL_ROWS:
            rows_of = LocalRows(table, weighted(schema))
            self._write(work, name, relations.gears.read(rows_of))
            return
        self._trace(name).append(table, relations.tick, relations.epoch)
        self._take(name, local_change(table, schema), digest_of(table, schema))

    def _emit_frame(self, work: Work, name: str, frame: DataFrame) -> None:
        """Store a view's change by Spark."""
        view, relations = self._views[name], work.relations
        schema = work.schemas[name]
        names = [quote(each) for each in schema.names]
        if not work.is_bag:
            frame = frame.withColumn(WEIGHT, F.lit(1).cast("bigint"))
        frame = frame.select(*names, WEIGHT)
        if not view.hydrates:
            own = relations.gears.read(relations.stored(name, view.upto))
            frame = frame.unionAll(own.select(*names, (-F.col(WEIGHT)).alias(WEIGHT)))
            frame = netted_frame(frame, schema)
        self._write(work, name, frame)

    def _write(self, work: Work, name: str, frame: DataFrame) -> None:
        """Store a view's netted change by Spark."""
        relations, schema = work.relations, work.schemas[name]
        trace, stored = self._trace(name), weighted(schema)
        target = trace.spark_target(relations.tick, relations.epoch)
        written = relations.gears.write_frame(frame, stored, target, relations.tick)
        trace.adopt(relations.tick, relations.epoch)
        change = None
        if written.rows:
            rows = StoredRows((target,), ticked(stored))
            whole = Change(rows, written.rows, written.deletions, written.net)
            change = relations.localised(whole, name)
        self._take(name, change, written.digest)

    def _take(self, name: str, change: Change | None, digest: Digest) -> None:
        self._views[name].take(change)
        result = self._results[name]
        if change is not None:
            result.digest = digest
            result.rows_out = change.count
            result.deletions = change.deletions
            result.net = change.net

    def _trace(self, name: str) -> Trace:
        view = self._views[name]
        return view.relations.layout.stage_rows(view.program.name, view.program.schema)


def _told(work: Work, way: str, reason: str) -> str:
    ledger = work.ledger
    text = f"{way}, {ledger.iterations} iterations, {ledger.rows} rows derived"
    return f"{text} ({reason})" if reason else text
