"""The engine of a flow: definitions, ticks, recovery; the only room that joins program to store."""

from __future__ import annotations

import logging
import re
import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from ivm_core.compile.program import ViewProgram, compile_view
from ivm_core.engine.analysis import SparkAnalyser
from ivm_core.engine.certificate import certificate, summary_of
from ivm_core.engine.definitions import DELTA, FED, SourceDefinition, ViewDefinition
from ivm_core.engine.evaluation import ViewEvaluation, ViewResult, spark_message
from ivm_core.engine.functions import called
from ivm_core.engine.gears import Gears
from ivm_core.engine.history import History
from ivm_core.engine.layout import Layout
from ivm_core.engine.local_spark import local_spark
from ivm_core.engine.maintenance import maintain
from ivm_core.engine.relations import TickRelations
from ivm_core.engine.staging import Staged, Staging
from ivm_core.engine.writer import WriterLock
from ivm_core.frontend.sql import parse_view
from ivm_core.model.errors import (
    DefinitionConflict,
    DuplicateName,
    HistoryLost,
    InternalError,
    IvmError,
    LogicalTimeError,
    NotAFlow,
    SourceReplaced,
    TickConflict,
    TickFailed,
    UnknownName,
    Unsupported,
    UserError,
)
from ivm_core.model.names import check_relation_name
from ivm_core.model.schema import Schema, parse_schema
from ivm_core.store.followed import FollowedTable
from ivm_core.store.followed_log import SourceVersion
from ivm_core.store.location import Location
from ivm_core.store.ticklog import TickLog

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from ivm_core.engine.functions import Function
    from ivm_core.engine.summary import StepSummary
    from ivm_core.operators.bound_batch import BoundBatch
    from ivm_core.store.ticklog import Entry

TABLE_NAME = re.compile(r"(?:[A-Za-z_]\w*|`[^`]+`)(?:\.(?:[A-Za-z_]\w*|`[^`]+`)){0,2}")
log = logging.getLogger(__name__)

FORMAT = 1
FIRST_COMMIT = "_delta_log/00000000000000000000.json"
KNOWN = {"ticks", "sources", "views", "writer.lock"}


