"""`IncrementalFlow`: sources, views and ticks, as a program uses them."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from ivm_core.api.altering import NewViews, alter_source, alter_view, drop_view
from ivm_core.api.arguments import (
    Changes,
    GivenLimits,
    checked_shard,
    checkpoint_place,
    dedup_options,
    given_changes,
    key_columns,
)
from ivm_core.api.batch import DeltaBatch
from ivm_core.api.publishing import publish
from ivm_core.api.registering import register_views
from ivm_core.engine.active_session import active_session_kept
from ivm_core.engine.altering import drop_failed
from ivm_core.engine.backfilling import Backfill, backfill
from ivm_core.engine.certificate import summary_of
from ivm_core.engine.chaining import Chain, check_chain
from ivm_core.engine.checking import Comparison, compare_with_query
from ivm_core.engine.checkpointing import Checkpoint, checkpoint, checkpoint_full
from ivm_core.engine.core import Engine
from ivm_core.engine.declaring import declare_source
from ivm_core.engine.definitions import DELTA, FED, SourceDefinition
from ivm_core.engine.explaining import explain, explain_sql
from ivm_core.engine.explanation import Explanation, WhyNot
from ivm_core.engine.functions import Function
from ivm_core.engine.metrics import DDL as METRIC_DDL
from ivm_core.engine.metrics import metric_rows, metric_table, open_metrics_text
from ivm_core.engine.publishing import Publisher
from ivm_core.engine.reading import Reader
from ivm_core.engine.renaming import rename_view
from ivm_core.engine.repairing import Repair, repair, verify
from ivm_core.engine.replaying import Replay, replay
from ivm_core.engine.restoring import Restored, restore
from ivm_core.engine.retention import Retention
from ivm_core.engine.watching import Watch
from ivm_core.engine.widening import widen_followed
from ivm_core.model.errors import (
    ClosedFlow,
    NotIncremental,
    OutOfRange,
    Refusal,
    TickFailed,
    Unsupported,
    UserError,
    WrongThread,
)
from ivm_core.model.names import WEIGHT, check_relation_name
from ivm_core.model.schema import parse_schema
from ivm_core.model.types import FLOAT_KINDS
from ivm_core.operators.netting import net
from ivm_core.store.followed import FollowedTable
from ivm_core.store.leases import Lease
from ivm_core.store.location import Location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime
    from os import PathLike
    from types import TracebackType

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ivm_core.engine.alter_report import AlterReport
    from ivm_core.engine.publishing import Publication
    from ivm_core.engine.summary import StepSummary
    from ivm_core.model.schema import Schema
    from ivm_core.store.verifying import Damage

NO_KEYS = FLOAT_KINDS | {"ARRAY", "STRUCT"}
P = ParamSpec("P")
R = TypeVar("R")


def _spark_left_alone(
    method: Callable[Concatenate[IncrementalFlow, P], R],
) -> Callable[Concatenate[IncrementalFlow, P], R]:
    """The method, with the caller's active Spark session as it was when it is done."""

    @wraps(method)
    def call(flow: IncrementalFlow, /, *args: P.args, **kwargs: P.kwargs) -> R:
        engine = flow._engine  # noqa: SLF001
        with active_session_kept(lambda: engine.spark):
            return method(flow, *args, **kwargs)

    return call


