"""One stage of a view in one gear: its statements, what they read, what they leave behind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from ivm_core.compile.reach import Reach, ReachFinder
from ivm_core.compile.stages import scans
from ivm_core.engine.fetching import Fetcher, wanted_columns
from ivm_core.engine.gears import FrameRows, LocalRows, StoredRows
from ivm_core.engine.layout import ticked, weighted
from ivm_core.engine.relations import Change, local_change
from ivm_core.model.digest import Digest
from ivm_core.model.errors import InternalError
from ivm_core.operators.aggregate import AggregateStatements, keys_name, redone_name, state_name
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.consolidation import consolidated
from ivm_core.operators.netting import net
from ivm_core.operators.operator import Form
from ivm_core.operators.row_identity import digest_of
from ivm_core.operators.scan import bound_name
from ivm_core.operators.sql import text_of
from ivm_core.store.limit import ColumnLimit, Limit, limits

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    import pyarrow as pa

    from ivm_core.compile.program import StageProgram
    from ivm_core.engine.evaluation import ViewEvaluation
    from ivm_core.engine.gears import Gears, Rows
    from ivm_core.model.schema import Schema
    from ivm_core.model.types import DataType
    from ivm_core.store.trace import Trace


@dataclass(frozen=True)
class Statement:
    """A rendered statement and the relations that it names."""

    text: str
    names: frozenset[str]


@dataclass(frozen=True)
class Inlined:
    """A stage whose rows nobody keeps: its query becomes part of the statement that reads it."""

    key: Hashable
    build: Callable[[], exp.Query]
    reads: Mapping[str, Rows]

    @property
    def is_stored(self) -> bool:
        """Whether it reads files, which is work for the high gear."""
        return any(isinstance(rows, StoredRows | FrameRows) for rows in self.reads.values())


class StageRun(ABC):
    """What both gears have in common."""

    gear: ClassVar[str]
    binds_whole_state: ClassVar[bool]

    def __init__(self, view: ViewEvaluation, stage: StageProgram, dirty: frozenset[str]) -> None:
        """Prepare to render the stage for these changed relations."""
        self.view = view
        self.stage = stage
        self.dirty = dirty
        self.relations = view.relations
        self.lowering = view.lowering(dirty, self._unsettled())
        self.form = Form.NEW if view.hydrates else Form.DELTA
        self.way = "delta"
        self.change: Change | None = None
        self.digest = Digest.zero()
        self._unstored: list[tuple[Trace, pa.Table]] = []
        inlined = tuple((name, each.key) for name, each in sorted(view.inlined.items()))
        rendering = (dirty, self.lowering.empty, self.lowering.unsettled)
        self._key = (stage.stage.relation, self.form, rendering, inlined)

    @property
    def gears(self) -> Gears:
        """Spark."""
        return self.relations.gears

    def execute(self) -> None:
        """Run the stage's statements and store what comes out."""
        if self.stage.stage.aggregate is None:
            self._execute_rows()
        else:
            self._execute_aggregate(statements_of(self.stage))
        for trace, rows in self._unstored:
            trace.append(rows, self.relations.tick, self.relations.epoch)

    # --- the two kinds of stage ---

    def _execute_rows(self) -> None:
        body = self.stage.stage.body
        statement = self._rendered(
            "rows", lambda: self._final(self.lowering.render(body, self.form))
        )
        if statement is not None:
            self._emit(statement, self._inputs(statement, self._reach()))

    def _execute_aggregate(self, aggregate: AggregateStatements) -> None:
        body = self.stage.stage.body
        fold = self._rendered(
            "fold", lambda: aggregate.fold(self.form, self.lowering, self.lowering.types(body))
        )
        folded: Rows | None = None
        if fold is not None:
            folded = self._fold(aggregate, fold, self._inputs(fold, self._reach()))
        if folded is None and (aggregate.keys or not self.view.hydrates):
            return
        if folded is None:
            schema = aggregate.state_schema
            folded = LocalRows(arrow_schema(schema).empty_table(), schema)
        reads: dict[str, Rows] = {state_name(aggregate.output, Form.DELTA): folded}
        redone = False
        if not self.view.hydrates:
            reads[state_name(aggregate.output, Form.OLD)] = self._old_state(aggregate, folded)
            if aggregate.is_extremal:
                redone = self._redo(aggregate, folded, reads)
        if redone:
            self.way = "delta, affected keys recomputed"

        def rows() -> exp.Query:
            return aggregate.rows(
                with_old=not self.view.hydrates,
                with_redone=redone,
                only_changed=self.binds_whole_state and not self.view.hydrates,
            )

        if self.stage.stage.keeps_rows:
            statement = self._rendered(f"output {redone}", lambda: self._final(rows()))
            if statement is not None:
                self._emit(statement, reads)
        else:
            key = (*self._key, self.binds_whole_state, redone)
            self.view.inlined[self.stage.stage.relation] = Inlined(key, rows, reads)

    def _redo(self, aggregate: AggregateStatements, folded: Rows, reads: dict[str, Rows]) -> bool:
        """Recompute MIN and MAX of the groups where a deletion reaches them; whether there are."""
        reads[bound_name(aggregate.output, Form.OLD)] = self._old_output(aggregate, folded)
        keys = self._reached_keys(aggregate, folded, reads)
        if keys is None:
            return False
        body = self.stage.stage.body
        name = redone_name(aggregate.output)
        schema = aggregate.redone_schema
        statement = self._rendered(
            "redo", lambda: aggregate.extrema_of_keys(self.lowering, self.lowering.types(body))
        )
        if statement is None:
            reads[name] = LocalRows(arrow_schema(schema).empty_table(), schema)
            return True
        columns = tuple(theirs for _, theirs in aggregate.node.keys)
        reach = ReachFinder(self.view.catalog, self.dirty).of_keys(body, columns)
        inputs = self._inputs(statement, reach, _renamed(keys, columns))
        inputs[keys_name(aggregate.output)] = keys
        reads[name] = self._collect(statement, inputs, schema)
        return True

    # --- statements ---

    def _rendered(self, kind: str, build: Callable[[], exp.Query | None]) -> Statement | None:
        """The statement, rendered once for each set of changed relations."""
        key = (kind, self.gear, self._key)
        cache = self.view.program.rendered
        if key not in cache:
            query = build()
            cache[key] = None if query is None else self._statement(query)
        found: Statement | None = cache[key]
        return found

    def _statement(self, query: exp.Query) -> Statement:
        """The query with those of inlined stages in front."""
        names = {table.name for table in query.find_all(exp.Table)}
        for relation, inlined in self.view.inlined.items():
            name = self._inlined_name(relation)
            if name in names:
                cte = exp.to_identifier(name, quoted=True)
                query = query.with_(cte, as_=inlined.build(), copy=False)
        names = {table.name for table in query.find_all(exp.Table)}
        return Statement(text_of(query), frozenset(names))

    def _reach(self) -> Reach:
        return ReachFinder(self.view.catalog, self.dirty).of_delta(self.stage.stage.body)

    def _final(self, query: exp.Query | None) -> exp.Query | None:
        """The last query of a stage, as this gear runs it."""
        return query

    # --- what statements read ---

    def _unsettled(self) -> frozenset[str]:
        """Relations that this gear binds with rows that are gone and what cancels them."""
        return frozenset()

    def _inputs(
        self, statement: Statement, reach: Reach, keys: pa.Table | None = None
    ) -> dict[str, Rows]:
        """Bind every relation that the statement names."""
        names = statement.names
        reads: dict[str, Rows] = {}
        body = self.stage.stage.body
        fields: dict[str, set[str]] = {}
        for scan in scans(body):
            fields.setdefault(scan.relation, set()).update(scan.fields)
        for hop in reach.hops:
            fields.setdefault(hop.relation, set()).add(hop.field)
            for origin in hop.origins:
                fields.setdefault(origin.relation, set()).add(origin.field)
        old = [name for name in body.relations if bound_name(name, Form.OLD) in names]
        for name in body.relations:
            if bound_name(name, Form.DELTA) in names and name not in self.view.inlined:
                change = self.view.change(name)
                if change is None:
                    raise InternalError(f"{name} has no change to bind")
                reads[bound_name(name, Form.DELTA)] = change.rows
        old = [name for name in old if name not in self.view.inlined]
        if self.view.hydrates:
            for name in old:
                reads[bound_name(name, Form.OLD)] = self._now(name)
        else:
            reads.update(self._before(old, reach, wanted_columns(fields), keys))
        for name in self.view.inlined:
            if self._inlined_name(name) in names:
                reads.update(self.view.inlined[name].reads)
        return reads

    def _inlined_name(self, relation: str) -> str:
        return bound_name(relation, Form.OLD if self.view.hydrates else Form.DELTA)

    @abstractmethod
    def _before(
        self,
        names: list[str],
        reach: Reach,
        columns: Mapping[str, tuple[str, ...]],
        keys: pa.Table | None,
    ) -> dict[str, Rows]:
        """Relations as the view saw them last, by bound name."""

    @abstractmethod
    def _now(self, name: str) -> Rows:
        """A relation with this tick's change, for a hydration."""

    @abstractmethod
    def _fold(
        self, aggregate: AggregateStatements, statement: Statement, reads: Mapping[str, Rows]
    ) -> Rows | None:
        """Run the fold, store the change of the state, give it back; None for no rows."""

    @abstractmethod
    def _old_state(self, aggregate: AggregateStatements, folded: Rows) -> Rows:
        """The state of at least the changed groups."""

    @abstractmethod
    def _old_output(self, aggregate: AggregateStatements, folded: Rows) -> Rows:
        """The node's own rows of at least the changed groups."""

    @abstractmethod
    def _reached_keys(
        self, aggregate: AggregateStatements, folded: Rows, reads: Mapping[str, Rows]
    ) -> LocalRows | None:
        """Keys of the groups to recompute; None for no group."""

    @abstractmethod
    def _collect(self, statement: Statement, reads: Mapping[str, Rows], schema: Schema) -> Rows:
        """The rows of an intermediate result."""

    @abstractmethod
    def _emit(self, statement: Statement, reads: Mapping[str, Rows]) -> None:
        """Run the last statement, net and store its rows, set `change` and `digest`."""

    # --- traces ---

    def _state_trace(self, aggregate: AggregateStatements) -> Trace:
        keys = [each.name for each in aggregate.keys]
        return self.relations.layout.stage_state(aggregate.output, aggregate.state_schema, keys)

    def _rows_trace(self) -> Trace:
        aggregate = self.stage.stage.aggregate
        count = 0 if aggregate is None else len(aggregate.keys)
        keys = self.stage.output.names[:count]
        return self.relations.layout.stage_rows(self.stage.stage.relation, self.stage.output, keys)


