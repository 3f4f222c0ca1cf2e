"""Evaluating the stages of one view in one tick.

For every stage with a changed input: work out what the change can reach, fetch that, run the
operator's statements, store the result. Small work runs in the low gear on rows that were fetched
by key; what is large, or reached by no key, runs in the high gear on the traces' files.
"""

from __future__ import annotations

import re
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException, PythonException

from ivm_core.compile.lowering import Lowering
from ivm_core.compile.program import stage_catalog
from ivm_core.engine.costs import HIGH, LOW, WHOLE, Cost
from ivm_core.engine.fetching import TooLarge
from ivm_core.engine.high_gear import HighGearRun
from ivm_core.engine.low_gear import LowGearRun
from ivm_core.engine.offending import RowFails
from ivm_core.engine.readings import Readings
from ivm_core.engine.refolding import RefoldedRun, is_refoldable, refolding_run
from ivm_core.engine.relations import LOCAL_ROWS
from ivm_core.engine.two_gears import FoldedBySparkRun, FoldedOnDriverRun, is_chain
from ivm_core.engine.whole import ASKED_FOR, WholeRun
from ivm_core.model.digest import Digest
from ivm_core.model.errors import TickFailed
from ivm_core.plan.nodes import Negated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ivm_core.compile.program import StageProgram, ViewProgram
    from ivm_core.engine.relations import Change, TickRelations
    from ivm_core.engine.stage_run import Inlined, StageRun
    from ivm_core.plan.nodes import Node


HYDRATED_LOCALLY = 20_000
"""Rows of a first hydration beyond which compiled code is worth its compilation."""


@dataclass
class ViewResult:
    """What a tick did to a view."""

    skipped: bool = False
    rows_out: int = 0
    deletions: int = 0
    net: int = 0
    digest: Digest = field(default_factory=Digest.zero)
    duration_ms: float = 0.0
    ways: dict[str, str] = field(default_factory=dict)
    costs: dict[str, Cost] = field(default_factory=dict)
    replaces: bool = False
    """Whether `digest` is of all its rows, since none of those before count any more."""


_ADVICE = re.compile(
    r"\s*(?:Use [`'\"]?try_\w+[`'\"]?.*?instead\.|If necessary,? set .*?bypass this error\.?)"
)