class IncrementalFlow:
    """Materialized views over sources, kept equal to their SQL tick by tick.

    A flow belongs to the thread that opened it; another thread gets `WrongThread`.
    """

    def __init__(self, engine: Engine) -> None:
        """Use `IncrementalFlow.open`."""
        self._engine_of = engine
        self._thread = threading.get_ident()
        self._closed = False

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        spark: SparkSession | None = None,
        *,
        read_only: bool = False,
        storage_options: Mapping[str, str] | None = None,
    ) -> IncrementalFlow:
        """Open the flow at a path or URI, or make one where there is nothing.

        Without `spark`, the active Spark session is used when one is needed, else a local one is
        started. A tick that was killed is finished first, unless its writer is still alive or
        `read_only` is given, which makes nothing and refuses to write. A directory with something
        else in it is `NotAFlow`, a flow that a newer version has written `NewerFormat`.

        `storage_options` are `deltalake`'s, for the flow's place, followed tables and checkpoints
        in object stores. This process alone has them: no error, log or file repeats their keys.
        """
        engine = Engine(Location(path, storage_options), spark, read_only=read_only)
        if not read_only:
            engine.recover()
        return cls(engine)

    # --- definitions ---

    def register_source(
        self,
        name: str,
        schema: str | None = None,
        *,
        primary_key: Sequence[str] | None = None,
        delta_table: str | PathLike[str] | None = None,
        dedup: bool | str = False,
        dedup_entries: int | None = None,
    ) -> None:
        """Declare a source: fed by `tick`, or an existing Delta table that the flow follows.

        With `dedup=True` a batch whose content was taken before, whatever the order of its rows, is
        dropped whole and counted; the last `dedup_entries` batches are remembered (10,000,000 by
        default). `dedup="consecutive"` drops only what repeats the batch right before.

        The same declaration again is a no-op, another under the same name, whatever its case,
        `DefinitionConflict`.
        """
        engine = self._engine
        check_relation_name(name, "source")
        where = f"source {name}"
        if delta_table is None:
            if not isinstance(schema, str):
                raise UserError(
                    "a source needs a schema or a Delta table",
                    where=where,
                    fix='give a schema such as "id BIGINT, name STRING", or delta_table="path"',
                )
            columns = parse_schema(schema, where)
            kind: str = FED
            options = dedup_options(dedup, dedup_entries, where)
        else:
            if dedup or dedup_entries is not None:
                raise UserError(
                    "a followed table has versions, not batches",
                    where=where,
                    fix="leave dedup out: no version is read twice",
                )
            place = engine.table_location(str(delta_table))
            table = FollowedTable(Location(place.uri, engine.layout.root.storage_options))
            known = engine.catalog.declared(name)
            is_known = known is not None and known.options.get("table") == table.location.uri
            # a table whose schema has changed since is told by the tick that reaches the change
            columns = known.schema if known is not None and is_known else table.schema()
            if not is_known:
                table.refuse_unreadable()
            if schema is not None and parse_schema(schema, where).ddl != columns.ddl:
                raise UserError(
                    f"the Delta table has the columns ({columns.ddl}), not ({schema})",
                    where=where,
                    fix="leave the schema out: it is the table's own",
                )
            kind = DELTA
            options = {"table": table.location.uri}
        keys = key_columns(primary_key, columns, where)
        if len(set(keys)) != len(keys):
            raise UserError(
                f"the primary key ({', '.join(keys)}) names a column twice",
                where=where,
                fix="name each column once",
            )
        for key in keys:
            if columns.field(key).type.kind in NO_KEYS:
                raise Unsupported(
                    f"a primary key of type {columns.field(key).type.ddl}",
                    position=f"{where}, column {key}",
                    reason="values that are equal in SQL can differ in their bits, or none compare",
                    rewrite="use a key of integers, text, decimals, dates or times",
                )
        declare_source(engine, SourceDefinition(name, kind, columns, keys, options))

    @_spark_left_alone
    def register_view(
        self, name: str, sql: str, *, hydrate: bool = False, require: str | None = None
    ) -> None:
        """Declare a view as a SELECT over sources and views.

        It has rows from the next tick on; at once, as a tick of its own, with `hydrate=True`.
        SQL that does not parse is `SqlError`, an unknown table or column `UnknownName`, SQL that
        is not maintained `Unsupported` or `NotIncremental`; then nothing is registered.
        Neither is one whose first rows can't be computed (`TickFailed`) with `hydrate=True`.
        With `require="incremental"` neither is a view of which any node can be recomputed in full,
        or any relation read in full (`NotIncremental`); that is a part of its definition.
        The same view again is a no-op, another under the same name, whatever its case,
        `DefinitionConflict`.
        """
        views = {check_relation_name(name, "view"): sql}
        self.register_views(views, hydrate=hydrate, require=require)

    @_spark_left_alone
    def register_views(
        self,
        views: Mapping[str, str],
        *,
        hydrate: bool = False,
        require: str | Mapping[str, str] | None = None,
        schemas: Mapping[str, str] | None = None,
        max_iterations: int | None = None,
        max_rows: int | None = None,
    ) -> None:
        """Declare views by name, given in whatever order; they may read each other and themselves.

        As `register_view`, with all of them registered or none. `require` is for all of them, or by
        name. Views that read each other in a circle are recursive: they have the rows that their
        queries derive from each other, beginning with none. `schemas` has the columns of such
        views, where the branches that don't recurse can't tell them. A tick that takes more than
        `max_iterations`, or derives more than `max_rows`, fails whole (`RecursionLimit`); views
        that are there already have these limits from then on, where they are given.
        """
        limits = GivenLimits(max_iterations, max_rows)
        fresh = register_views(self._engine, views, require, schemas, limits)
        if hydrate and fresh:
            try:
                self._engine.tick({}, pull=False, hydrate=True, views=fresh)
            except TickFailed:
                drop_view(self._engine, tuple(fresh), cascade=False)
                raise

    @_spark_left_alone
    def alter_view(
        self,
        name: str,
        sql: str | None = None,
        *,
        also: Mapping[str, str | None] | None = None,
        added: Mapping[str, str] | None = None,
        swap: bool = True,
        schemas: Mapping[str, str] | None = None,
        require: str | Mapping[str, str] | None = None,
        max_iterations: int | None = None,
        max_rows: int | None = None,
    ) -> AlterReport:
        """Give a view other SQL; the report says which rows come and go.

        SQL that means the same changes nothing. Other SQL is computed beside the view and takes its
        place in one tick, whose difference all views downstream get. With `swap=False` it ticks
        beside the view, unseen, until the same call without it. Views that can't go on with other
        columns are named (`DefinitionConflict`) unless `also` has their SQL. None for the SQL as it
        is: for a view whose function was registered anew. Views that recursion ties to one of these
        change with it. `added` are new views that the others read, which come in the same tick;
        `require`, `schemas` and the limits are theirs, as in `register_views`, `schemas` also of
        altered ones. Raises what `register_view` would.
        """
        limits = GivenLimits(max_iterations, max_rows)
        new = NewViews.of(added, require)
        return alter_view(self._engine, name, sql, also, schemas, new, limits, swap=swap)

    @_spark_left_alone
    def alter_source(
        self,
        name: str,
        schema: str | None = None,
        *,
        dedup: bool | str | None = None,
        dedup_entries: int | None = None,
    ) -> tuple[str, ...]:
        """Add columns to a fed source, given all of them; returns the names of the new ones.

        Stored rows have NULL in them. A column that would go or get another type, and a view whose
        columns would change (one with `SELECT *`), are named: `DefinitionConflict`. `dedup` and
        `dedup_entries` are as in `register_source`, from the next tick on; False: none is dropped.
        """
        return alter_source(self._engine, name, schema, dedup, dedup_entries)

    @_spark_left_alone
    def take_columns(self, name: str) -> None:
        """Let a followed source have the columns that its table has gained, before a tick does.

        Views over them can be registered then. `DefinitionConflict` as in `alter_source`.
        """
        engine = self._engine
        engine.begin_writing()
        widen_followed(engine, [engine.catalog.source_name(name)], only_unread=False)

    @_spark_left_alone
    def drop_view(self, *names: str, cascade: bool = False) -> tuple[str, ...]:
        """Drop views, all or none, and what is prepared beside them; returns their names.

        Views that others read are refused (`UserError`), unless those are dropped with them: named
        in the same call, or with `cascade=True`.
        """
        return drop_view(self._engine, names, cascade=cascade)

    @_spark_left_alone
    def rename_view(self, name: str, to: str) -> None:
        """Give a view another name; its rows and history stay, and what its readers mean.

        Their SQL is rewritten to read it under the new name. A name that is taken is
        `DuplicateName`, a reader with a CTE of one of the names a `UserError`.
        """
        rename_view(self._engine, name, check_relation_name(to, "view"))

    @_spark_left_alone
    def register_function(
        self,
        name: str,
        function: Callable[..., Any] | str,
        return_type: str,
        *,
        parameters: str = "",
        deterministic: bool = False,
    ) -> None:
        """Let views call a function, given in Python or as the text of an expression in SQL.

        A SQL function is over `parameters` ("amount DECIMAL(12,2), rate DOUBLE DEFAULT 0.2") and
        is kept with the flow. A Python function is needed again in every process that ticks views
        with it; `deterministic=True` is your word that equal arguments give equal results, whenever
        and wherever it runs, and without it the function is refused. A name that Spark has a
        function of is `DuplicateName`, a type that Spark doesn't know `UserError`, a body that is
        no function of one row `Unsupported` or `NotIncremental`.
        """
        engine = self._engine
        check_relation_name(name, "function")
        if isinstance(function, str):
            engine.add_sql_function(name, function, return_type, parameters)
            return
        if parameters:
            raise UserError(
                f"parameters={parameters!r} of a Python function",
                where=f"function {name}",
                fix="leave it out: a Python function names its own",
            )
        if not deterministic:
            raise NotIncremental(
                f"the function {name}",
                reason="a view of it has no one meaning unless equal arguments give equal results",
                rewrite="register it with deterministic=True if that is so",
            )
        engine.add_function(Function(name, function, return_type))

    # --- ticks ---

    @_spark_left_alone
    def tick(
        self,
        changes: str | Mapping[str, Changes] | None = None,
        delta: Changes | None = None,
        *,
        views: Sequence[str] | None = None,
        logical_time: datetime | None = None,
        batch_id: str | None = None,
    ) -> StepSummary:
        """Take changes into sources and bring views up to date, all or nothing.

        `tick("orders", delta)` and `tick({"orders": d1, "items": d2})` push, `tick()` pulls what is
        new in followed tables. `views` limits the step to some views and those that they read.
        `logical_time` is what current_timestamp() means in it; it never runs backwards. A
        `batch_id` that was taken before makes the call a no-op.
        """
        engine = self._engine
        if isinstance(views, str):
            views = [views]
        if views is not None and not isinstance(views, list | tuple | set | frozenset):
            raise UserError(
                f"views={views!r} is not a list of names", where="views=", fix="give views=[…]"
            )
        if batch_id is not None and not (isinstance(batch_id, str) and batch_id):
            raise UserError(f"batch_id={batch_id!r} is not a text", where="batch_id=")
        given = given_changes(changes, delta)
        if given:
            engine.refresh()  # another writer may have changed what a batch is held to
        batches = {}
        for name, batch in given.items():
            stored = engine.catalog.source_name(name)
            if stored in batches:
                raise UserError(
                    f"tick got two batches for source {stored}",
                    where=f"source {stored}",
                    fix="add them up: DeltaBatch.of(…) + DeltaBatch.of(…)",
                )
            source = engine.history.sources[stored]
            if source.kind != FED:
                raise UserError(
                    f"source {stored} follows a Delta table and can't be fed",
                    where=f"source {stored}",
                    fix=f"write to {source.options['table']} and call tick() without changes",
                )
            batches[stored] = DeltaBatch.from_any(batch).bind(
                stored, source.schema, source.primary_key
            )
        dropped: list[str] = []
        while True:
            try:
                return engine.tick(
                    batches,
                    pull=changes is None,
                    views=views,
                    logical_time=logical_time,
                    batch_id=batch_id,
                    notes=dropped,
                )
            except TickFailed as failure:
                note = drop_failed(engine, failure)
                if not note:
                    raise
                dropped.append(note)

    # --- reading ---

    @_spark_left_alone
    def snapshot(self, view: str, at: int | None = None) -> DataFrame:
        """A view's (or fed source's) rows as of the newest tick, or of tick `at`.

        A tick that is not there or no longer kept is `OutOfRange`, a stored file that is gone or
        cut off `CorruptStore`; rows that don't decode are told by Spark when the frame is read.
        """
        return Reader(self._engine).snapshot(view, at)

    @_spark_left_alone
    def changes(self, view: str, since: int = 0) -> DataFrame:
        """What changed after tick `since`: the view's columns with `_weight` and `_tick`.

        Bad input and damaged files get what they get from `snapshot`.
        """
        return Reader(self._engine).changes(view, since)

    def tick_change(self, view: str, tick: int | None = None) -> pa.Table:
        """What a tick (default: the newest that the view has seen) changed, with `_weight`.

        It is read on the driver, without Spark, as an Arrow table: for changes that fit there.
        """
        engine = self._engine
        reader = Reader(engine)
        name = engine.catalog.view_name(view)
        at = reader.checked(engine.history.states[name].upto if tick is None else tick, "tick")
        trace, schema = reader.trace(name, at)
        return net(
            trace.read(engine.history.committed, at, at - 1, [*schema.names, WEIGHT]), schema
        )

    def watch_output(
        self, view: str, since: int | None = None, *, wait: float | None = 0.0
    ) -> Watch[DeltaBatch]:
        """An iterator of (tick, DeltaBatch), one per tick that changed the view.

        It starts after tick `since` (default: after the newest one) and ends when it has caught
        up and waited `wait` seconds for more (None: for ever); asked again, it goes on with what
        has come since. It reads what is stored with a handle of its own, so it may be used in any
        thread, and a slow consumer holds up nobody. `watch.since` is where a new one would go on.
        """
        root = self._engine.layout.root
        return Watch(Engine(root, None, read_only=True), view, since, wait, DeltaBatch.of)

    @_spark_left_alone
    def explain(self, view: str | None = None, *, sql: str | None = None) -> Explanation:
        """How a view is maintained, node by node: verdict, reason, keys, state, last cost.

        Also its normalised query and the compiled statements. A stored view needs no Spark.
        `sql` is explained as if it were registered, and raises what registering it would.
        """
        engine = self._engine
        if (view is None) == (sql is None):
            raise UserError(
                "a view's name or sql= is needed, one of the two",
                fix='for example explain("totals"), or why_not(sql="SELECT …")',
            )
        return explain(engine, str(view)) if sql is None else explain_sql(engine, sql)

    @_spark_left_alone
    def why_not(self, view: str | None = None, *, sql: str | None = None) -> tuple[WhyNot, ...]:
        """Why a view, or SQL, is refused or costs more than its change, and what to write instead.

        Empty for what is incremental throughout.
        """
        try:
            return self.explain(view, sql=sql).why_not
        except Refusal as refusal:
            return (WhyNot.of("refused", refusal),)

    @_spark_left_alone
    def check(self, view: str, *, shard: tuple[int, int] | None = None) -> Comparison:
        """Compare a view with its normalised query, run from scratch at the view's frontier.

        With `shard=(k, n)` only the rows of part k of n, by their keys, for views that are large.
        """
        return compare_with_query(self._engine, view, checked_shard(shard))

    def check_chain(self, view: str) -> Chain:
        """Whether the digests of a view's ticks add up, and its newest change has its digest."""
        return check_chain(self._engine, view)

    def force_diff_based(self, on: bool = True) -> None:
        """From now on recompute every dirty view in each tick and take the difference, or not.

        A reference for the delta rules: the emitted deltas are the same bit by bit, and the
        summary says which way was taken. It holds for this object, not for the stored flow.
        """
        self._engine.by_difference = on

    @_spark_left_alone
    def replay(
        self,
        from_tick: int = 1,
        to_tick: int | None = None,
        *,
        into: str | PathLike[str] | None = None,
        progress: Callable[[int, int], None] | None = None,
        hydrated: bool = False,
        scattered: bool = False,
        views: Sequence[str] | None = None,
    ) -> Replay:
        """Run the recorded ticks again elsewhere and compare digests tick by tick, view by view.

        `into` is where: a directory that is kept as a flow of its own. A replay that was stopped,
        and one of fewer ticks, is gone on with there; without it the replay is in a temporary
        directory. `progress` is called with each tick and the last one. Others may tick meanwhile.
        `hydrated=True` begins with the rows that views had before `from_tick`, computed from the
        sources, instead of all ticks before. `scattered=True` runs every statement on its rows in
        another order and in other partitions, which no digest may show. `views=[…]` is about these
        and what they read alone: what became of other views and their sources doesn't matter.
        Ticks that are not there are `OutOfRange`, something else in `into` is a `UserError`.
        """
        place = None if into is None else Location(into)
        return replay(
            self._engine,
            from_tick,
            to_tick,
            place,
            progress,
            hydrated=hydrated,
            scattered=scattered,
            views=views,
        )

    @_spark_left_alone
    def backfill(
        self,
        view: str,
        *,
        into: str | PathLike[str],
        progress: Callable[[int, int], None] | None = None,
    ) -> Backfill:
        """Give a view the history that it would have had from the first kept tick on.

        It is ticked from the recorded changes of the sources into a flow of its own at `into`,
        whose `snapshot(view, at=…)` and `changes(view)` reach back; one that was stopped goes on.
        `.equal` says whether that gives the rows that the view in this flow has.
        """
        return backfill(self._engine, view, Location(into), progress)

    def set_retention(self, *, ticks: int | None = None, days: float | None = None) -> None:
        """Say how many of the newest ticks, and of how many days, stay apart; nothing: all of them.

        Where both are given, what either asks for stays. Older ticks are folded together, by
        `compact` or by itself when it pays: `at=`, `since=` and `replay` then begin later, and no
        digest changes. What a view that lags behind, a watch or a pin needs stays in any case.
        """
        retention = Retention.of(ticks, days)
        engine = self._engine
        engine.refresh()
        if engine.history.retention != retention:
            engine.append("retention", retention.body)

    @property
    def retention(self) -> tuple[int | None, float | None]:
        """How many ticks, and of how many days, stay apart; None: all of them."""
        engine = self._engine
        engine.refresh()
        return engine.history.retention.ticks, engine.history.retention.days

    def compact(self) -> tuple[str, ...]:
        """Fold now what the retention lets go of; says what was folded, and what is too large.

        A place that takes nothing more is `WriteFailed`: what is folded by then stays so.
        """
        done, large = self._engine.compact()
        return (*done, *large)

    @contextmanager
    def pin(self, at: int | None = None) -> Iterator[int]:
        """Keep a tick (default: the newest) and all later ones readable as long as this is open."""
        engine = self._engine
        tick = Reader(engine).checked(at, "at")
        lease = Lease(engine.layout.root, tick)
        try:
            yield tick
        finally:
            lease.close()

    def verify(self) -> tuple[Damage, ...]:
        """Read every stored file: what is lost, cut off or changed, file by file.

        Rows of sources and views are also compared with their recorded digests.
        """
        return verify(self._engine)

    @_spark_left_alone
    def repair(self, *, progress: Callable[[int, int], None] | None = None) -> Repair:
        """Make lost and damaged files again by replaying the recorded ticks.

        What a fed source was given is recorded nowhere else: such damage is `HistoryLost`, and
        nothing is changed; so it is where the replay's digests are not the recorded ones.
        """
        return repair(self._engine, progress)

    # --- published tables ---

    @_spark_left_alone
    def publish(self, *views: str, lag: int | str | None = None) -> tuple[Publication, ...]:
        """Bring views (default: all that have rows) as plain Delta tables to the newest tick.

        A view is published from its first time on: ticks bring its table along. `lag` says how many
        ticks that may be behind, 0 for none; `lag="auto"`, as at first, is every tick where that
        costs no more than the tick, else when enough has changed to write it anew. Each table is
        `<flow>/published/<view>` and has its tick in the property `tideview.tick`.
        """
        return publish(self._engine, views, lag)

    def unpublish(self, *views: str) -> tuple[str, ...]:
        """Delete the published tables of views; returns the names of those that had one."""
        return tuple(Publisher(self._engine).unpublish(views))

    # --- metrics ---

    @_spark_left_alone
    def metrics(self, since: int = 0) -> DataFrame:
        """Counters and durations of every tick after `since`, by source, shared node and view.

        All from the certificates in the tick log; docs/metrics.md has the columns.
        """
        engine = self._engine
        Reader(engine).checked(since, "since")
        rows = metric_rows(engine.history, engine.log.entries, since)
        return engine.gears.spark.createDataFrame(metric_table(rows), METRIC_DDL)

    def openmetrics(self) -> str:
        """All counters and durations since the flow was made, as an OpenMetrics text."""
        engine = self._engine
        engine.refresh()
        return open_metrics_text(engine.history, engine.log.entries)

    # --- checkpoints ---

    def checkpoint(self, path: str | PathLike[str]) -> Checkpoint:
        """Store definitions, certificates and pushed rows that are new since the last one there.

        The first has all of them; the folder has nothing else in it. A flow that was opened
        `read_only` will do. Followed tables are not copied. `CheckpointError` where the folder has
        checkpoints of another flow or kind; the ones that are there stay as they are.
        """
        return checkpoint(self._engine, checkpoint_place(path, self._engine.layout.root))

    @_spark_left_alone
    def checkpoint_full(self, path: str | PathLike[str]) -> Checkpoint:
        """Store all that the flow has stored, to be restored without replay; docs/checkpoints.md.

        It takes the flow as a tick does: `TickConflict` while another process writes to it.
        """
        return checkpoint_full(self._engine, checkpoint_place(path, self._engine.layout.root))

    @_spark_left_alone
    def restore(self, path: str | PathLike[str]) -> Restored:
        """Bring this flow, which must be empty, to the newest checkpoint in a folder.

        From a delta checkpoint every tick is run again and its digests compared, which needs the
        functions that views call or called (`UnknownName`, `DefinitionConflict`). A missing or
        altered part and a tick that differs are `CheckpointError`, a newer format `NewerFormat`;
        then the flow is empty as before.
        """
        return restore(self._engine, checkpoint_place(path, self._engine.layout.root))

    # --- what it is ---

    @property
    def current_tick(self) -> int:
        """The newest committed tick; 0 before any."""
        engine = self._engine
        engine.refresh()
        return engine.history.tick

    def summary(self, tick: int) -> StepSummary:
        """What a committed tick did; `OutOfRange` for one that is not in the log."""
        engine = self._engine
        engine.refresh()
        if tick not in engine.history.commits:
            raise OutOfRange(
                f"there is no tick {tick} in the log",
                fix=f"ask for one up to {engine.history.tick}; old ones are folded by retention",
            )
        return summary_of(engine.history, tick)

    @property
    def spark(self) -> SparkSession:
        """The Spark session in use; starts one if there is none yet."""
        return self._engine.gears.spark

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources, in order of registration."""
        return tuple(self._engine.history.sources)

    @property
    def views(self) -> tuple[str, ...]:
        """Names of the views, in order of registration."""
        return tuple(self._engine.history.live_views)

    def view_sql(self, name: str) -> str:
        """The text that a view was declared with; `UnknownName` with what there is."""
        engine = self._engine
        return engine.history.views[engine.catalog.view_name(name)].sql

    def view_columns(self, name: str) -> Schema:
        """A view's columns; `UnknownName` with what there is."""
        engine = self._engine
        return parse_schema(engine.history.views[engine.catalog.view_name(name)].schema)

    def source_columns(self, name: str) -> tuple[str, Schema, tuple[str, ...]]:
        """A source's own name, columns and primary key; `UnknownName` with what there is."""
        engine = self._engine
        source = engine.history.sources[engine.catalog.source_name(name)]
        return source.name, source.schema, source.primary_key

    def close(self) -> None:
        """Let others write. A Spark session that was given stays as it is."""
        if not self._closed:
            self._engine_of.close()
            self._closed = True

    def __enter__(self) -> IncrementalFlow:
        """The flow itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def __repr__(self) -> str:
        """Where it is and how far it has come."""
        history = self._engine_of.history
        return (
            f"IncrementalFlow({self._engine_of.layout.root.uri!r}, tick {history.tick}, "
            f"{len(history.sources)} sources, {len(history.live_views)} views)"
        )

    @property
    def _engine(self) -> Engine:
        if threading.get_ident() != self._thread:
            raise WrongThread("this flow was opened by another thread")
        if self._closed:
            raise ClosedFlow("this flow is closed")
        return self._engine_of
