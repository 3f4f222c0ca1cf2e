"""What a component reads from below it, with this tick's change: on the driver, or by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.engine.fetching import TooLarge
from ivm_core.engine.netted_frames import netted_frame, unweighted
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
    view, relations = work.reader[name], work.relations
    columns = list(work.fields[name])
    schema = work.schema(name).select(columns)
    if view.hydrates and name not in view.inner:
        found = relations.now(name)
        if found is None:
            raise TooLarge(f"only Spark can read {name}")
        parts = [found]
    else:
        change = view.change(name)
        parts = []
        if not view.hydrates:
            before = relations.old(name, view.upto, columns)
            if before is None:
                raise TooLarge(f"only Spark can read {name}")
            parts.append(before)
        if change is not None:
            if change.table is None:
                raise TooLarge(f"{change.count} changes of {name}")
            parts.append(change.table)
    names = [*columns, WEIGHT]
    wanted = arrow_schema(schema, weight=True)
    tables = [part.select(names).cast(wanted) for part in parts]
    whole = stacked(*tables) if tables else wanted.empty_table()
    return net(whole, schema) if work.is_bag else present(whole, schema)


def frame_now(work: Work, name: str) -> DataFrame:
    """A relation's rows in Spark, with weights only where these count."""
    view, relations = work.reader[name], work.relations
    columns = list(work.fields[name])
    schema = work.schema(name).select(columns)
    parts: list[Rows] = []
    if view.hydrates and name not in view.inner:
        read = relations.renewed.get(name, name)
        parts.append(relations.stored(read, relations.tick - 1))
        change = relations.change(read, relations.tick - 1)
    else:
        if not view.hydrates:
            parts.append(relations.stored(name, view.upto))
        change = view.change(name)
    if change is not None:
        parts.append(change.rows)
    if not parts:
        raise InternalError(f"{name} has neither rows nor a change")
    selected = [*(quote(each) for each in columns), WEIGHT]
    frames = [relations.gears.read(rows).select(*selected) for rows in parts]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionAll(frame)
    netted = netted_frame(whole, schema)
    if work.is_bag:
        return netted
    return unweighted(netted, schema).distinct()
