"""The high gear: a stage on files, with all of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.engine.costs import HIGH
from ivm_core.engine.gears import LocalRows, StoredRows
from ivm_core.engine.layout import ticked, weighted
from ivm_core.engine.nullable_fields import with_nullable_fields
from ivm_core.engine.offending import naming_the_culprit
from ivm_core.engine.relations import Change
from ivm_core.engine.stage_run import StageRun
from ivm_core.model.errors import InternalError
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.consolidation import consolidated
from ivm_core.operators.operator import Form
from ivm_core.operators.scan import bound_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from sqlglot import exp

    from ivm_core.compile.reach import Reach
    from ivm_core.engine.gears import Rows, Written
    from ivm_core.engine.stage_run import Statement
    from ivm_core.model.schema import Schema
    from ivm_core.model.types import DataType
    from ivm_core.operators.aggregate import AggregateStatements
    from ivm_core.operators.partitioned import PartitionedStatements
    from ivm_core.store.trace import Trace


class OnFiles(StageRun):
    """What reads relations and changes as they are stored."""

    def _unsettled(self) -> frozenset[str]:
        return self._with_gone_rows(self.relations.tick if self.view.hydrates else self.view.upto)

    def _with_gone_rows(self, last: int) -> frozenset[str]:
        """Relations whose files hold rows that are gone, up to a tick."""
        reads = self.stage.stage.body.relations
        return frozenset(name for name in reads if self.view.has_gone_rows(name, last))

    def _before(
        self,
        names: list[str],
        reach: Reach,
        columns: Mapping[str, tuple[str, ...]],
        keys: pa.Table | None,
    ) -> dict[str, Rows]:
        upto = self.view.upto
        return {bound_name(name, Form.OLD): self.relations.stored(name, upto) for name in names}

    def _bound_change(self, change: Change) -> Rows:
        return change.for_spark

    def _stored(self, trace: Trace, schema: Schema) -> Rows:
        uris = trace.uris(self.relations.history.committed, self.view.upto)
        return StoredRows(uris, ticked(schema), at=self.view.upto)

    def _write(
        self, statement: Statement, reads: Mapping[str, Rows], schema: Schema, target: str
    ) -> Written:
        with naming_the_culprit(self.gears, statement.text, reads):
            return self.gears.write(statement.text, reads, schema, target, self.relations.tick)


class HighGearRun(OnFiles):
    """On files, for everything else."""

    gear = "high gear"
    cost_way = HIGH
    binds_whole_state = True

    def _final(self, query: exp.Query | None) -> exp.Query | None:
        return None if query is None else consolidated(query, _types(self.stage.output))

    def _now(self, name: str) -> Rows:
        if name in self.view.inner:
            return self._inner_now(name)
        return self.relations.all_for_spark(name)

    def _fold(
        self, aggregate: AggregateStatements, statement: Statement, reads: Mapping[str, Rows]
    ) -> Rows | None:
        trace = self._state_trace(aggregate)
        schema = aggregate.state_schema
        target = trace.spark_target(self.relations.tick, self.relations.epoch)
        written = self._write(statement, reads, schema, target)
        trace.adopt(self.relations.tick, self.relations.epoch)
        return StoredRows((target,), ticked(schema)) if written.rows else None

    def _old_state(self, aggregate: AggregateStatements, folded: Rows) -> Rows:
        return self._stored(self._state_trace(aggregate), aggregate.state_schema)

    def _old_output(self, aggregate: AggregateStatements, folded: Rows) -> Rows:
        return self._stored(self._rows_trace(), weighted(self.stage.output))

    def _old_parts(self, parts: PartitionedStatements, reach: Reach) -> Rows:
        return self._stored(self._rows_trace(), weighted(self.stage.output))

    def _reached_keys(
        self, aggregate: AggregateStatements, folded: Rows, reads: Mapping[str, Rows]
    ) -> LocalRows | None:
        schema = aggregate.keys_schema
        statement = self._rendered("reached", aggregate.changed_extrema)
        if statement is None:
            raise InternalError("no statement finds reached extremes")
        found = self._collect(statement, reads, schema)
        return found if found.table.num_rows else None

    def _collect(
        self, statement: Statement, reads: Mapping[str, Rows], schema: Schema
    ) -> LocalRows:
        with (
            naming_the_culprit(self.gears, statement.text, reads),
            self.gears.reading(statement.text, reads) as frame,
        ):
            table = with_nullable_fields(frame).toArrow()
        return LocalRows(table.select(list(schema.names)).cast(arrow_schema(schema)), schema)

    def _emit(self, statement: Statement, reads: Mapping[str, Rows]) -> None:
        schema = weighted(self.stage.output)
        trace = self._rows_trace()
        tick, epoch = self.relations.tick, self.relations.epoch
        target = trace.spark_target(tick, epoch)
        written = self._write(statement, reads, schema, target)
        trace.adopt(tick, epoch)
        self.digest = written.digest
        if written.rows:
            rows = StoredRows((target,), ticked(schema))
            change = Change(rows, written.rows, written.deletions, written.net)
            self.change = self.relations.localised(change, self.stage.stage.relation)


def _types(schema: Schema) -> dict[str, DataType]:
    return {each.name: each.type for each in schema}