class LowGearRun(StageRun):
    """On the driver's rows, for small changes."""

    gear = "low gear"
    binds_whole_state = False

    def _before(
        self,
        names: list[str],
        reach: Reach,
        columns: Mapping[str, tuple[str, ...]],
        keys: pa.Table | None,
    ) -> dict[str, Rows]:
        fetcher = Fetcher(reach, self.relations, self.view.upto, self._change_table, columns, keys)
        reads: dict[str, Rows] = {}
        for name in names:
            # rows that are gone must not meet the change: an expression could fail on them
            schema = self.view.relations.schema(name).select(columns[name])
            table = net(fetcher.rows(name), schema)
            reads[bound_name(name, Form.OLD)] = LocalRows(table, weighted(schema))
        return reads

    def _change_table(self, name: str) -> pa.Table | None:
        change = self.view.change(name)
        return None if change is None else change.table

    def _now(self, name: str) -> Rows:
        schema = self.relations.schema(name)
        if name in self.view.inner:
            change = self.view.change(name)
            return (
                LocalRows(arrow_schema(weighted(schema)).empty_table(), weighted(schema))
                if change is None
                else change.rows
            )
        table = self.relations.now(name)
        if table is None:
            from ivm_core.engine.fetching import TooLarge

            raise TooLarge(f"only Spark can read {name}")
        return LocalRows(net(table, schema), weighted(schema))

    def _fold(
        self, aggregate: AggregateStatements, statement: Statement, reads: Mapping[str, Rows]
    ) -> Rows | None:
        schema = aggregate.state_schema
        table = self.gears.rows(statement.text, reads, schema)
        self._unstored.append((self._state_trace(aggregate), table))
        return LocalRows(table, schema) if table.num_rows else None

    def _old_state(self, aggregate: AggregateStatements, folded: Rows) -> Rows:
        schema = aggregate.state_schema
        return LocalRows(
            self._of_keys(self._state_trace(aggregate), aggregate, folded, schema), schema
        )

    def _old_output(self, aggregate: AggregateStatements, folded: Rows) -> Rows:
        schema = weighted(self.stage.output)
        return LocalRows(self._of_keys(self._rows_trace(), aggregate, folded, schema), schema)

    def _of_keys(
        self, trace: Trace, aggregate: AggregateStatements, folded: Rows, schema: Schema
    ) -> pa.Table:
        """Rows of the changed groups, by as many key columns as can limit a read."""
        limit = None
        if isinstance(folded, LocalRows):
            conjunction = []
            for key in aggregate.keys:
                values = folded.table.column(key.name)
                if limits(values.type):
                    conjunction.append(ColumnLimit(key.name, values, values.null_count > 0))
            limit = Limit((tuple(conjunction),)) if conjunction else None
        names = list(schema.names)
        return trace.read(self.relations.history.committed, self.view.upto, None, names, limit)

    def _reached_keys(
        self, aggregate: AggregateStatements, folded: Rows, reads: Mapping[str, Rows]
    ) -> LocalRows | None:
        if not isinstance(folded, LocalRows):
            raise InternalError("the low gear folds on the driver")
        gone = [folded.table.column(name) for name in aggregate.gone_columns]
        if all(column.null_count == len(column) for column in gone):
            return None
        schema = aggregate.keys_schema
        statement = self._rendered("reached", aggregate.changed_extrema)
        if statement is None:
            raise InternalError("no statement finds reached extremes")
        table = self.gears.rows(statement.text, reads, schema)
        return LocalRows(table, schema) if table.num_rows else None

    def _collect(self, statement: Statement, reads: Mapping[str, Rows], schema: Schema) -> Rows:
        return LocalRows(self.gears.rows(statement.text, reads, schema), schema)

    def _emit(self, statement: Statement, reads: Mapping[str, Rows]) -> None:
        schema = self.stage.output
        table = net(self.gears.rows(statement.text, reads, weighted(schema)), schema)
        self._unstored.append((self._rows_trace(), table))
        self.change = local_change(table, schema)
        if self.stage.stage.aggregate is None:
            self.digest = digest_of(table, schema)