class Engine:
    """One flow, opened by one process."""

    def __init__(self, root: Location, spark: SparkSession | None) -> None:
        """Open the flow at a location, or make one where there is nothing."""
        self.layout = Layout(root)
        self.log = _open_log(self.layout)
        self.history = History()
        self.history.catch_up(self.log.entries)
        self.functions: dict[str, Function] = {}
        self.spark = spark
        self._gears: Gears | None = None
        self._programs: dict[str, ViewProgram] = {}
        self._followed: dict[str, FollowedTable] = {}
        self._lock = WriterLock(root)
        self._epoch: int | None = None

    # --- parts ---

    @property
    def gears(self) -> Gears:
        """Spark, started when first needed."""
        if self._gears is None:
            if self.spark is None:
                self.spark = _active_spark() or local_spark()
            self._gears = Gears(self.spark)
            for function in self.functions.values():
                self._gears.register(function)
        return self._gears

    def close(self) -> None:
        """Let other writers in; a Spark session that was given stays as it is."""
        self._lock.release()
        self._epoch = None

    def refresh(self) -> None:
        """See what another writer has committed."""
        if self._epoch is None and self.log.refresh():
            self.history.catch_up(self.log.entries)
            self.layout.refresh()

    def program(self, view: str) -> ViewProgram:
        """The compiled view; no Spark is needed for what was registered before."""
        if view not in self._programs:
            definition = self.history.views[view]
            program = self._compile(view, definition.sql, None, definition.types)
            if program.schema.ddl != definition.schema:
                raise InternalError(
                    f"view {view} compiles to ({program.schema.ddl}), "
                    f"it was registered with ({definition.schema})"
                )
            self._programs[view] = program
        return self._programs[view]

    def schemas(self) -> dict[str, Schema]:
        """Schemas of sources and views by name."""
        found = {name: source.schema for name, source in self.history.sources.items()}
        for name, view in self.history.views.items():
            found[name] = parse_schema(view.schema)
        return found

    def followed(self, name: str) -> FollowedTable:
        """The table that a followed source reads."""
        if name not in self._followed:
            source = self.history.sources[name]
            self._followed[name] = FollowedTable(Location(source.options["table"]))
        return self._followed[name]

    def table_location(self, table: str) -> Location:
        """Where a Delta table is, given by path, URI or a name that Spark knows."""
        location = Location(table)
        if not TABLE_NAME.fullmatch(table) or location.exists("_delta_log"):
            return location
        try:
            detail = self.gears.spark.sql(f"DESCRIBE DETAIL {table}").first()
        except PySparkException:
            return location  # and there the error says that there is no table
        return location if detail is None else Location(detail["location"])

    # --- definitions ---

    def add_source(self, source: SourceDefinition) -> None:
        """Declare a source; the same again is nothing, another under its name is refused."""
        self.refresh()
        stored = self.history.sources.get(self._stored_name(source.name) or "")
        if stored is not None:
            if stored.body != source.body:
                raise DefinitionConflict(
                    f"source {source.name} is declared differently in this flow",
                    where=f"source {source.name}",
                    stored=str(stored),
                    given=str(source),
                )
            return
        self._refuse_taken(source.name)
        self.begin_writing()
        self._append("source", self.history.tick, source.body)

    def add_view(self, name: str, sql: str) -> None:
        """Declare a view; the same again is nothing, another under its name is refused."""
        check_relation_name(name, "view")
        self.refresh()
        taken = self._stored_name(name)
        if taken is not None and taken in self.history.views:
            stored = self.history.views[taken]
            if stored.sql.strip() != sql.strip():
                same = self._compile(taken, sql, SparkAnalyser(self.gears, f"view {name}"), {})
                if same.fingerprint != stored.fingerprint:
                    raise DefinitionConflict(
                        f"view {name} is declared differently in this flow",
                        where=f"view {name}",
                        stored=stored.sql,
                        given=sql,
                    )
            return
        self._refuse_taken(name)
        analyser = SparkAnalyser(self.gears, f"view {name}")
        program = self._compile(name, sql, analyser, {})
        self._check_against_spark(program, analyser)
        self.begin_writing()
        used = {each.name: each.fingerprint for each in called(self.functions.values(), sql)}
        definition = ViewDefinition(
            name, sql, program.schema.ddl, program.types, program.fingerprint, used
        )
        self._programs[name] = program
        self._append("view", self.history.tick, definition.body)

    def _compile(
        self, name: str, sql: str, analyser: SparkAnalyser | None, known: Mapping[str, str]
    ) -> ViewProgram:
        catalog = self.schemas()
        judge = None if analyser is None else partial(self._ask_spark, sql, analyser)
        parsed = parse_view(sql, catalog, f"view {name}", judge)
        return compile_view(name, sql, lambda: parsed.plan, catalog, analyser, known)

    def _ask_spark(self, sql: str, analyser: SparkAnalyser, reads: tuple[str, ...]) -> Schema:
        """The columns of the user's own text; its errors are Spark's."""
        schemas = self.schemas()
        return analyser.original(sql, {name: schemas[name] for name in reads})

    def _check_against_spark(self, program: ViewProgram, analyser: SparkAnalyser) -> None:
        """What we understood must have the columns that Spark gives the user's own text."""
        theirs = self._ask_spark(program.sql, analyser, program.reads)
        ours = program.schema
        same = [f.type for f in theirs] == [f.type for f in ours]
        if not same or [n.lower() for n in theirs.names] != [n.lower() for n in ours.names]:
            raise Unsupported(
                "a construct of this query",
                position=f"view {program.name}",
                reason=f"it was read as ({ours.ddl}), Spark reads it as ({theirs.ddl})",
                rewrite="name every column with AS, and write the construct in another way",
            )

    def adopt(self, entry: Entry) -> None:
        """Take a definition from another flow's log as it stands, for a replay."""
        self.begin_writing()
        self._append(entry.kind, self.history.tick, entry.body)

    def add_function(self, function: Function) -> None:
        """Make a function known to views; one of Spark's own is never replaced."""
        where = f"function {function.name}"
        same = [each for each in self.functions if each.casefold() == function.name.casefold()]
        if not same and self.gears.low.catalog.functionExists(function.name):
            raise DuplicateName(f"Spark has a function {function.name}", where=where)
        if not callable(function.code):
            raise UserError(
                f"{function.code!r} can't be called", where=where, fix="give a function"
            )
        try:
            self.gears.register(function)
        except PySparkException as error:
            raise UserError(
                f"Spark doesn't take the function: {spark_message(error)}",
                where=where,
                fix="give a return type such as DOUBLE or ARRAY<STRING>",
            ) from error
        for each in same:
            del self.functions[each]
        self.functions[function.name] = function

    def _missing_functions(self, views: Iterable[str]) -> dict[str, str]:
        """Functions that these views call and that are not registered as they were, with a view."""
        return {
            name: view
            for view in views
            for name, fingerprint in self.history.views[view].functions.items()
            if name not in self.functions or self.functions[name].fingerprint != fingerprint
        }

    def _check_functions(self, views: Iterable[str]) -> None:
        for name, view in self._missing_functions(views).items():
            if name in self.functions:
                raise DefinitionConflict(
                    f"the function {name} is not the one that view {view} was registered with",
                    where=f"view {view}",
                    fix="register the function as it was, and the changed one under another name",
                )
            raise UnknownName(
                f"view {view} calls the function {name}, which this process has not registered",
                where=f"view {view}",
                fix=f'call flow.register_function("{name}", …, deterministic=True) after open',
            )

    def _stored_name(self, name: str) -> str | None:
        known = [*self.history.sources, *self.history.views]
        return next((each for each in known if each.casefold() == name.casefold()), None)

    def _refuse_taken(self, name: str) -> None:
        taken = self._stored_name(name)
        if taken is not None:
            kind = "source" if taken in self.history.sources else "view"
            raise DuplicateName(f"{name} is the name of a {kind} already", where=f"{kind} {taken}")

    def order(self, views: Iterable[str]) -> list[str]:
        """The views and the views they read, inputs first."""
        ordered: dict[str, None] = {}

        def visit(view: str) -> None:
            if view in ordered:
                return
            for read in self.program(view).reads:
                if read in self.history.views:
                    visit(read)
            ordered[view] = None

        for view in views:
            visit(view)
        return list(ordered)

    # --- being the writer ---

    def begin_writing(self) -> None:
        """Become the writer: take an epoch, and finish a tick that was killed."""
        if self._epoch is not None:
            return
        self._lock.take()
        self.log.refresh()
        self.history.catch_up(self.log.entries)
        self.layout.refresh()
        if self.history.pending is not None:
            self._check_functions(self.history.pending.body["views"])
        self._take_epoch()
        if self.history.pending is not None:
            self._finish_killed(self.history.pending)

    def recover(self) -> None:
        """Finish a killed tick, unless its writer is still alive."""
        pending = self.history.pending
        if pending is None or self._missing_functions(pending.body["views"]):
            return
        if self._lock.try_take():
            try:
                self.begin_writing()
            except BaseException as error:
                self.close()
                if not isinstance(error, TickConflict):
                    raise

    def _take_epoch(self) -> None:
        epoch = self.history.epoch + 1
        self._epoch = epoch
        self._append("epoch", self.history.tick, {})

    def _append(self, kind: str, tick: int, body: Mapping[str, Any]) -> Entry:
        if self._epoch is None:
            raise InternalError("writing without an epoch")
        try:
            entry = self.log.append(kind, tick, self._epoch, body)
        except TickConflict:
            self.close()
            raise
        self.history.catch_up([entry])
        return entry

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
    ) -> StepSummary:
        """One atomic step; raises with nothing changed, or commits.

        `pull` reads what is new in followed tables, `hydrate` only those that were never read.
        """
        started = time.perf_counter()
        self.begin_writing()
        selected = self._selected(views)
        self._check_functions(selected)
        if batch_id is not None and batch_id in self.history.batches:
            tick = self.history.batches[batch_id]
            note = f"batch {batch_id} was taken by tick {tick} already"
            return summary_of(self.history, tick, notes=(note,))
        tick = self.history.tick + 1
        moment = self._logical_time(logical_time)
        notes: list[str] = []
        if pull:
            pins, notes = self._pins()
        elif hydrate:
            pins, notes = self._pins(only_new=True)
        staging = Staging(self.layout, self.history, self.gears_if_needed, tick, self._writing())
        try:
            staged = {name: staging.stage(batch) for name, batch in batches.items()}
            staging.settle()
            intent = {
                "logical_time": moment.isoformat(),
                "pins": {**self.history.pins, **(pins or {})},
                "staged": {name: change.count for name, change in staged.items() if change},
                "views": selected,
                "batch_id": batch_id,
                "notes": notes,
            }
            self._append("intent", tick, intent)
        except BaseException:
            if staging.has_written:
                self._epoch_is_spent()
            raise
        return self._finish(tick, intent, staged, started)

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
        try:
            self._evaluate(tick, intent, staged, started, recovered=recovered)
        except BaseException:
            if self.history.pending is not None:
                self._epoch_is_spent()  # and the next write begins by finishing this tick
            raise
        notes = self._maintained()
        duration = (time.perf_counter() - started) * 1000
        return summary_of(self.history, tick, duration_ms=duration, notes=notes)

    def _maintained(self) -> tuple[str, ...]:
        """Compact; the tick is committed by now, so what goes wrong here can only be told."""
        programs = [self.program(view) for view in self.history.views]
        try:
            maintain(self.layout, self.history, programs, self._writing())
        except Exception as error:
            log.warning("compaction is left for later", exc_info=True)
            return (f"compaction is left for later: {type(error).__name__}: {error}",)
        return ()

    def _evaluate(
        self,
        tick: int,
        intent: Mapping[str, Any],
        staged: Mapping[str, Staged | None],
        started: float,
        *,
        recovered: bool = False,
    ) -> None:
        moment = datetime.fromisoformat(intent["logical_time"])
        relations = self._relations(tick, moment, intent["pins"])
        for name, change in staged.items():
            relations.produced[name] = None if change is None else change.change
        statements = self._gears.statements if self._gears else 0
        commits = self.layout.commits
        prepared = time.perf_counter()
        results: dict[str, ViewResult] = {}
        ways: dict[str, str] = {}
        try:
            self._pull(relations, intent, ways)
            for view in intent["views"]:
                upto = self.history.states[view].upto
                results[view] = ViewEvaluation(self.program(view), relations, upto).run()
        except Exception as error:
            self._abort(tick, error)
            if isinstance(error, IvmError):
                raise
            raise _unforeseen(error) from error
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
            commits=self.layout.commits - commits + len(intent["staged"]) + 2,
            phases={
                "prepare": (prepared - started) * 1000,
                "evaluate": (evaluated - prepared) * 1000,
            },
            recovered=recovered,
            programs={view: self.program(view) for view in intent["views"]},
        )
        self._append("commit", tick, body)

    def _relations(
        self, tick: int, moment: datetime, pins: Mapping[str, dict[str, Any]]
    ) -> TickRelations:
        schemas = self.schemas()
        for view in self.history.views:
            for stage in self.program(view).stages[:-1]:
                schemas[stage.stage.relation] = stage.output
        followed = {
            name: self.followed(name)
            for name, source in self.history.sources.items()
            if source.kind == DELTA
        }
        return TickRelations(
            self.gears_if_needed,
            self.layout,
            self.history,
            schemas,
            followed,
            tick,
            self._writing(),
            moment,
            pins,
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
        self._append("abort", tick, {"error": str(what)[:2000]})
        self._epoch_is_spent()

    def _epoch_is_spent(self) -> None:
        """Leftovers of this attempt must never count: the next write takes another epoch."""
        self._epoch = None

    def _finish_killed(self, pending: Entry) -> None:
        """Run a killed tick again with the same pins, batches and logical time."""
        started = time.perf_counter()
        staging = Staging(
            self.layout, self.history, self.gears_if_needed, pending.tick, self._writing()
        )
        names = pending.body["staged"]
        staged: dict[str, Staged | None] = {
            name: staging.again(self.history.sources[name], pending.epoch) for name in names
        }
        intent = dict(pending.body)
        self._append("intent", pending.tick, intent)
        self._finish(pending.tick, intent, staged, started, recovered=True)

    def _selected(self, views: Sequence[str] | None) -> list[str]:
        if views is None:
            return self.order(self.history.views)
        return self.order([self.view_name(view) for view in views])

    def view_name(self, name: str) -> str:
        """The stored name of a view; UnknownName with what there is."""
        found = self._stored_name(name) if isinstance(name, str) else None
        if found is None or found not in self.history.views:
            there = ", ".join(self.history.views) or "none"
            raise UnknownName(f"there is no view {name!r}", fix=f"the views are: {there}")
        return found

    def source_name(self, name: str) -> str:
        """The stored name of a source; UnknownName with what there is."""
        found = self._stored_name(name) if isinstance(name, str) else None
        if found is None or found not in self.history.sources:
            there = ", ".join(self.history.sources) or "none"
            raise UnknownName(f"there is no source {name!r}", fix=f"the sources are: {there}")
        return found

    def _logical_time(self, given: datetime | None) -> datetime:
        last = self.history.logical_time
        if given is None:
            now = datetime.now(UTC)
            return now if last is None or now > last else last
        if not isinstance(given, datetime) or given.tzinfo is None:
            raise LogicalTimeError(
                f"{given!r} is not a time with a time zone", where="logical_time"
            )
        given = given.astimezone(UTC)
        if last is not None and given < last:
            raise LogicalTimeError(
                f"{given.isoformat()} is before {last.isoformat()}, the time of tick "
                f"{self.history.tick}",
                where="logical_time",
            )
        return given

    def _pins(self, *, only_new: bool = False) -> tuple[dict[str, dict[str, Any]], list[str]]:
        """The versions of followed tables that a tick reads."""
        pins: dict[str, dict[str, Any]] = {}
        notes: list[str] = []
        for name, source in self.history.sources.items():
            if source.kind != DELTA or (only_new and name in self.history.pins):
                continue
            table = self.followed(name)
            head = table.head()
            before = self.history.pins.get(name)
            version = head.version
            if before is None and table.schema(version).ddl != source.schema.ddl:
                raise SourceReplaced(
                    f"the table of source {name} has the columns ({table.schema(version).ddl}), "
                    f"it was registered with ({source.schema.ddl})",
                    where=f"source {name}, {source.options['table']}",
                )
            if before is not None:
                since = SourceVersion(before["table_id"], int(before["version"]))
                change = table.classify(since, head)
                version = change.until
                if change.kind == "replaced":
                    raise SourceReplaced(
                        f"the table of source {name} was replaced by another one",
                        where=f"source {name}, {source.options['table']}",
                    )
                if change.stopped_by:
                    if version == since.version:
                        raise SourceReplaced(
                            f"the table of source {name} changed: {change.stopped_by}",
                            where=f"source {name}, version {version + 1}",
                        )
                    notes.append(f"{name} is read up to version {version}: {change.stopped_by}")
                if change.kind in ("insert_only", "changed"):
                    way = table.way(change)
                    if way == "snapshot difference":
                        notes.append(
                            f"{name}: versions {since.version} to {version} are compared as "
                            "snapshots, because the table has no change data feed"
                        )
            pins[name] = {"table_id": head.table_id, "version": version}
        return pins, notes


def _open_log(layout: Layout) -> TickLog:
    root = layout.root
    if layout.log.exists(FIRST_COMMIT):
        return TickLog.open(layout.log, FORMAT)
    if root.is_local and root.exists() and not root.path.is_dir():
        raise NotAFlow("this is a file", where=root.uri)
    # a process that was killed while it made a flow leaves the log's folder without a commit
    found = [entry.path for entry in root.list()]
    strange = sorted(name for name in found if name not in KNOWN)
    strange += [f"ticks/{each.path}" for each in layout.log.list() if each.path != "_delta_log"]
    if strange:
        raise NotAFlow(
            f"the directory holds something else: {', '.join(strange[:5])}", where=root.uri
        )
    root.make()
    try:
        return TickLog.create(layout.log, FORMAT, {})
    except TickConflict:
        return TickLog.open(layout.log, FORMAT)


def _unforeseen(error: Exception) -> IvmError:
    """What is not an error of ours, as one."""
    what = f"{type(error).__name__}: {error}"
    if isinstance(error, OSError | PySparkException):
        return TickFailed(f"the tick can't be evaluated: {what}", cause=type(error).__name__)
    return InternalError(f"a tick ended with {what}")


def _active_spark() -> SparkSession | None:
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


__all__ = ["FED", "Engine", "HistoryLost", "IvmError"]
