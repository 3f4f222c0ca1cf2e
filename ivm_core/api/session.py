"""`Session`: a Datalog program that is stepped: facts in, exact changes of relations out.

    with Session.create(program) as session:
        session.insert("edge", [(1, 2), (2, 3)])
        session.step()["tc"]                    # [((1, 2), 1), ((1, 3), 1), ((2, 3), 1)]

A session is a flow underneath: a source for each input relation, a view for each derived one.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from ivm_core.api.arguments import recursion_limits
from ivm_core.api.batch import DeltaBatch
from ivm_core.api.datalog_flow import ProgramFlow
from ivm_core.api.fact_rows import FactRows, StepDelta
from ivm_core.api.facts import INSERT, REMOVE, Operations, checked_facts
from ivm_core.api.flow import IncrementalFlow
from ivm_core.api.session_reading import SessionReader
from ivm_core.api.step_handle import StepHandle
from ivm_core.engine.active_session import active_session_kept
from ivm_core.engine.core import Engine
from ivm_core.engine.evaluation import without_advice
from ivm_core.model.errors import (
    RecursionLimit,
    TickConflict,
    TickFailed,
    UnknownName,
    UserError,
    WrongThread,
)
from ivm_core.model.names import did_you_mean
from ivm_core.store.location import Location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from ivm_core.api.fact_rows import Fact
    from ivm_core.api.facts import Rows
    from ivm_core.frontend.datalog.program import Program
    from ivm_core.frontend.datalog.relations import Relation
    from ivm_core.frontend.datalog.strata import Stratum
    from ivm_core.operators.bound_batch import BoundBatch

EMIT, LOAD = "emit", "load"
DISCARD = "remove the facts that it fails on, or discard() all that wait; then step again"
ENDLESS = (
    "bound the recursion by a comparison, or create the session with a larger max_iterations= or "
    "max_rows="
)
Callback = Any  # called with the changed rows of a relation


class Session:
    """A program with its facts, which one thread uses; another one gets `WrongThread`."""

    def __init__(
        self, flow: IncrementalFlow, engine: Engine, compiled: ProgramFlow, initial: str
    ) -> None:
        """Use `Session.create`."""
        self._flow = flow
        self._compiled = compiled
        self._initial = initial
        self._thread = threading.get_ident()
        self._reader = SessionReader(engine)
        self._waiting: dict[str, Operations] = {}
        self._waiting_lock = threading.Lock()
        self._callbacks: dict[str, list[Callback]] = {}
        self._running: StepHandle | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._place: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    def create(
        cls,
        program: str | PathLike[str],
        path: str | PathLike[str] | None = None,
        spark: SparkSession | None = None,
        *,
        initial: str = EMIT,
        max_iterations: int | None = None,
        max_rows: int | None = None,
    ) -> Session:
        """A session of a program, given as text or as the path of a file.

        It is stored at `path`, and goes on from there if it is there already; without one it lives
        in a temporary directory until it is destroyed. With `initial="load"` the first step emits
        nothing. `max_iterations` and `max_rows` bound a recursion within one step.

        `DatalogError` or `Unsupported` for a program without meaning, `DefinitionConflict` where
        `path` has another one; then nothing is made.
        """
        if initial not in (EMIT, LOAD):
            raise UserError(
                f"initial={initial!r} is not known", where="initial=", fix=f'"{EMIT}" or "{LOAD}"'
            )
        if path is not None and not isinstance(path, str | PathLike):
            raise UserError(f"{path!r} is not a path or URI", fix="give a directory or a URI")
        text = program_text(program)
        recursion_limits(max_iterations, max_rows)
        compiled = ProgramFlow.of(text, max_iterations, max_rows)
        place: tempfile.TemporaryDirectory[str] | None = None
        if path is None:
            place = tempfile.TemporaryDirectory(
                prefix="tideview-session-", ignore_cleanup_errors=True
            )
            root: str | PathLike[str] = place.name
        else:
            root = path
        is_new = _is_missing(root)
        # a step may run in another thread, which doesn't see which session is active here
        engine = Engine(Location(root), spark or SparkSession.getActiveSession())
        is_new = is_new and not engine.log.entries
        flow = IncrementalFlow(engine)
        try:
            engine.recover()
            compiled.declare(flow, engine)
        except BaseException:
            is_ours = is_new and not _has_other_writers(engine)
            flow.close()
            if place is not None:
                place.cleanup()
            elif is_ours:
                shutil.rmtree(root, ignore_errors=True)
            raise
        session = cls(flow, engine, compiled, initial)
        session._place = place
        return session

    # --- facts ---

    def insert(self, relation: str, facts: Rows) -> None:
        """Let facts be there from the next step on.

        An unknown relation is `UnknownName`, a derived one `UserError`, a value that doesn't fit
        `BatchError`; then none of the facts is taken.
        """
        self._buffer(relation, facts, INSERT)

    def remove(self, relation: str, facts: Rows) -> None:
        """Let facts be gone from the next step on; raises what `insert` does."""
        self._buffer(relation, facts, REMOVE)

    def discard(self) -> None:
        """Forget what was inserted and removed since the last step."""
        self._check()
        self._waiting = {}

    # --- steps ---

    def step(self) -> StepDelta:
        """Take what was inserted and removed, all or nothing, and say what changed.

        A step that fails leaves everything as it was, what waits for it too: `TickFailed` with the
        relation and its rules.
        """
        self._start()
        return self._step(self._taken())

    def step_async(self) -> StepHandle:
        """Begin a step in another thread; `result()` of the handle is what `step` returns.

        Facts may be inserted and removed meanwhile, for the step after; reading waits.
        """
        self._start()
        taken = self._taken()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="tideview-step")
        self._running = StepHandle(self._pool.submit(self._step, taken))
        return self._running

    def on_delta(self, relation: str, callback: Callback) -> Callable[[], None]:
        """Call back with the rows of an output relation whenever a step has changed some.

        It is called after the step is committed, in the thread that steps, and after `alter` too.
        Returns a function that ends it.
        """
        self._check()
        if relation not in self.program.outputs:
            raise self._unknown(relation, self.program.outputs, "output relation")
        if not callable(callback):
            raise UserError(
                f"{callback!r} can't be called",
                where=f"relation {relation}",
                fix="give a function that takes the rows that changed",
            )
        self._callbacks.setdefault(relation, []).append(callback)

        def stop() -> None:
            waiting = self._callbacks.get(relation, [])
            if callback in waiting:
                waiting.remove(callback)

        return stop

    def alter(self, program: str | PathLike[str]) -> StepDelta:
        """Go on with another program over the same inputs; says what that changed.

        Rules may change, derived relations come and go, inputs come. An input that goes or gets
        other columns, and a relation that is derived in one program and given in the other, are
        refused (`DatalogError`). What was inserted and removed waits for the next step.
        """
        self._start()
        compiled = self._compiled
        other = ProgramFlow.of(program_text(program), compiled.max_iterations, compiled.max_rows)
        before = self.epoch
        with self._reader.busy:
            engine = self._reader.engine
            try:
                with active_session_kept(lambda: engine.spark):
                    compiled.change_to(other, self._flow, engine)
            except TickFailed as error:
                raise self._failed(error, other) from error
            self._compiled = other
        was, now = compiled.program, self.program
        kept = {
            name
            for name in now.outputs
            if name in was.outputs and was.relations[name].columns == now.relations[name].columns
        }
        since = {name: before if name in kept else None for name in now.outputs}
        delta = self._delta(since, {}, None)
        self._call_back(delta)
        return delta

    # --- reading ---

    def snapshot(self, relation: str) -> FactRows[Fact]:
        """The facts of any relation of the program, as of the last step."""
        self._check()
        if not isinstance(relation, str) or relation not in self.program.relations:
            raise self._unknown(relation, self.program.relations, "relation")
        stored = relation if relation in self._compiled.views else self._compiled.sources[relation]
        with self._reader.busy:
            return self._reader.facts(stored, self._flow.current_tick)

    @property
    def epoch(self) -> int:
        """How many steps there were: the flow's tick."""
        self._check()
        with self._reader.busy:
            return self._flow.current_tick

    def explain(self, relation: str | None = None) -> str:
        """Inputs, strata with their rules, and outputs; or how one relation is maintained."""
        self._check()
        if relation is None:
            return self.program.explain()
        if relation not in self._compiled.views:
            raise self._unknown(relation, self._compiled.views, "derived relation")
        with self._reader.busy:
            return str(self._flow.explain(relation))

    @property
    def program(self) -> Program:
        """The program as it was checked."""
        return self._compiled.program

    @property
    def strata(self) -> tuple[Stratum, ...]:
        """Relations that are computed together, lower ones first."""
        return self.program.strata

    @property
    def flow(self) -> IncrementalFlow:
        """The flow underneath: its history, checks and replay. Feed it by the session only."""
        self._check()
        return self._flow

    # --- the end ---

    def destroy(self) -> None:
        """Let go of the flow, once a step that runs is done; remove it if it is temporary."""
        if self._reader.is_closed:
            return
        self._check()
        if self._pool is not None:
            self._pool.shutdown()
        with self._reader.busy:
            self._reader.is_closed = True
            self._flow.close()
        self._waiting = {}
        self._callbacks = {}
        if self._place is not None:
            self._place.cleanup()

    def __enter__(self) -> Session:
        """The session itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Destroy."""
        self.destroy()

    def __repr__(self) -> str:
        """How far it has come, and what it derives."""
        state = "destroyed" if self._reader.is_closed else f"{len(self._waiting)} inputs waiting"
        return f"Session({', '.join(self.program.derived)}; {state})"

    # --- how ---

    def _buffer(self, relation: str, facts: Rows, operation: int) -> None:
        self._check()
        checked = checked_facts(self._input(relation), facts)
        with self._waiting_lock:
            self._waiting.setdefault(relation, Operations()).add(checked, operation)

    def _input(self, name: str) -> Relation:
        relation = self.program.relations.get(name) if isinstance(name, str) else None
        if relation is None:
            raise self._unknown(name, self.program.inputs, "input relation")
        if name not in self._compiled.sources:
            raise UserError(
                f"{name} is derived, and takes no facts",
                where=f"relation {name}",
                fix=f"change what it is derived from, or declare it as .input {name}",
            )
        return relation

    @staticmethod
    def _unknown(name: object, among: Iterable[str], kind: str) -> UnknownName:
        names = list(among)
        fix = f"{did_you_mean(name, names)}there are: {', '.join(names) or 'none'}"
        return UnknownName(f"there is no {kind} {name!r}", fix=fix)

    def _check(self) -> None:
        if threading.get_ident() != self._thread:
            raise WrongThread(
                "this session was created by another thread",
                fix="use it in the thread that created it",
            )
        _ = self._reader.engine  # or it is destroyed

    def _start(self) -> None:
        self._check()
        if self._running is not None and not self._running.done():
            raise TickConflict(
                "a step is under way", fix="wait for it: result() of what step_async returned"
            )

    def _taken(self) -> dict[str, Operations]:
        with self._waiting_lock:
            taken, self._waiting = self._waiting, {}
        return taken

    def _step(self, taken: dict[str, Operations]) -> StepDelta:
        with self._reader.busy:
            engine = self._reader.engine
            try:
                with active_session_kept(lambda: engine.spark):
                    engine.begin_writing()
                    before = engine.history.tick
                    batches, ignored = self._batches(taken)
                    summary = engine.tick(batches, pull=False)
            except BaseException as error:
                with self._waiting_lock:  # its owner may be adding facts to the next step
                    for name, operations in taken.items():
                        later = self._waiting.get(name, Operations())
                        self._waiting[name] = operations.followed_by(later)
                if isinstance(error, TickFailed) and error.view:
                    raise self._failed(error) from error
                raise
        loads = before == 0 and self._initial == LOAD
        since = summary.tick if loads else before
        delta = self._delta(dict.fromkeys(self.program.outputs, since), ignored, summary)
        self._call_back(delta)
        return delta

    def _batches(
        self, taken: Mapping[str, Operations]
    ) -> tuple[dict[str, BoundBatch], dict[str, int]]:
        batches, ignored = {}, {}
        for name, operations in taken.items():
            source = self._compiled.sources[name]
            schema = self.program.relations[name].schema
            present = self._reader.present(source, operations.of)
            facts, weights, ignored[name] = operations.against(present)
            if facts:
                batches[source] = DeltaBatch.of(facts, weights).bind(source, schema, ())
        return batches, ignored

    def _delta(
        self, since: Mapping[str, int | None], ignored: Mapping[str, int], summary: Any
    ) -> StepDelta:
        """What came and went after a tick; of relations without one everything came."""
        at = self._reader.engine.history.tick
        rows = {
            name: self._reader.all_new(name, at)
            if tick is None
            else self._reader.changes(name, tick, at)
            for name, tick in since.items()
        }
        return StepDelta(rows, at, ignored, summary)

    def _call_back(self, delta: StepDelta) -> None:
        """Call all of them; then raise the first error of any, the step being committed."""
        errors = []
        for relation, callbacks in tuple(self._callbacks.items()):
            for callback in tuple(callbacks):
                try:
                    if delta.get(relation):
                        callback(delta[relation])
                except Exception as error:
                    errors.append(error)
        if errors:
            raise errors[0]

    def _failed(self, error: TickFailed, of: ProgramFlow | None = None) -> TickFailed:
        """The error in the program's own terms: that of the session, or one that it would get."""
        compiled = of or self._compiled
        rules = compiled.rules_of(error.view)
        where = f"relation {error.view}\n{rules}" if rules else error.where
        fix = DISCARD if type(error) is TickFailed else error.fix
        if of is not None:
            fix = "correct the rules, or first remove the facts that they fail on"
        if isinstance(error, RecursionLimit):
            strata = enumerate(compiled.program.strata, 1)
            number = next((n for n, each in strata if error.view in each.relations), 0)
            where, fix = f"stratum {number}, {where}", ENDLESS
        return type(error)(
            without_advice(error.what),
            where,
            fix,
            view=error.view,
            cause=without_advice(error.cause),
            row=error.row,
        )


def program_text(program: str | PathLike[str]) -> str:
    """A program's text, given as such or as the path of its file."""
    if not isinstance(program, PathLike):
        return program
    try:
        return Path(program).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"the program {program} can't be read: {error}", fix="give its text, or its path"
        ) from error


def _has_other_writers(engine: Engine) -> bool:
    """Whether somebody beside this engine has written to a flow that it has made."""
    engine.log.refresh()
    return sum(entry.kind == "epoch" for entry in engine.log.entries) > 1


def _is_missing(root: str | PathLike[str]) -> bool:
    """Whether nothing is at a local path."""
    return "://" not in str(root) and not Path(root).exists()