class HighGearRun(StageRun):
    """On files, for everything else."""

    gear = "high gear"
    binds_whole_state = True

    def _final(self, query: exp.Query | None) -> exp.Query | None:
        return None if query is None else consolidated(query, _types(self.stage.output))

    def _unsettled(self) -> frozenset[str]:
        last = self.relations.tick if self.view.hydrates else self.view.upto
        reads = self.stage.stage.body.relations
        return frozenset(name for name in reads if self.view.has_gone_rows(name, last))

    def _before(
        self,
        names: list[str],
        reach: Reach,
        columns: Mapping[str, tuple[str, ...]],
        keys: pa.Table | None,
    ) -> dict[str, Rows]:
        return {
            bound_name(name, Form.OLD): self.relations.stored(name, self.view.upto)
            for name in names
        }

    def _now(self, name: str) -> Rows:
        if name in self.view.inner:
            change = self.view.change(name)
            schema = weighted(self.relations.schema(name))
            return (
                LocalRows(arrow_schema(schema).empty_table(), schema)
                if change is None
                else change.rows
            )
        last = self.relations.tick - 1
        before = self.relations.stored(name, last)
        change = self.relations.change(name, last)
        if change is None:
            return before
        columns = [*self.relations.schema(name).names, "_weight"]
        frames = [
            self.gears.read(rows).select(*[f"`{c}`" for c in columns])
            for rows in (before, change.rows)
        ]
        return FrameRows(frames[0].unionAll(frames[1]))

    def _fold(
        self, aggregate: AggregateStatements, statement: Statement, reads: Mapping[str, Rows]
    ) -> Rows | None:
        trace = self._state_trace(aggregate)
        schema = aggregate.state_schema
        target = trace.spark_target(self.relations.tick, self.relations.epoch)
        written = self.gears.write(statement.text, reads, schema, target, self.relations.tick)
        trace.adopt(self.relations.tick, self.relations.epoch)
        return StoredRows((target,), ticked(schema)) if written.rows else None

    def _old_state(self, aggregate: AggregateStatements, folded: Rows) -> Rows:
        return self._stored(self._state_trace(aggregate), aggregate.state_schema)

    def _old_output(self, aggregate: AggregateStatements, folded: Rows) -> Rows:
        return self._stored(self._rows_trace(), weighted(self.stage.output))

    def _stored(self, trace: Trace, schema: Schema) -> Rows:
        files = trace.files(self.relations.history.committed, self.view.upto)
        return StoredRows(tuple(file.uri for file in files), ticked(schema), at=self.view.upto)

    def _reached_keys(
        self, aggregate: AggregateStatements, folded: Rows, reads: Mapping[str, Rows]
    ) -> LocalRows | None:
        schema = aggregate.keys_schema
        statement = self._rendered("reached", aggregate.changed_extrema)
        if statement is None:
            raise InternalError("no statement finds reached extremes")
        frame = self.gears.frame(statement.text, reads)
        table = frame.toArrow().select(list(schema.names)).cast(arrow_schema(schema))
        return LocalRows(table, schema) if table.num_rows else None

    def _collect(self, statement: Statement, reads: Mapping[str, Rows], schema: Schema) -> Rows:
        frame = self.gears.frame(statement.text, reads)
        table = frame.toArrow().select(list(schema.names)).cast(arrow_schema(schema))
        return LocalRows(table, schema)

    def _emit(self, statement: Statement, reads: Mapping[str, Rows]) -> None:
        schema = weighted(self.stage.output)
        trace = self._rows_trace()
        tick, epoch = self.relations.tick, self.relations.epoch
        target = trace.spark_target(tick, epoch)
        written = self.gears.write(statement.text, reads, schema, target, tick)
        trace.adopt(tick, epoch)
        self.digest = written.digest
        if written.rows:
            rows = StoredRows((target,), ticked(schema))
            change = Change(rows, written.rows, written.deletions, written.net)
            self.change = self.relations.localised(change, self.stage.stage.relation)


def statements_of(stage: StageProgram) -> AggregateStatements:
    """The aggregate's statements over the schemas that its traces have."""
    aggregate = stage.stage.aggregate
    if aggregate is None:
        raise InternalError("the stage has no aggregate")
    fields = tuple(stage.output)
    count = len(aggregate.keys)
    results = fields[count : count + len(aggregate.calls)]
    return AggregateStatements(
        aggregate, stage.stage.relation, fields[:count], stage.accumulators, results
    )


def _types(schema: Schema) -> dict[str, DataType]:
    return {each.name: each.type for each in schema}


def _renamed(keys: LocalRows, columns: tuple[str, ...]) -> pa.Table:
    """The keys under the names that the stage's body gives them."""
    return keys.table.rename_columns(list(columns)) if columns else keys.table
