"""What a component reads from below it, with this tick's change: on the driver, or by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.engine.gears import LocalRows
from ivm_core.engine.layout import weighted
from ivm_core.engine.netted_frames import netted_frame, unweighted
from ivm_core.engine.nullable_fields import with_nullable_fields
from ivm_core.model.errors import InternalError
from ivm_core.model.names import WEIGHT, quote
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.netting import net, stacked
from ivm_core.operators.row_sets import present

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from ivm_core.engine.gears import Rows
    from ivm_core.engine.recursion.work import Work


DRIVER_ROWS = 3_000_000
"""Up to this many rows a fixpoint whose rules need no statement is found on the driver."""


def rows_now(work: Work, name: str) -> int:
    """Rows of a relation, as an upper bound."""
    view, relations = work.reader[name], work.relations
    if view.hydrates and name in view.inner:
        change = view.change(name)
        return 0 if change is None else change.count
    at = relations.tick - 1 if view.hydrates else view.upto
    change = relations.change(name, at)
    return relations.row_count(name, at) + (0 if change is None else change.count)


def table_now(work: Work, name: str) -> pa.Table:
    """A relation's rows on the driver, with weights only where these count."""
    columns = list(work.fields[name])
    schema = work.schema(name).select(columns)
    names = [*columns, WEIGHT]
    wanted = arrow_schema(schema, weight=True)
    tables = [_on_driver(work, rows, names).cast(wanted) for rows in _parts_now(work, name)]
    whole = stacked(*tables) if tables else wanted.empty_table()
    return net(whole, schema) if work.is_bag else present(whole, schema)


def _on_driver(work: Work, rows: Rows, names: list[str]) -> pa.Table:
    if isinstance(rows, LocalRows):
        return rows.table.select(names)
    frame = work.relations.gears.read(rows).select(*[quote(name) for name in names])
    return with_nullable_fields(frame).toArrow()


def _parts_now(work: Work, name: str) -> list[Rows]:
    """The rows before and the change, wherever they are."""
    view, relations = work.reader[name], work.relations
    parts: list[Rows] = []
    if view.hydrates and name not in view.inner:
        read = relations.renewed.get(name, name)
        parts.append(_before(work, read, relations.tick - 1))
        change = relations.change(read, relations.tick - 1)
    else:
        if not view.hydrates:
            parts.append(_before(work, name, view.upto))
        change = view.change(name)
    return parts if change is None else [*parts, change.rows]


def _before(work: Work, name: str, at: int) -> Rows:
    """Rows at an earlier tick, on the driver where few and where they can be."""
    relations = work.relations
    if relations.row_count(name, at) > DRIVER_ROWS:
        return relations.stored(name, at)
    table = relations.old(name, at)
    if table is None:
        return relations.stored(name, at)
    return LocalRows(table, weighted(relations.schema(name)))


def frame_now(work: Work, name: str) -> DataFrame:
    """A relation's rows in Spark, with weights only where these count."""
    columns = list(work.fields[name])
    schema = work.schema(name).select(columns)
    parts = _parts_now(work, name)
    if not parts:
        raise InternalError(f"{name} has neither rows nor a change")
    selected = [*(quote(each) for each in columns), WEIGHT]
    frames = [work.relations.gears.read(rows).select(*selected) for rows in parts]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionAll(frame)
    netted = netted_frame(whole, schema)
    if work.is_bag:
        return netted
    return unweighted(netted, schema).distinct()
