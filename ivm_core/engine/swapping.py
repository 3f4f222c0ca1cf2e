"""The swap: within one tick a view's next definition takes the place of the one before.

What was prepared beside the view is brought up to the tick, and its rows are compared with those
that the view had:

    Δ view = new definition at the tick − view before the tick

That is the view's delta of the tick, and what all views that read it get. Where the columns stay,
it goes to the view's own trace, so that its history goes on; where they don't, the rows of the new
definition are the view's from here on, and the delta is for the readers alone, with NULL in
columns that rows of the old definition don't have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from ivm_core.engine.gears import FrameRows, LocalRows, StoredRows
from ivm_core.engine.history import with_key
from ivm_core.engine.layout import ticked, weighted
from ivm_core.engine.netted_frames import netted_frame, shown_frame
from ivm_core.engine.relations import LOCAL_ROWS, Change, local_change
from ivm_core.model.digest import Digest
from ivm_core.model.errors import InternalError
from ivm_core.model.names import WEIGHT, quote
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.netting import are_flat, net, stacked
from ivm_core.operators.row_identity import digest_of
from ivm_core.operators.shown_rows import shown_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ivm_core.engine.definitions import ViewDefinition
    from ivm_core.engine.evaluation import ViewResult
    from ivm_core.engine.relations import TickRelations
    from ivm_core.model.schema import Schema

SHOWN = 20
CANCELLING_ROWS = 2_000_000
"""Stored rows of long histories, few of which are there, that are compared on the driver."""


@dataclass(frozen=True)
class Difference:
    """What the rows of a view's next definition are beside those that it has."""

    change: Change | None
    digest: Digest
    inserted: int = 0
    """Rows that come, each as often as it is there."""
    deleted: int = 0
    sample: tuple[dict[str, Any], ...] = ()


