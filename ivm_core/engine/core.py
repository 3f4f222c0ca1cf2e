"""The engine of a flow: definitions, ticks, recovery; the only room that joins program to store."""

from __future__ import annotations

import math
import re
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from ivm_core.engine.analysis import SparkAnalyser
from ivm_core.engine.catalog import Catalog
from ivm_core.engine.certificate import certificate, summary_of
from ivm_core.engine.deduplicating import Deduplication, Memories
from ivm_core.engine.definitions import ViewDefinition
from ivm_core.engine.evaluation import ViewEvaluation, ViewResult
from ivm_core.engine.following import warnings
from ivm_core.engine.functions import Functions
from ivm_core.engine.gears import Gears
from ivm_core.engine.history import History
from ivm_core.engine.layout import Layout
from ivm_core.engine.leftovers import delete_leftovers, delete_unfinished
from ivm_core.engine.local_spark import local_spark
from ivm_core.engine.maintenance import maintain
from ivm_core.engine.native_memory import give_back, share_among_threads
from ivm_core.engine.opening import FORMAT, open_log
from ivm_core.engine.pinning import FollowedTables, PinnedTables
from ivm_core.engine.publishing import Publisher
from ivm_core.engine.recursion.component import ComponentEvaluation
from ivm_core.engine.relations import TickRelations
from ivm_core.engine.retention import fold, held_by
from ivm_core.engine.side_by_side import SideBySide
from ivm_core.engine.staging import Staged, Staging
from ivm_core.engine.swapping import Difference, Swap
from ivm_core.engine.unforeseen import unforeseen, unwritten, written_in_steps
from ivm_core.engine.widening import widen_followed
from ivm_core.engine.writer import WriterLock
from ivm_core.model.errors import (
    CorruptStore,
    InternalError,
    LogicalTimeError,
    SparkLost,
    TickConflict,
    UserError,
    WriteFailed,
)
from ivm_core.model.names import quote
from ivm_core.model.secrets import logger, masked
from ivm_core.store.location import Location
from ivm_core.store.ticklog import TickLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from ivm_core.compile.program import ViewProgram
    from ivm_core.engine.functions import Function
    from ivm_core.engine.summary import StepSummary
    from ivm_core.operators.bound_batch import BoundBatch
    from ivm_core.store.published_table import PublishedTable
    from ivm_core.store.ticklog import Entry

TABLE_PART = re.compile(r"([A-Za-z_]\w*)|`([^`]+)`")
TABLE_NAME = re.compile(r"(?:[A-Za-z_]\w*|`[^`]+`)(?:\.(?:[A-Za-z_]\w*|`[^`]+`)){0,2}")
LOOK_EVERY_SECONDS = 600.0
"""How often a writer looks whether followed tables still have what it has yet to read."""
log = logger(__name__)