class ViewEvaluation:
    """One view in one tick: its stages in order, and what passes between them."""

    def __init__(
        self,
        program: ViewProgram,
        relations: TickRelations,
        upto: int,
        *,
        shared_by: Sequence[str] = (),
        by_difference: bool = False,
    ) -> None:
        """`upto` is the tick that the view has seen; 0 for a view without rows yet.

        A shared node is evaluated as a view is; `shared_by` are the views that read it. With
        `by_difference` every stage is recomputed and compared with what it was.
        """
        self.program = program
        self.relations = relations
        self.upto = upto
        self.hydrates = upto == 0
        self.shared_by = shared_by
        self.by_difference = by_difference
        self.catalog = stage_catalog(program, relations.schemas)
        self.types = program.stage_types
        self.inner = {stage.stage.relation: stage for stage in program.stages[:-1]}
        self.inlined: dict[str, Inlined] = {}
        self.unkept: set[str] = set()
        """Stages of which only the change is known: nobody keeps their rows."""
        self._changes: dict[str, Change | None] = {}
        self._beyond_low: dict[str, str] = {}

    def run(self) -> ViewResult:
        """Evaluate every stage that has something to do; TickFailed names view and node."""
        started = time.perf_counter()
        result = ViewResult()
        worked = self._advance(self.program.stages, result)
        result.skipped = not worked
        self.relations.produced[self.program.name] = self._changes[self.program.name]
        result.duration_ms = (time.perf_counter() - started) * 1000
        return result

    def run_below(self, result: ViewResult) -> None:
        """Evaluate the stages below the view's own rows, which someone else works out."""
        self._advance(self.program.stages[:-1], result)

    def take(self, change: Change | None) -> None:
        """The change of the view's rows, which someone else has worked out."""
        self._changes[self.program.name] = change
        self.relations.produced[self.program.name] = change

    def _advance(self, stages: Sequence[StageProgram], result: ViewResult) -> bool:
        """Evaluate those stages that have something to do; whether there was one."""
        worked = False
        for stage in stages:
            relation = stage.stage.relation
            dirty = self._dirty(stage)
            if not (dirty or self.hydrates):
                result.ways[relation] = "skipped: no input changed"
                self._changes[relation] = None
                continue
            worked = True
            began = time.perf_counter()
            readings = Readings(self, stage, dirty)
            with self.telling(relation):
                run, reason = self._run_stage(stage, dirty, readings)
            verb = "hydrated" if self.hydrates else run.way
            result.ways[relation] = f"{verb}, {run.gear}" + (f" ({reason})" if reason else "")
            result.costs[relation] = self._cost(run, readings, (time.perf_counter() - began) * 1000)
            self._changes[relation] = run.change
            if relation == self.program.name and run.change is not None:
                result.digest = run.digest
                result.rows_out = run.change.count
                result.deletions = run.change.deletions
                result.net = run.change.net
        return worked

    @contextmanager
    def telling(self, relation: str) -> Iterator[None]:
        """TickFailed, with view and node, for what Spark raises within."""
        try:
            yield
        except RowFails as error:
            raise self._failure(relation, error.__cause__, error.text) from error
        except PySparkException as error:
            raise self._failure(relation, error) from error

    def _failure(self, relation: str, error: BaseException | None, row: str = "") -> TickFailed:
        said = spark_message(error) if isinstance(error, PySparkException) else str(error)
        views = self.shared_by or [self.program.name]
        whose = f"view {views[0]}" if len(views) == 1 else f"views {', '.join(views)}"
        return TickFailed(
            f"the tick can't be evaluated: {said}",
            where=f"{whose}, node {relation}",
            view=views[0],
            cause=type(error).__name__,
            row=row,
        )

    def change(self, name: str) -> Change | None:
        """A relation's change since this view last looked."""
        if name not in self._changes:
            change = self.relations.localised(self.relations.change(name, self.upto), name)
            self._changes[name] = self.relations.narrowed(change, name)
        return self._changes[name]

    def known_change(self, name: str) -> Change | None:
        """A relation's change; None also for that of a step whose rows nobody keeps."""
        return None if name in self.inlined else self.change(name)

    def lowering(
        self, dirty: frozenset[str], unsettled: frozenset[str], whole: Node | None = None
    ) -> Lowering:
        """The renderer for a set of changed relations."""
        empty = self._empty(dirty)
        return Lowering(self.catalog, self.types, dirty, empty, unsettled=unsettled, whole=whole)

    def knows_before(self, stage: StageProgram) -> bool:
        """Whether the stage's inputs are all there as they were; of some only the change is."""
        return stage.stage.body.relations.isdisjoint(self.unkept)

    def is_insert_only(self, stage: StageProgram, dirty: frozenset[str]) -> bool:
        """Whether the stage's body gains rows and loses none: no netted change of an input does."""
        body = stage.stage.body
        if dirty & set(self.inlined) or any(isinstance(each, Negated) for each in body.walk()):
            return False
        changes = [self.change(name) for name in dirty]
        return all(change is not None and not change.deletions for change in changes)

    def has_gone_rows(self, name: str, upto: int) -> bool:
        """Whether the files of a relation may hold rows that are gone, up to a tick."""
        if name in self.inner:
            # a hydration gives it its first rows; later ones are not counted
            return not self.hydrates
        return self.relations.has_gone_rows(name, upto)

    def _dirty(self, stage: StageProgram) -> frozenset[str]:
        if self.hydrates:
            return frozenset()
        names = stage.stage.body.relations
        return frozenset(n for n in names if n in self.inlined or self.change(n) is not None)

    def _empty(self, dirty: frozenset[str]) -> frozenset[str]:
        """Changed relations that had no rows before."""
        if self.hydrates:
            return frozenset()
        return frozenset(
            name for name in dirty - self.unkept if not self.relations.row_count(name, self.upto)
        )

    def _run_stage(
        self, stage: StageProgram, dirty: frozenset[str], readings: Readings
    ) -> tuple[StageRun, str]:
        if self.by_difference and readings.has_choice:
            return self._run(WholeRun(self, stage, dirty)), ASKED_FOR
        why_not_low = readings.why_not_low()
        reason = self._why_high(stage, dirty) or why_not_low
        if reason and not why_not_low and FoldedOnDriverRun.is_for(self, stage, dirty):
            with suppress(TooLarge):
                return self._run(FoldedOnDriverRun(self, stage, dirty)), ""
        if not reason:
            why_whole = readings.why_whole(LOW)
            if why_whole:
                return self._run_whole(stage, dirty), why_whole
            low = LowGearRun(self, stage, dirty)
            try:
                low.execute()
            except TooLarge as large:
                reason = str(large)
                self._beyond_low[stage.stage.relation] = reason
            else:
                return low, ""
        why_whole = readings.why_whole(HIGH)
        if why_whole:
            return self._run_whole(stage, dirty), why_whole
        may_be_few = not (self.hydrates or readings.why_not_low())
        if may_be_few and FoldedBySparkRun.is_for(self, stage, dirty):
            try:
                return self._run(FoldedBySparkRun(self, stage, dirty)), reason
            except TooLarge as large:
                reason = str(large)
                self._beyond_low[stage.stage.relation] = reason
        return self._run(HighGearRun(self, stage, dirty)), reason

    def _run_whole(self, stage: StageProgram, dirty: frozenset[str]) -> StageRun:
        """Work a stage out from all rows."""
        if not is_refoldable(self, stage):
            return self._run(WholeRun(self, stage, dirty))
        try:
            return self._run(refolding_run(self, stage, dirty))
        except TooLarge:
            return self._run(RefoldedRun(self, stage, dirty))

    def _cost(self, run: StageRun, readings: Readings, ms: float) -> Cost:
        if self.hydrates and isinstance(run, HighGearRun) and run.stage.stage.aggregate is None:
            rows = sum(self._rows_now(name) for name in run.stage.stage.body.relations)
            return Cost(WHOLE, rows, ms)
        reason = self._beyond_low.get(run.stage.stage.relation, "")
        beyond = (readings.rows(LOW), reason) if reason else None
        return Cost(run.cost_way, readings.rows(run.cost_way), ms, beyond_low=beyond)

    @staticmethod
    def _run(run: StageRun) -> StageRun:
        run.execute()
        return run

    def _why_high(self, stage: StageProgram, dirty: frozenset[str]) -> str:
        total, body = 0, stage.stage.body
        for name in body.relations:
            if name in self.inlined:
                if self.inlined[name].is_stored:
                    return f"{name} is in files"
            elif self.hydrates:
                total += self._rows_now(name)
            elif name in dirty:
                change = self.change(name)
                if change is not None and (
                    change.table is None or (change.count > LOCAL_ROWS and is_chain(body))
                ):
                    return f"{change.count} changes of {name}"
        return f"{total} rows to read" if total > HYDRATED_LOCALLY else ""

    def _rows_now(self, name: str) -> int:
        if name in self.inner:
            change = self.change(name)
            return 0 if change is None else change.count
        last = self.relations.tick - 1
        change = self.relations.change(name, last)
        return self.relations.row_count(name, last) + (change.count if change else 0)


def without_advice(said: str) -> str:
    """What Spark says, without SQL, functions and settings where nobody has any of them."""
    return _ADVICE.sub("", said.partition("\n== SQL")[0]).strip()


def spark_message(error: PySparkException) -> str:
    """Spark's own text without the stack."""
    text = str(error).split("\n\nJVM stacktrace")[0]
    text = text.split("\n\tat ")[0].strip()
    if isinstance(error, PythonException) and "Traceback (most recent call last)" in text:
        return text.splitlines()[-1].strip()  # what the function raised, and not where
    return text
