"""One stage of a view in one gear: its statements, what they read, what they leave behind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from ivm_core.compile.lowering import OPERATORS
from ivm_core.compile.reach import Reach, ReachFinder
from ivm_core.compile.stages import scans
from ivm_core.engine.fetching import wanted_columns
from ivm_core.engine.gears import FrameRows, LocalRows, StoredRows
from ivm_core.engine.layout import weighted
from ivm_core.model.digest import Digest
from ivm_core.model.errors import InternalError
from ivm_core.operators.aggregate import AggregateStatements, keys_name, redone_name, state_name
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.operator import Form
from ivm_core.operators.partitioned import PartitionedStatements
from ivm_core.operators.scan import bound_name
from ivm_core.operators.sql import text_of
from ivm_core.operators.top import Candidates
from ivm_core.plan.nodes import Kept
from ivm_core.plan.partitioned import Partitioned

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    import pyarrow as pa

    from ivm_core.compile.program import StageProgram
    from ivm_core.engine.evaluation import ViewEvaluation
    from ivm_core.engine.gears import Gears, Rows
    from ivm_core.engine.relations import Change
    from ivm_core.model.schema import Schema
    from ivm_core.plan.nodes import Node
    from ivm_core.store.trace import Trace


INSERT_ONLY = "insert-only"
"""In the way of a stage: a rule was used that holds where no rows go."""


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
    cost_way: ClassVar[str]
    """How `costs` call this way."""
    binds_whole_state: ClassVar[bool]

    def __init__(self, view: ViewEvaluation, stage: StageProgram, dirty: frozenset[str]) -> None:
        """Prepare to render the stage for these changed relations."""
        self.view = view
        self.stage = stage
        self.dirty = dirty
        self.relations = view.relations
        whole = self._whole()
        self.lowering = view.lowering(dirty, self._unsettled(), whole)
        self.form = Form.NEW if view.hydrates else Form.DELTA
        self.way = "delta"
        self.change: Change | None = None
        self.digest = Digest.zero()
        self._unstored: list[tuple[Trace, pa.Table]] = []
        inlined = tuple((name, each.key) for name, each in sorted(view.inlined.items()))
        rendering = (dirty, self.lowering.empty, self.lowering.unsettled, whole is not None)
        self._key: tuple[Hashable, ...] = (stage.stage.relation, self.form, rendering, inlined)

    @property
    def gears(self) -> Gears:
        """Spark."""
        return self.relations.gears

    def execute(self) -> None:
        """Run the stage's statements and store what comes out."""
        top = self.stage.stage.top
        if top is None or isinstance(top, Kept):
            self._execute_rows()
        elif isinstance(top, Partitioned):
            self._execute_parts(parts_of(self.stage))
        else:
            self._execute_aggregate(statements_of(self.stage))
        for trace, rows in self._unstored:
            trace.append(rows, self.relations.tick, self.relations.epoch)

    # --- the kinds of stage ---

    def _execute_rows(self) -> None:
        body = self.stage.stage.body
        statement = self._rendered(
            "rows", lambda: self._final(self.lowering.render(body, self.form))
        )
        if statement is not None:
            self._emit(statement, self._inputs(statement, self._reach()))

    def _execute_aggregate(self, aggregate: AggregateStatements) -> None:
        folded = self._folded(aggregate)
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
                reads[bound_name(aggregate.output, Form.OLD)] = self._old_output(aggregate, folded)
                if self._is_insert_only():
                    self.way = f"delta, {INSERT_ONLY}"
                else:
                    redone = self._redo(aggregate, folded, reads)
        if redone:
            self.way = "delta, affected keys recomputed"
        relation = self.stage.stage.relation
        if not self.stage.stage.keeps_rows:
            self.view.unkept.add(relation)
        if self._emit_groups(aggregate, reads):
            return

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
            self.view.inlined[relation] = Inlined(key, rows, reads)

    def _folded(self, aggregate: AggregateStatements) -> Rows | None:
        """The change of the state, stored; None for no rows."""
        fold = self._fold_statement(aggregate)
        if fold is None:
            return None
        return self._fold(aggregate, fold, self._fold_inputs(aggregate, fold))

    def _fold_statement(self, aggregate: AggregateStatements) -> Statement | None:
        """What gives the change of the state."""
        types = self.lowering.types(self.stage.stage.body)
        return self._rendered("fold", lambda: aggregate.fold(self.form, self.lowering, types))

    def _fold_inputs(self, aggregate: AggregateStatements, fold: Statement) -> dict[str, Rows]:
        """What that reads."""
        return self._inputs(fold, self._reach())

    def _execute_parts(self, parts: PartitionedStatements) -> None:
        if self.view.hydrates:
            rows = self._rendered("parts", lambda: self._final(parts.rows(self.lowering)))
            if rows is not None:
                self._emit(rows, self._inputs(rows, Reach()))
            return
        if self._is_settled_around(parts):
            return
        is_insert_only = self._is_insert_only()
        if not parts.node.partition and self._is_settled_by_change(parts):
            self.way = f"delta, {INSERT_ONLY}" if is_insert_only else self.way
            return
        if is_insert_only and Candidates.is_first(parts.node):
            self._execute_growth(parts)
            return
        statement = self._rendered("parts", lambda: self._final(parts.change(self.lowering)))
        if statement is None:
            return
        self.way = "affected keys recomputed" if parts.node.partition else "recomputed"
        reach = self._reach_of_parts(parts)
        reads = self._inputs(statement, reach)
        reads[bound_name(parts.output, Form.OLD)] = self._old_parts(parts, reach)
        self._emit(statement, reads)

    def _is_settled_around(self, _parts: PartitionedStatements) -> bool:
        """Recompute the rows around the change alone; whether that could be done."""
        return False

    def _execute_growth(self, parts: PartitionedStatements) -> None:
        """The first rows among those that there were and those that came."""
        statement = self._rendered("growth", lambda: self._final(parts.growth(self.lowering)))
        if statement is None:
            return
        self.way = f"delta, {INSERT_ONLY}"
        found = self._reach_of_parts(parts).keys
        known = {key: each for key, each in found.items() if not any(o.with_rows for o in each)}
        reads = self._inputs(statement, self._reach())
        reads[bound_name(parts.output, Form.OLD)] = self._old_parts(parts, Reach(keys=known))
        self._emit(statement, reads)

    def _is_insert_only(self) -> bool:
        """Whether what the stage computes gains rows and loses none."""
        return self.view.is_insert_only(self.stage, self.dirty)

    def _redo(self, aggregate: AggregateStatements, folded: Rows, reads: dict[str, Rows]) -> bool:
        """Recompute MIN and MAX of the groups where a deletion reaches them; whether there are."""
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
        reach = self._found("keys", lambda finder: finder.of_keys(body, columns))
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
        return self._found("delta", lambda finder: finder.of_delta(self.stage.stage.body))

    def _reach_of_parts(self, parts: PartitionedStatements) -> Reach:
        partition = parts.node.partition
        body = self.stage.stage.body
        return self._found("parts", lambda finder: finder.of_parts(body, partition))

    def _found(self, kind: str, find: Callable[[ReachFinder], Reach]) -> Reach:
        """What the stage reaches, found once for each set of changed relations."""
        key = ("reach", kind, self.stage.stage.relation, self.dirty)
        cache = self.view.program.rendered
        if key not in cache:
            cache[key] = find(ReachFinder(self.view.catalog, self.dirty))
        found: Reach = cache[key]
        return found

    def _final(self, query: exp.Query | None) -> exp.Query | None:
        """The last query of a stage, as this gear runs it."""
        return query

    def _whole(self) -> Node | None:
        """The node whose change is taken as a difference of all its rows."""
        return None

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
            fields.setdefault(hop.relation, set()).update(limit.field for limit in hop.limits)
            for origin in hop.origins:
                fields.setdefault(origin.relation, set()).add(origin.field)
        old = [name for name in body.relations if bound_name(name, Form.OLD) in names]
        for name in body.relations:
            if bound_name(name, Form.DELTA) in names and name not in self.view.inlined:
                change = self.view.change(name)
                if change is None:
                    raise InternalError(f"{name} has no change to bind")
                reads[bound_name(name, Form.DELTA)] = self._bound_change(change)
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

    def _bound_change(self, change: Change) -> Rows:
        """The rows of a change as this gear reads them."""
        return change.rows

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

    def _inner_now(self, name: str) -> Rows:
        """A node inside the view in a hydration: its first rows are its change."""
        change = self.view.change(name)
        if change is not None:
            return change.rows
        schema = weighted(self.relations.schema(name))
        return LocalRows(arrow_schema(schema).empty_table(), schema)

    @abstractmethod
    def _fold(
        self, aggregate: AggregateStatements, statement: Statement, reads: Mapping[str, Rows]
    ) -> Rows | None:
        """Run the fold, store the change of the state, give it back; None for no rows."""

    def _emit_groups(self, aggregate: AggregateStatements, reads: Mapping[str, Rows]) -> bool:
        """Whether old and new rows of the changed groups were made without a statement."""
        return False

    @abstractmethod
    def _old_state(self, aggregate: AggregateStatements, folded: Rows) -> Rows:
        """The state of at least the changed groups."""

    @abstractmethod
    def _old_output(self, aggregate: AggregateStatements, folded: Rows) -> Rows:
        """The node's own rows of at least the changed groups."""

    @abstractmethod
    def _old_parts(self, parts: PartitionedStatements, reach: Reach) -> Rows:
        """The node's own rows of at least the affected parts."""

    def _is_settled_by_change(self, parts: PartitionedStatements) -> bool:
        """Whether a node of one part is done without its whole input, from the change alone."""
        return False

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
        stage = self.stage.stage
        keys = [name for column, name in self._stored_names() if column in stage.keys]
        return self.relations.layout.stage_rows(stage.relation, self.stage.output, keys)

    def _stored_names(self) -> list[tuple[str, str]]:
        """Output columns, and what the trace calls them; a row of no columns is stored as one."""
        return list(zip(self.stage.stage.columns, self.stage.output.names, strict=False))


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


def parts_of(stage: StageProgram) -> PartitionedStatements:
    """The statements of a node that is recomputed by affected key."""
    top = stage.stage.top
    if not isinstance(top, Partitioned):
        raise InternalError("the stage has no node that is recomputed by key")
    operator = OPERATORS[type(top)]
    return PartitionedStatements(top, operator, stage.stage.relation, stage.output)


def _renamed(keys: LocalRows, columns: tuple[str, ...]) -> pa.Table:
    """The keys under the names that the stage's body gives them."""
    return keys.table.rename_columns(list(columns)) if columns else keys.table