class Swap:
    """A view and its next definition in one tick."""

    def __init__(self, relations: TickRelations, definition: ViewDefinition) -> None:
        """`definition` is the view's next one; its shadow has its folder's name."""
        self._relations = relations
        self._view = definition.name
        self._shadow = definition.kept_in
        self._before = relations.history.generation(self._view)
        self._schema = relations.schema(self._shadow)
        self.keeps_columns = self._before.schema == self._schema

    def run(self, prepared: ViewResult) -> tuple[ViewResult, Difference]:
        """The view's result of the tick; `prepared` is what the tick did to its shadow."""
        found = self.difference(store=self.keeps_columns)
        change = found.change
        states = self._relations.history.states
        shadow, view = states[self._shadow], states[self._view]
        whole = Digest.parse(shadow.digest or Digest.zero().hex) + prepared.digest
        if self.keeps_columns:
            old = Digest.parse(view.digest or Digest.zero().hex)
            if (old + found.digest).hex != whole.hex:
                raise InternalError(f"the difference of view {self._view} doesn't add up")
        self._relations.produced[self._view] = change
        ways = with_key(prepared.ways, self._shadow, self._view)
        ways[self._view] = f"altered: {ways.get(self._view, 'nothing new')}, compared"
        return replace(
            prepared,
            skipped=False,
            rows_out=0 if change is None else change.count,
            deletions=0 if change is None else change.deletions,
            net=shadow.rows + prepared.net - view.rows,
            digest=found.digest if self.keeps_columns else whole,
            ways=ways,
            costs=with_key(prepared.costs, self._shadow, self._view),
            replaces=not self.keeps_columns,
        ), found

    def difference(self, *, store: bool) -> Difference:
        """The rows that come and go; into the view's trace with `store`."""
        relations = self._relations
        last = relations.tick - 1
        fresh = relations.change(self._shadow, last)
        count = relations.row_count(self._view, last) + relations.row_count(self._shadow, last)
        count += 0 if fresh is None else fresh.count
        states = relations.history.states
        present = states[self._view].rows + states[self._shadow].rows
        is_here = count <= LOCAL_ROWS or (
            # much of what is stored cancels out, and Arrow sees to that
            present <= LOCAL_ROWS and count <= CANCELLING_ROWS and are_flat(self._schema)
        )
        after = relations.now(self._shadow) if is_here else None
        return self._in_spark(store=store) if after is None else self._here(after, store=store)

    def _here(self, after: pa.Table, *, store: bool) -> Difference:
        """On the driver."""
        relations, schema = self._relations, self._schema
        trace = relations.layout.rows_of(self._before)
        names = [*self._before.schema.names, WEIGHT]
        old = trace.read(relations.history.committed, relations.tick - 1, None, names)
        wanted = arrow_schema(weighted(schema))
        gone = [
            old.column(each.name)
            if self._has(each.name)
            else pa.nulls(old.num_rows, wanted.field(each.name).type)
            for each in schema
        ]
        gone.append(pc.negate(old.column(WEIGHT)))
        before = pa.table(gone, names=wanted.names).cast(wanted)
        table = net(stacked(after.select(wanted.names).cast(wanted), before), schema)
        if store:
            trace.append(table, relations.tick, relations.epoch)
        weights = table.column(WEIGHT)
        comes = pc.greater(weights, 0)
        return Difference(
            local_change(table, schema),
            digest_of(table, schema),
            pc.sum(weights.filter(comes)).as_py() or 0,
            -(pc.sum(weights.filter(pc.invert(comes))).as_py() or 0),
            tuple(shown_rows(table.slice(0, SHOWN))),
        )

    def _in_spark(self, *, store: bool) -> Difference:
        """With Spark, in files."""
        relations, schema = self._relations, self._schema
        gears, last = relations.gears, relations.tick - 1
        fresh = relations.change(self._shadow, last)
        names = [*(quote(name) for name in schema.names), WEIGHT]
        whole = gears.read(relations.stored(self._shadow, last)).select(*names)
        if fresh is not None:
            whole = whole.unionAll(gears.read(fresh.rows).select(*names))
        old = gears.read(relations.stored(self._view, last))
        gone = [
            F.col(quote(each.name))
            if self._has(each.name)
            else F.lit(None).cast(each.type.ddl).alias(each.name)
            for each in schema
        ]
        whole = whole.unionAll(old.select(*gone, (-F.col(WEIGHT)).alias(WEIGHT)))
        frame = netted_frame(whole, schema)
        digest = Digest.zero()
        if store:
            columns = weighted(schema)
            trace = relations.layout.rows_of(self._before)
            target = trace.spark_target(relations.tick, relations.epoch)
            digest = gears.write_frame(frame, columns, target, relations.tick).digest
            trace.adopt(relations.tick, relations.epoch)
            frame = gears.read(StoredRows((target,), ticked(columns))).select(*names)
        return self._counted(frame, digest)

    def _counted(self, frame: DataFrame, digest: Digest) -> Difference:
        counts = frame.agg(
            F.count("*"),
            F.count_if(F.col(WEIGHT) < 0),
            F.sum(F.greatest(F.col(WEIGHT), F.lit(0))),
            F.sum(F.greatest(-F.col(WEIGHT), F.lit(0))),
        ).first()
        rows, deletions, inserted, deleted = (int(each or 0) for each in counts or (0, 0, 0, 0))
        if not rows:
            return Difference(None, digest)
        change = Change(FrameRows(frame), rows, deletions, inserted - deleted)
        if rows <= LOCAL_ROWS:
            wanted = arrow_schema(weighted(self._schema))
            table = frame.toArrow().select(wanted.names).cast(wanted)
            change = replace(change, rows=LocalRows(table, weighted(self._schema)))
        return Difference(change, digest, inserted, deleted, shown_frame(frame.limit(SHOWN)))

    def _has(self, name: str) -> bool:
        """Whether the old rows have the column, of the same type."""
        old: Schema = self._before.schema
        return name in old.names and old.field(name).type == self._schema.field(name).type