class Engine:
    """One flow, opened by one process."""

    def __init__(
        self,
        root: Location,
        spark: SparkSession | None,
        *,
        read_only: bool = False,
        log_at: Location | None = None,
    ) -> None:
        """Open the flow at a location, or make one where there is nothing; `read_only`: neither.

        With `log_at` its log is elsewhere, so that nobody else sees what it does.
        """
        share_among_threads()
        self.history = History()
        self.layout = Layout(
            root, self.history.rows_folder, self.history.has_rows, log_at, self.history.written
        )
        self.log = TickLog.open(self.layout.log, FORMAT) if read_only else open_log(self.layout)
        self._read_only = read_only
        self._is_hidden = log_at is not None
        self.is_scattered = False
        """Whether statements get their rows in other orders and partitions than they come in."""
        self.by_difference = False
        """Whether ticks recompute dirty views and take the difference."""
        self._catch_up()
        self.catalog = Catalog(self.history)
        self.followed = FollowedTables(self.history, root.storage_options)
        self.functions = Functions(stored=self.history.functions)
        self.spark = spark
        self._gears: Gears | None = None
        self._starting = threading.Lock()
        self._side_by_side = SideBySide()
        self._memories = Memories(self.layout, self.history)
        self.published: dict[str, PublishedTable] | None = None
        """Tables of published views that are open; None: it has not been looked which there are."""
        self._looked_at = -math.inf
        self._uncompacted: set[str] = set()
        """Views that ticks have changed since all of those were compacted that have to be."""
        self._lock = WriterLock(root if log_at is None else log_at)
        self._epoch: int | None = None
        self._failed: tuple[int, int] | None = None
        """A tick and epoch that have failed, of which not even that could be written."""
        self.marked = (0, "")
        """How many definitions and ticks the last checkpoint has marked, and their fingerprint."""
        self.differences: dict[str, Difference] = {}
        """What the newest tick that changed definitions made of the rows of those views."""

    # --- parts ---

    @property
    def gears(self) -> Gears:
        """Spark, started when first needed."""
        with self._starting:
            if self._gears is None:
                if self.spark is None:
                    self.spark = _active_spark() or local_spark()
                self._gears = Gears(self.spark, scattered=self.is_scattered)
                for function in self.functions.python:
                    self._gears.register(function)
            return self._gears

    def shadow(
        self, root: Location, log_at: Location | None = None, *, scattered: bool = False
    ) -> Engine:
        """A flow of its own elsewhere, with this one's Spark and Python functions.

        `scattered`: with other partitions and orders of rows than a flow's own.
        """
        other = type(self)(root, self.gears.spark, log_at=log_at)
        other.is_scattered = scattered
        other.functions = Functions(self.functions.python, other.history.functions)
        return other

    def close(self, *, spark_is_lost: bool = False) -> None:
        """Let other writers in; a Spark session that was given stays as it is."""
        self._side_by_side.close()
        if self._gears is not None and not spark_is_lost:
            self._gears.close()
        self._gears = None
        self._lock.release()
        self._epoch = None

    def refresh(self) -> None:
        """See what another writer has committed."""
        if self._epoch is None and self.log.refresh():
            self._catch_up()
            self.layout.refresh()

    def _catch_up(self) -> None:
        self.history.catch_up(self.log.entries[self.history.read :])

    def table_location(self, table: str) -> Location:
        """Where a Delta table is, given by path, URI or a name that Spark knows."""
        location = Location(table)
        if not TABLE_NAME.fullmatch(table) or location.exists("_delta_log"):
            return location
        try:
            parts = [plain or quoted for plain, quoted in TABLE_PART.findall(table)]
            name = ".".join(quote(part) for part in parts)
            detail = self.gears.spark.sql(f"DESCRIBE DETAIL {name}").first()
        except PySparkException:
            return location  # and there the error says that there is no table
        return location if detail is None else Location(detail["location"])

    # --- definitions ---

    def analyser(self, view: str) -> SparkAnalyser:
        """Spark's judgement of a view's text."""
        return SparkAnalyser(self.gears, f"view {view}")

    def append(self, kind: str, body: Mapping[str, Any]) -> None:
        """Put a definition, or a change of definitions, into the log as it stands."""
        self.extend([(kind, body)])

    def extend(self, bodies: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Put definitions into the log, given as kinds and bodies, all of them or none."""
        self.begin_writing()
        self._extend(self.history.tick, bodies)

    def add_function(self, function: Function) -> None:
        """Make a Python function known to views."""
        self.functions.add(function, self.gears)

    def add_sql_function(self, name: str, body: str, returns: str, parameters: str) -> None:
        """Declare a function in SQL; the same again is nothing."""
        self.refresh()
        function = self.functions.in_sql(name, body, returns, parameters, self.gears)
        if self.history.functions.get(function.name) != function:
            self.append("function", function.entry)
        self.functions.forget(function.name)

    def _check_functions(self, views: Iterable[str]) -> None:
        self.functions.check(self.history.views[view] for view in views)

    # --- being the writer ---

    def begin_writing(self) -> None:
        """Become the writer: take an epoch, and finish a tick that was killed."""
        if self._epoch is not None:
            return
        if self._read_only:
            raise UserError("this flow was opened to be read only", fix="open it without read_only")
        self._lock.take()
        self.log.refresh()
        self._catch_up()
        self.layout.refresh()
        pending = self.history.pending
        has_failed = pending is not None and (pending.tick, pending.epoch) == self._failed
        if pending is not None and not has_failed:
            self._check_functions(pending.body["views"])
        self._take_epoch()
        self.published = None  # another writer may have been at them
        try:
            if not self._is_hidden:
                delete_unfinished(self.layout, self.log)
            if pending is not None and has_failed:
                self._append("abort", pending.tick, {"error": "its entries could not be written"})
            elif pending is not None:
                self._finish_killed(pending)
        except OSError as error:
            raise unwritten(error, self.layout.root) from error
        finally:
            if self.history.pending is not None:
                self._epoch_is_spent()  # whoever writes next has to finish it first
        delete_leftovers(self.layout, self.history)

    def recover(self) -> None:
        """Finish a killed tick, unless its writer is still alive."""
        pending = self.history.pending
        if pending is None:
            return
        views = [self.history.views[view] for view in pending.body["views"]]
        if self.functions.suffice(views) and self._lock.try_take():
            try:
                self.begin_writing()
            except BaseException as error:
                self.close()
                if not isinstance(error, TickConflict):
                    raise

    def _take_epoch(self) -> None:
        self._epoch = self.history.epoch + 1
        try:
            self._append("epoch", self.history.tick, {})
        except BaseException:
            self._epoch_is_spent()
            raise

    def _append(self, kind: str, tick: int, body: Mapping[str, Any]) -> None:
        self._extend(tick, [(kind, body)])

    def _extend(self, tick: int, bodies: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Add entries to the log, all of them or none."""
        if not bodies:
            return
        try:
            entries = self.log.extend(tick, self._writing(), bodies)
        except TickConflict:
            self.close()
            raise
        except OSError as error:
            raise unwritten(error, self.layout.root) from error
        self.history.catch_up(entries)

    def adopt(self, entries: Iterable[Entry]) -> None:
        """Make another log's entries this flow's, all at once; the next write takes a new epoch."""
        self._writing()
        self.history.catch_up(self.log.adopt(entries))
        self._epoch_is_spent()

    # --- ticks ---

    def tick(
        self,
        batches: Mapping[str, BoundBatch],
        *,
        pull: bool,
        views: Sequence[str] | None = None,
        logical_time: datetime | None = None,
        batch_id: str | None = None,
        pins: Mapping[str, dict[str, Any]] | None = None,
        hydrate: bool = False,
        altered: Iterable[ViewDefinition] = (),
        dropped: Iterable[str] = (),
        dedup: Mapping[str, Any] | None = None,
        number: int | None = None,
        notes: Sequence[str] = (),
    ) -> StepSummary:
        """One atomic step; raises with nothing changed, or commits.

        `pull` reads what is new in followed tables, `hydrate` only those that were never read.
        `altered` are next definitions of views, and new views that come with them; all that reads
        those views is in the step too. `dropped` are views that are gone after it.
        `dedup` is given for a tick that is run again: what it took and dropped then.
        `pins` are the versions that such a tick read; those of sources that none of its views
        reads are left alone, whatever became of them.
        `number` is for the first tick of a replay that can't begin with tick 1; `notes` are told
        with the others of the step.
        """
        started = time.perf_counter()
        self.begin_writing()
        nexts = {each.name: each for each in altered}
        with self.catalog.drafting(nexts):
            selected = self._touched(nexts) if nexts else self._selected(views)
            needed = self.catalog.sources_of(selected)
        self.functions.check(nexts.get(view) or self.history.views[view] for view in selected)
        if batch_id is not None and batch_id in self.history.batches:
            tick = self.history.batches[batch_id]
            note = f"batch {batch_id} was taken by tick {tick} already"
            return summary_of(self.history, tick, notes=(note,))
        tick = number or self.history.tick + 1
        moment = self._logical_time(logical_time)
        pins = {name: pin for name, pin in (pins or {}).items() if name in needed}
        if pull or hydrate:
            widen_followed(self, needed, only_unread=not pull)
            pins, told = self.followed.newest(
                needed, only_unread=not pull, only_needed=views is not None
            )
            notes = [*notes, *told]
        swapped = self._swapped(nexts)
        deduplication = Deduplication(self._memories, self.history, dedup)
        staging = self._staging(tick, deduplication)
        try:
            staged = staging.stage_all(batches)
            staging.settle()
            intent = {
                "logical_time": moment.isoformat(),
                "pins": {**self.history.pins, **pins},
                "staged": {name: each.count if each else 0 for name, each in staged.items()},
                "views": [swapped[v].kept_in if v in swapped else v for v in selected],
                "batch_id": batch_id,
                "notes": [*notes, *deduplication.notes],
                **({"dedup": deduplication.records} if deduplication.records else {}),
                **({"altered": {name: each.body for name, each in nexts.items()}} if nexts else {}),
                **({"dropped": list(dropped)} if dropped else {}),
            }
            self._append("intent", tick, intent)
        except BaseException as error:
            if staging.has_written:
                self._epoch_is_spent()
            if self._has_lost_spark(error):
                self.close(spark_is_lost=True)
                raise SparkLost(f"Spark ended before tick {tick} began: {error}") from error
            if isinstance(error, OSError):
                raise unwritten(error, self.layout.root) from error
            raise
        return self._finish(tick, intent, staged, started)

    def _staging(self, tick: int, dedup: Deduplication | None = None) -> Staging:
        return Staging(
            self.layout,
            self.history,
            self.gears_if_needed,
            tick,
            self._writing(),
            self._side_by_side,
            dedup,
        )

    def _swapped(self, nexts: Mapping[str, ViewDefinition]) -> dict[str, ViewDefinition]:
        """Those of the next definitions that take the place of one."""
        return {name: each for name, each in nexts.items() if not self.history.is_new(name)}

    def _touched(self, nexts: Mapping[str, ViewDefinition]) -> list[str]:
        """They, all that reads them and all that they read; not what is inside of former ones."""
        views = self.history.views
        found = self.catalog.downstream(nexts)
        return self.catalog.order(n for n in found if n in nexts or views[n].inside not in nexts)

    def gears_if_needed(self) -> Gears:
        """Spark for those who may not need it."""
        return self.gears

    def _writing(self) -> int:
        if self._epoch is None:
            raise InternalError("writing without an epoch")
        return self._epoch

    def _finish(
        self,
        tick: int,
        intent: Mapping[str, Any],
        staged: Mapping[str, Staged | None],
        started: float,
        *,
        recovered: bool = False,
    ) -> StepSummary:
        """Evaluate and commit, or abort; a tick that ends otherwise stays pending."""
        parsed = [ViewDefinition.parse(body) for body in intent.get("altered", {}).values()]
        nexts = {each.name: each for each in parsed}
        try:
            with self.catalog.drafting(nexts):
                self._evaluate(tick, intent, staged, nexts, started, recovered=recovered)
        except BaseException as error:
            if self.history.pending is not None:
                if isinstance(error, WriteFailed) and not recovered:
                    self._give_up(tick)
                self._epoch_is_spent()  # and the next write begins by finishing this tick
            if isinstance(error, TickConflict):
                raise TickConflict(
                    f"another writer has taken over in the middle of tick {tick}",
                    error.where,
                    f"that writer finishes tick {tick} with the changes that were given to it: "
                    "don't give them again; go on with flow.tick() once it is done",
                ) from error
            raise
        notes = (*self._maintained(tick), *self._published(tick), *self._warned())
        duration = (time.perf_counter() - started) * 1000
        return summary_of(self.history, tick, duration_ms=duration, notes=notes)

    def _maintained(self, tick: int) -> tuple[str, ...]:
        """Compact; the tick is committed by now, so what goes wrong here can only be told."""
        programs = self._evaluated_programs()
        self._uncompacted |= self.history.changed_by(tick)
        written = [each for each in programs if each.name in self._uncompacted]
        try:
            if maintain(self.layout, self.history, written, self._writing()):
                self._uncompacted.clear()
            self._memories.fold()
            epoch = self._writing()
            _, large = fold(self.layout, self.history, programs, epoch, only_if_it_pays=True)
            return tuple(large)
        except Exception as error:
            log.warning("compaction is left for later", exc_info=True)
            return (masked(f"compaction is left for later: {type(error).__name__}: {error}"),)

    def _published(self, tick: int) -> list[str]:
        """Bring published tables along; what goes wrong here can only be told, too."""
        if self._is_hidden or self._epoch is None:
            return []
        took = sum(self.history.commits[tick]["phases_ms"].values())
        try:
            return Publisher(self).keep_up(took)
        except Exception as error:
            log.warning("publishing is left for later", exc_info=True)
            return [masked(f"publishing is left for later: {type(error).__name__}: {error}")]

    def _warned(self) -> list[str]:
        """Followed tables that may let go of what has yet to be read; not looked at every tick."""
        now = time.monotonic()
        if not self.history.pins or now < self._looked_at + LOOK_EVERY_SECONDS:
            return []
        self._looked_at = now
        try:
            found = warnings(self.history, self.catalog, self.followed)
        except Exception as error:
            log.warning("followed tables could not be looked at", exc_info=True)
            said = f"followed tables could not be looked at: {type(error).__name__}: {error}"
            return [masked(said)]
        return [f"{name}: {said}" for name, said in found.items()]

    def compact(self) -> tuple[list[str], list[str]]:
        """Fold all that the retention lets go of; what was folded, and what keeps the rest."""
        self.begin_writing()
        programs, epoch = self._evaluated_programs(), self._writing()
        with written_in_steps(self.layout.root):
            done, told = fold(self.layout, self.history, programs, epoch, only_if_it_pays=False)
        claim = held_by(self.layout, self.history)
        held = [f"ticks after {claim.tick} stay apart for {claim.holder}"] if claim else []
        return done, [*told, *held]

    def _evaluated_programs(self) -> list[ViewProgram]:
        """Of views that have traces: one that no tick has evaluated may still come to share."""
        seen = [name for name, state in self.history.states.items() if state.upto]
        return [self.catalog.program(name) for name in seen]

    def _evaluate(
        self,
        tick: int,
        intent: Mapping[str, Any],
        staged: Mapping[str, Staged | None],
        nexts: Mapping[str, ViewDefinition],
        started: float,
        *,
        recovered: bool = False,
    ) -> None:
        moment = datetime.fromisoformat(intent["logical_time"])
        swapped = self._swapped(nexts)
        swaps = {each.kept_in: each for each in swapped.values()}
        views = [swaps[name].name if name in swaps else name for name in intent["views"]]
        names = self.catalog.schedule(views)
        relations = self.relations(tick, moment, intent["pins"], swapped.values(), names)
        for name, change in staged.items():
            relations.produced[name] = None if change is None else change.change
            if change is not None and change.held is not None:
                relations.give(name, change.held)
        if self.spark is None:
            # other threads don't see which session is active here
            self.spark = _active_spark()
        statements = self._gears.statements if self._gears else 0
        commits = self.layout.commits
        prepared = time.perf_counter()
        results: dict[str, ViewResult] = {}
        ways: dict[str, str] = {}
        told: Exception | None = None
        try:
            self._pull(relations, intent, ways)
            tasks = self._tasks(names, relations, swapped)
            below = {name: self._below(name) for name in names}
            results = self._side_by_side.run(tasks, below, self._expected(names))
        except Exception as error:
            told = unforeseen(error, self.layout.root)
            if self._has_lost_spark(error):
                self.close(spark_is_lost=True)
                told = SparkLost(f"Spark ended in the middle of tick {tick}: {error}")
            elif not (recovered and isinstance(told, WriteFailed)):
                self._abort(tick, error)
            if told is error:
                raise
            raise told from error
        finally:
            if self._gears is not None and not isinstance(told, SparkLost):
                self._gears.release()
            give_back()
        evaluated = time.perf_counter()
        body = certificate(
            self.history,
            tick,
            intent,
            staged=staged,
            relations=relations,
            results=results,
            ways=ways,
            statements=(self._gears.statements if self._gears else 0) - statements,
            # what was staged, the intent and this very entry are commits too
            commits=self.layout.commits - commits + sum(map(bool, intent["staged"].values())) + 2,
            phases={
                "prepare": (prepared - started) * 1000,
                "evaluate": (evaluated - prepared) * 1000,
            },
            recovered=recovered,
            programs={name: self.catalog.program(name) for name in results},
            traces=self.layout.written_by(tick, self._writing()),
        )
        self._append("commit", tick, body)

    def _tasks(
        self,
        names: Iterable[str],
        relations: TickRelations,
        nexts: Mapping[str, ViewDefinition],
    ) -> dict[str, Callable[[], ViewResult]]:
        """What is to be done for every view and shared node, those of a component as one."""
        tasks: dict[str, Callable[[], ViewResult]] = {}
        for name in names:
            if name in tasks:
                continue
            members = self.catalog.component(name)
            views = {
                each: self._evaluation(
                    each, nexts[each].kept_in if each in nexts else each, relations
                )
                for each in members
            }
            if self.catalog.is_recursive(name):
                found = ComponentEvaluation(views, self.catalog.limits(name)).tasks
            else:
                found = {name: views[name].run}
            for each, task in found.items():
                tasks[each] = (
                    self._swapping(relations, nexts[each], task) if each in nexts else task
                )
        return tasks

    def _evaluation(self, name: str, evaluated: str, relations: TickRelations) -> ViewEvaluation:
        return ViewEvaluation(
            self.catalog.program(evaluated),
            relations,
            self.history.states[evaluated].upto,
            shared_by=self.catalog.sharers(name),
            by_difference=self.by_difference,
        )

    def _swapping(
        self,
        relations: TickRelations,
        definition: ViewDefinition,
        prepare: Callable[[], ViewResult],
    ) -> Callable[[], ViewResult]:
        """The task that brings a view's next definition up to the tick, and puts it in place."""

        def swapped() -> ViewResult:
            result, found = Swap(relations, definition).run(prepare())
            self.differences[definition.name] = found
            return result

        return swapped

    def _expected(self, names: Iterable[str]) -> dict[str, float]:
        """What the views of a tick took when they were last evaluated."""
        seen = {name: self.catalog.program(name).stages for name in names}
        costs = self.history.costs
        return {
            name: sum(cost.ms for stage in stages if (cost := costs.last(stage.stage.relation)))
            for name, stages in seen.items()
        }

    def _below(self, name: str) -> tuple[str, ...]:
        """What has to be evaluated before a view or shared node; a component's first has it all."""
        first = self.catalog.component(name)[0]
        return self.catalog.inputs(name) if name == first else (first,)

    def relations(
        self,
        tick: int,
        moment: datetime,
        pins: Mapping[str, dict[str, Any]],
        nexts: Iterable[ViewDefinition] = (),
        scheduled: Iterable[str] = (),
    ) -> TickRelations:
        """What the scheduled views of a tick read, with definitions that take another's place."""
        schemas = self.catalog.relations()
        renewed = {each.name: each.kept_in for each in nexts}
        schemas |= {view: schemas[shadow] for view, shadow in renewed.items()}
        columns: dict[str, frozenset[str]] = {}
        for view in scheduled:
            for name, fields in self.catalog.program(view).fields_read.items():
                columns[name] = columns.get(name, frozenset()) | fields
        for name in (*self.history.views, *self.history.shared):
            for stage in self.catalog.program(name).stages[:-1]:
                schemas[stage.stage.relation] = stage.output
        return TickRelations(
            self.gears_if_needed,
            self.layout,
            self.history,
            schemas,
            PinnedTables(self.followed, pins),
            tick,
            self._writing(),
            moment,
            pins,
            columns=columns,
            renewed=renewed,
        )

    def _pull(
        self, relations: TickRelations, intent: Mapping[str, Any], ways: dict[str, str]
    ) -> None:
        """Read what is new in followed tables."""
        for name, pin in intent["pins"].items():
            before = self.history.pins.get(name)
            since = None if before is None else int(before["version"])
            relations.produced[name] = relations.followed_change(name, since, int(pin["version"]))
            ways[name] = relations.ways.get(name, "nothing new")

    def _abort(self, tick: int, error: Exception) -> None:
        if isinstance(error, TickConflict):
            return
        what = error.what if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        self._append("abort", tick, {"error": masked(str(what))[:2000]})
        self._epoch_is_spent()

    def _give_up(self, tick: int) -> None:
        """Record that a tick has failed, now or with the next write."""
        epoch = self._epoch
        try:
            self._append("abort", tick, {"error": "its entries could not be written"})
        except WriteFailed:
            self._failed = None if epoch is None else (tick, epoch)

    def _has_lost_spark(self, error: BaseException) -> bool:
        """Whether Spark is what failed: then it doesn't answer any more."""
        if not isinstance(error, Exception) or self._gears is None:
            return False
        if isinstance(error, TickConflict | WriteFailed):
            return False
        return isinstance(error, ConnectionError) or not self._gears.is_alive

    def _epoch_is_spent(self) -> None:
        """Leftovers of this attempt must never count: the next write takes another epoch."""
        self._epoch = None

    def _finish_killed(self, pending: Entry) -> None:
        """Run a killed tick again with the same pins, batches and logical time."""
        started = time.perf_counter()
        staging = self._staging(pending.tick)
        staged: dict[str, Staged | None] = {}
        try:
            for name, count in pending.body["staged"].items():
                staged[name] = staging.again(self.history.sources[name], pending.epoch, count)
        except CorruptStore as lost:
            # nobody has seen the tick: whoever sent its changes has to send them again
            log.warning("tick %s is aborted, its changes are lost: %s", pending.tick, lost.what)
            self._append("abort", pending.tick, {"error": masked(f"lost: {lost.what}")[:2000]})
            self._take_epoch()  # what of it was staged again must never count
            return
        intent = dict(pending.body)
        self._append("intent", pending.tick, intent)
        self._finish(pending.tick, intent, staged, started, recovered=True)

    def _selected(self, views: Sequence[str] | None) -> list[str]:
        if views is None:
            return self.catalog.order(self.history.views)
        return self.catalog.order([self.catalog.view_name(view) for view in views])

    def _logical_time(self, given: datetime | None) -> datetime:
        last = self.history.logical_time
        if given is None:
            now = datetime.now(UTC)
            return now if last is None or now > last else last
        if not isinstance(given, datetime) or given.tzinfo is None:
            raise LogicalTimeError(
                f"{given!r} is not a time with a time zone", where="logical_time"
            )
        try:
            given = given.astimezone(UTC)
        except OverflowError as error:
            raise LogicalTimeError(
                f"{given.isoformat()} has no time in UTC", where="logical_time"
            ) from error
        if last is not None and given < last:
            raise LogicalTimeError(
                f"{given.isoformat()} is before {last.isoformat()}, the time of tick "
                f"{self.history.tick}",
                where="logical_time",
            )
        return given


def _active_spark() -> SparkSession | None:
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()
