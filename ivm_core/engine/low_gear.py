"""The low gear: a stage on the driver's rows, for small changes."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.compile.partners import Partners, partners_of
from ivm_core.compile.reach import Reach
from ivm_core.compile.stages import renaming
from ivm_core.engine.around import around
from ivm_core.engine.costs import LOW
from ivm_core.engine.fetching import FETCHED_ROWS, LIMIT_VALUES, Fetcher, TooLarge
from ivm_core.engine.gears import LocalRows
from ivm_core.engine.layout import weighted
from ivm_core.engine.offending import rows_or_culprit
from ivm_core.engine.reducing import FEW_ROWS, are_void, with_few_partners, with_partners
from ivm_core.engine.relations import local_change
from ivm_core.engine.stage_run import StageRun
from ivm_core.engine.telling import Told, told
from ivm_core.model.errors import InternalError
from ivm_core.model.names import PLACE, WEIGHT
from ivm_core.operators.accumulator import OnlySpark, told_on_driver
from ivm_core.operators.aggregate import redone_name, state_name
from ivm_core.operators.aggregate_on_driver import changed_rows, is_on_driver, reached_keys
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.delta_on_driver import DeltaOnDriver
from ivm_core.operators.folds_on_driver import folded, in_order
from ivm_core.operators.group_state import GroupState
from ivm_core.operators.netting import net, stacked
from ivm_core.operators.operator import Form
from ivm_core.operators.row_identity import digest_of
from ivm_core.operators.scan import bound_name
from ivm_core.operators.top import IS_LAST, Candidates
from ivm_core.operators.windowed_around import BEFORE, IS_REACHED, AroundStatements
from ivm_core.plan.nodes import Join, Kept
from ivm_core.plan.partitioned import Partitioned, Top
from ivm_core.store.limit import ColumnLimit, Limit, limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ivm_core.engine.gears import Rows
    from ivm_core.engine.stage_run import Statement
    from ivm_core.model.schema import Schema
    from ivm_core.model.types import DataType
    from ivm_core.operators.aggregate import AggregateStatements
    from ivm_core.operators.partitioned import PartitionedStatements
    from ivm_core.plan.nodes import Node
    from ivm_core.store.trace import Trace


MANY_TERMS = 3


class LowGearRun(StageRun):
    """On the driver's rows, for small changes."""

    gear = "low gear"
    cost_way = LOW
    binds_whole_state = False
    _key_values: Mapping[str, pa.ChunkedArray] = {}
    """Values of affected keys, as the last fetch found them."""

    def _whole(self) -> Node | None:
        """The rows that a change can reach, before and after, where a join has many changed inputs.

        Then that is two products, where the delta has one an input.
        """
        body = self.stage.stage.body
        if self.view.hydrates or not self.view.knows_before(self.stage):
            return None
        joins = (node for node in body.walk() if isinstance(node, Join))
        terms = [sum(bool(part.relations & self.dirty) for part in join.parts) for join in joins]
        return body if max(terms, default=0) >= MANY_TERMS else None

    def _before(
        self,
        names: list[str],
        reach: Reach,
        columns: Mapping[str, tuple[str, ...]],
        keys: pa.Table | None,
    ) -> dict[str, Rows]:
        thinned: dict[str, pa.Table] = {}

        def thin(name: str, change: pa.Table) -> pa.Table:
            if name not in thinned:
                thinned[name] = with_few_partners(self._partners(), name, change, self._few)
            return thinned[name]

        fetcher = Fetcher(
            reach, self.relations, self.view.upto, self._change_table, columns, keys, thin
        )
        self._key_values = {key: fetcher.values(each) for key, each in reach.keys.items()}
        reads: dict[str, Rows] = {}
        for name in names:
            # rows that are gone must not meet the change: an expression could fail on them
            schema = self.view.relations.schema(name).select(columns[name])
            table = net(fetcher.rows(name), schema)
            reads[bound_name(name, Form.OLD)] = LocalRows(table, weighted(schema))
        return reads

    def _few(self, name: str, field: str) -> pa.ChunkedArray | None:
        """A field of a relation that has few rows, old and new; None for any other."""
        if name in self.view.inlined or self.relations.row_count(name, self.view.upto) > FEW_ROWS:
            return None
        change = self._change_table(name)
        if change is None and self.view.change(name) is not None:
            return None
        old = self.relations.old(name, self.view.upto, (field,), None)
        if old is None:
            return None
        columns = [old.column(field), *([] if change is None else [change.column(field)])]
        return pa.chunked_array(
            [chunk for each in columns for chunk in each.chunks], old[field].type
        )

    def _inputs(
        self, statement: Statement, reach: Reach, keys: pa.Table | None = None
    ) -> dict[str, Rows]:
        reads = super()._inputs(statement, reach, keys)
        return with_partners(self._partners(), reads, self.view.inlined)

    def _partners(self) -> Partners:
        """What the inputs of the stage's joins need of each other, found once."""
        key = ("partners", self.stage.stage.relation)
        cache = self.view.program.rendered
        if key not in cache:
            cache[key] = partners_of(self.stage.stage.body, self.view.catalog)
        found: Partners = cache[key]
        return found

    def _change_table(self, name: str) -> pa.Table | None:
        change = self.view.change(name)
        return None if change is None else change.table

    def _now(self, name: str) -> Rows:
        if name in self.view.inner:
            return self._inner_now(name)
        schema = self.relations.schema(name)
        table = self.relations.now(name)
        if table is None:
            raise TooLarge(f"only Spark can read {name}")
        return LocalRows(net(table, schema), weighted(schema))

    def _execute_rows(self) -> None:
        rows = self._body_without_statement()
        if rows is None:
            super()._execute_rows()
        else:
            self._emit_rows(rows)

    def _emit(self, statement: Statement, reads: Mapping[str, Rows]) -> None:
        top = self.stage.stage.top
        rows = None
        if top is None or isinstance(top, Kept):
            rows = self._body_without_statement(reads)
        if rows is None:
            schema = self.stage.output
            rows = net(self._answer(statement, reads, weighted(schema)), schema)
        self._emit_rows(rows)

    def _body_without_statement(self, reads: Mapping[str, Rows] | None = None) -> pa.Table | None:
        """The netted change of a stage that only keeps the rows of its body, as it stores them."""
        body = self.stage.stage.body
        if body.columns and len(body.columns) == len(self.stage.output.names):
            return self._without_statement(body, self._as_stored, reads)
        return None

    def _as_stored(self, rows: pa.Table) -> pa.Table:
        schema = self.stage.output
        table = rows.rename_columns([*schema.names, WEIGHT])
        return net(table.cast(arrow_schema(weighted(schema))), schema)

    def _without_statement(
        self,
        node: Node,
        then: Callable[[pa.Table], pa.Table],
        reads: Mapping[str, Rows] | None = None,
    ) -> pa.Table | None:
        """What is made of a node's change, or first rows, where the driver can tell it; else None.

        Without what a statement `reads`, only the change itself is looked at.
        """
        if self.view.hydrates and (renaming(node) is None or reads is not None):
            return None
        if self._told(node, then) is not (Told.FROM_CHANGE if reads is None else Told.WITH_LOOKUPS):
            return None
        rows_of = partial(self._rows_on_driver, reads)
        dirty = self._dirty_of(node)
        known = DeltaOnDriver(rows_of, self._types_on_driver, dirty, self.lowering.empty)
        with suppress(OnlySpark), told_on_driver():
            return then(known.change(node))
        return None

    def _told(self, node: Node, then: Callable[[pa.Table], pa.Table]) -> Told:
        """What the driver needs for that, found once for each set of changed relations."""
        key = ("told", node.text, self._key)
        cache = self.view.program.rendered
        if key not in cache:
            cache[key] = told(
                node,
                then,
                self.relations.schema,
                self._types_on_driver,
                dirty=self._dirty_of(node),
                empty=self.lowering.empty,
                elsewhere=self.view.inlined,
            )
        found: Told = cache[key]
        return found

    def _dirty_of(self, node: Node) -> frozenset[str]:
        return node.relations if self.view.hydrates else self.dirty

    def _types_on_driver(self, node: Node) -> Mapping[str, DataType]:
        types = self.lowering.known_types(node)
        if types is None:
            raise OnlySpark(f"types of {node.text}")
        return types

    def _rows_on_driver(self, reads: Mapping[str, Rows] | None, name: str, form: Form) -> pa.Table:
        """What the driver has of a relation."""
        if name in self.view.inlined:
            raise OnlySpark(f"{name} is part of a statement")
        rows: Rows | None = None
        if reads is not None:
            rows = reads.get(bound_name(name, form))
        elif form is Form.OLD:
            raise OnlySpark(f"{name} is not looked up")
        elif self.view.hydrates:
            rows = self._now(name)
        elif (change := self.view.change(name)) is not None:
            rows = change.rows
        if not isinstance(rows, LocalRows):
            raise OnlySpark(f"nothing of {name} is on the driver")
        return rows.table

    def _emit_groups(self, aggregate: AggregateStatements, reads: Mapping[str, Rows]) -> bool:
        if not is_on_driver(aggregate):
            return False
        schema = self.stage.output
        tables = {name: rows.table for name, rows in reads.items() if isinstance(rows, LocalRows)}
        own = tables.get(bound_name(aggregate.output, Form.OLD))
        known = GroupState(
            tables[state_name(aggregate.output, Form.DELTA)],
            tables.get(state_name(aggregate.output, Form.OLD)),
            None if own is None else net(own, schema),
            tables.get(redone_name(aggregate.output)),
        )
        try:
            with told_on_driver():
                found = changed_rows(aggregate, known)
        except OnlySpark:
            return False
        table = net(found.cast(arrow_schema(weighted(schema))), schema)
        if self.stage.stage.keeps_rows:
            self._emit_rows(table)
        else:
            self.change = local_change(table, schema)
        return True

    def _folded(self, aggregate: AggregateStatements) -> Rows | None:
        try:
            table = self._folded_on_driver(aggregate)
        except OnlySpark:
            return super()._folded(aggregate)
        return self._with_state(aggregate, table)

    def _folded_on_driver(
        self, aggregate: AggregateStatements, reads: Mapping[str, Rows] | None = None
    ) -> pa.Table:
        """The change of the state without a statement; `OnlySpark` where the driver can't tell."""
        found = None
        if not self.view.hydrates:
            fold = partial(folded, aggregate)
            found = self._without_statement(aggregate.node.input, fold, reads)
        if found is None:
            raise OnlySpark("its rows")
        return found

    def _with_state(self, aggregate: AggregateStatements, table: pa.Table) -> Rows | None:
        """A change of the state, to be stored."""
        self._unstored.append((self._state_trace(aggregate), table))
        return LocalRows(table, aggregate.state_schema) if table.num_rows else None

    def _fold(
        self, aggregate: AggregateStatements, statement: Statement, reads: Mapping[str, Rows]
    ) -> Rows | None:
        try:
            table = self._folded_on_driver(aggregate, reads)
        except OnlySpark:
            table = self._answer(statement, reads, aggregate.state_schema)
        return self._with_state(aggregate, table)

    def _old_state(self, aggregate: AggregateStatements, folded: Rows) -> Rows:
        schema = aggregate.state_schema
        return LocalRows(
            self._of_keys(self._state_trace(aggregate), aggregate, folded, schema), schema
        )

    def _old_output(self, aggregate: AggregateStatements, folded: Rows) -> Rows:
        schema = weighted(self.stage.output)
        return LocalRows(self._of_keys(self._rows_trace(), aggregate, folded, schema), schema)

    def _old_parts(self, parts: PartitionedStatements, reach: Reach) -> Rows:
        stored = parts.partition
        changes = Fetcher(Reach(), self.relations, self.view.upto, self._change_table, {})
        values = {
            stored[key]: self._key_values[key] if key in self._key_values else changes.values(each)
            for key, each in reach.keys.items()
        }
        schema = weighted(self.stage.output)
        return LocalRows(self._limited(self._rows_trace(), schema, values), schema)

    def _is_settled_by_change(self, parts: PartitionedStatements) -> bool:
        if Candidates.has_boundary(parts.node):
            return self._is_settled_within(parts, Candidates(parts))
        statement = self._rendered("change", lambda: parts.input_change(self.lowering))
        if statement is None:
            return True
        schema = weighted(parts.change_schema)
        return not self.gears.rows(
            statement.text, self._inputs(statement, self._reach()), schema
        ).num_rows

    def _is_settled_around(self, parts: PartitionedStatements) -> bool:
        if self.stage.extent is None:
            return False
        statements = AroundStatements.of(parts, self.stage.extent, self.lowering)
        statement = self._rendered("change of rows", lambda: statements.change(self.lowering))
        if statement is None:
            return True
        schema = weighted(statements.change_schema)
        reads = self._inputs(statement, self._reach())
        change = rows_or_culprit(self.gears, statement.text, reads, schema)
        if not change.num_rows:
            return True
        reads = self._around(statements, change)
        reads[statements.change_name] = LocalRows(change, schema)
        rendered = self._rendered("around", lambda: self._final(statements.around()))
        if rendered is None:
            raise InternalError("no statement recomputes the rows around a change")
        self.way = "rows around the change recomputed"
        self._emit(rendered, reads)
        return True

    def _around(self, statements: AroundStatements, change: pa.Table) -> dict[str, Rows]:
        """The node's own rows that the change reaches, with those that they need."""
        trace, key = self._rows_trace(), statements.key
        committed, upto = self.relations.history.committed, self.view.upto
        known = trace.read(committed, upto, None, [key, WEIGHT])
        found = around(known, change, key, statements.extent)
        wanted = pa.chunked_array([found.near, found.last])
        if len(wanted) > LIMIT_VALUES:
            raise TooLarge(f"{len(wanted)} values of {key} are around the change")
        schema = self.stage.output
        own = net(self._limited(trace, weighted(schema), {key: wanted}), schema)
        if own.num_rows > FETCHED_ROWS:
            raise TooLarge(f"{own.num_rows} rows are around the change")
        near = own.filter(pc.is_in(own[key], value_set=found.near))
        reached = pc.is_in(near[key], value_set=found.reached)
        last = own.filter(pc.is_in(own[key], value_set=found.last))
        if statements.needs_one_row_each and _has_twins(last, statements.change_schema):
            raise TooLarge(f"several rows of {key} = {found.last[0]} are equal")
        before = pa.array([found.before] * last.num_rows, pa.int64())
        return {
            statements.near_name: _bound(
                near.append_column(IS_REACHED, reached), statements.near_schema
            ),
            statements.last_name: _bound(
                last.append_column(BEFORE, before), statements.last_schema
            ),
        }

    def _is_settled_within(self, parts: PartitionedStatements, candidates: Candidates) -> bool:
        """Whether the first rows are known without asking the input for those behind them."""
        statement = self._rendered("first", lambda: candidates.query(self.lowering))
        if statement is None or not candidates.limit:
            return True
        schema = self.stage.output
        own = self._old_parts(parts, Reach())
        if not isinstance(own, LocalRows):
            raise InternalError("the low gear reads its own rows on the driver")
        before = net(own.table, schema)
        table = self._ordered(parts, before)
        if table is None:
            reads = self._inputs(statement, self._reach())
            table = self._ordered(parts, before, reads)
        if table is None:
            reads[bound_name(parts.output, Form.OLD)] = LocalRows(before, weighted(schema))
            table = self.gears.rows(statement.text, reads, candidates.schema).sort_by(PLACE)
        is_last = pc.equal(table.column(IS_LAST), 1)
        had = pc.sum(before.column(WEIGHT)).as_py() or 0
        if had >= candidates.limit:
            boundary = table.filter(is_last).column(PLACE)[0].as_py()
            if boundary <= candidates.limit:
                return False
        after = table.filter(pc.invert(is_last)).slice(0, candidates.limit)
        ones = pa.array([1] * after.num_rows, pa.int64())
        after = after.select(list(schema.names)).append_column(WEIGHT, ones)
        place = before.column_names.index(WEIGHT)
        gone = before.set_column(place, WEIGHT, pc.negate(before.column(WEIGHT)))
        self._emit_rows(net(stacked(after, gone.select(after.column_names)), schema))
        return True

    def _ordered(
        self,
        parts: PartitionedStatements,
        before: pa.Table,
        reads: Mapping[str, Rows] | None = None,
    ) -> pa.Table | None:
        """What the statement of candidates gives, where the driver can tell it."""
        if not isinstance(parts.node, Top):
            return None
        order = partial(in_order, parts.node, before, schema=self.stage.output)
        return self._without_statement(parts.node.input, order, reads)

    def _of_keys(
        self, trace: Trace, aggregate: AggregateStatements, folded: Rows, schema: Schema
    ) -> pa.Table:
        """Rows of the changed groups, by as many key columns as can limit a read."""
        values = {}
        if isinstance(folded, LocalRows):
            columns = {key.name: folded.table.column(key.name) for key in aggregate.keys}
            values = {name: each for name, each in columns.items() if limits(each.type)}
        return self._limited(trace, schema, values)

    def _limited(
        self, trace: Trace, schema: Schema, values: Mapping[str, pa.ChunkedArray]
    ) -> pa.Table:
        """A trace's rows before the tick whose columns have these values; all without any."""
        conjunction = tuple(
            ColumnLimit(name, each, each.null_count > 0) for name, each in values.items()
        )
        limit = Limit.all_of(conjunction) if conjunction else None
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
        own = reads[bound_name(aggregate.output, Form.OLD)]
        if is_on_driver(aggregate) and isinstance(own, LocalRows):
            table = reached_keys(aggregate, folded.table, net(own.table, self.stage.output))
            return LocalRows(table, schema) if table.num_rows else None
        statement = self._rendered("reached", aggregate.changed_extrema)
        if statement is None:
            raise InternalError("no statement finds reached extremes")
        table = self.gears.rows(statement.text, reads, schema)
        return LocalRows(table, schema) if table.num_rows else None

    def _collect(self, statement: Statement, reads: Mapping[str, Rows], schema: Schema) -> Rows:
        return LocalRows(rows_or_culprit(self.gears, statement.text, reads, schema), schema)

    def _answer(self, statement: Statement, reads: Mapping[str, Rows], schema: Schema) -> pa.Table:
        """What a statement gives; it is not run where nothing can come out of the stage's join."""
        top = self.stage.stage.top
        has_one_part = (
            isinstance(top, Partitioned) and not top.partition
        )  # it may have a row of none
        if not has_one_part and are_void(self._partners(), reads, self.view.inlined):
            return arrow_schema(schema, weight=False).empty_table()
        return rows_or_culprit(self.gears, statement.text, reads, schema)

    def _emit_rows(self, table: pa.Table) -> None:
        schema = self.stage.output
        self._unstored.append((self._rows_trace(), table))
        self.change = local_change(table, schema)
        if self.stage.stage.relation == self.view.program.name:
            self.digest = digest_of(table, schema)


def _has_twins(rows: pa.Table, schema: Schema) -> bool:
    """Whether rows that differ elsewhere are equal in these columns."""
    return bool(net(rows.select([*schema.names, WEIGHT]), schema).num_rows < rows.num_rows)


def _bound(rows: pa.Table, schema: Schema) -> LocalRows:
    with_weights = weighted(schema)
    return LocalRows(rows.select(list(with_weights.names)), with_weights)
