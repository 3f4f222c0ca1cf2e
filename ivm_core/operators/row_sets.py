"""Sets of rows on the driver: tables of distinct rows, without weights."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.model.names import INTERNAL_PREFIX, PLACE, WEIGHT
from ivm_core.model.schema import Schema
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.netting import are_flat, net, stacked
from ivm_core.operators.row_identity import encoded_rows

_OURS, _THEIRS = f"{INTERNAL_PREFIX}ours", f"{INTERNAL_PREFIX}theirs"
_MANY_TIMES = 4


def no_rows(schema: Schema) -> pa.Table:
    """The empty set."""
    return arrow_schema(schema).empty_table()


def with_weight(rows: pa.Table, weight: int) -> pa.Table:
    """The rows of a set, each with a weight."""
    return rows.append_column(WEIGHT, pa.repeat(pa.scalar(weight, pa.int64()), rows.num_rows))


def taken_away(rows: pa.Table) -> pa.Table:
    """A Z-set with every weight negated."""
    place = rows.column_names.index(WEIGHT)
    return rows.set_column(place, WEIGHT, pc.negate(rows.column(WEIGHT)))


def present(rows: pa.Table, schema: Schema) -> pa.Table:
    """The rows of a netted Z-set that are there, each once."""
    netted = net(rows, schema)
    found = netted.filter(pc.greater(netted.column(WEIGHT), 0))
    return found.select(list(schema.names))


def near(known: pa.Table, found: pa.Table, columns: Schema) -> pa.Table:
    """At least the known rows that have the same columns as a found one, fast where many don't."""
    first = next(iter(columns), None)
    if first is None or known.num_rows < _MANY_TIMES * found.num_rows:
        return known
    if not are_flat(Schema((first,), internal=True)):
        return known
    values = pc.unique(found.column(first.name))
    return known.filter(pc.is_in(known.column(first.name), value_set=values))


def either(ours: pa.Table, theirs: pa.Table, schema: Schema) -> pa.Table:
    """Rows of both sets, each once."""
    if not theirs.num_rows:
        return ours
    if not ours.num_rows:
        return theirs
    return present(with_weight(stacked(ours, theirs), 1), schema)


def without(ours: pa.Table, theirs: pa.Table, schema: Schema) -> pa.Table:
    """Rows of one set that the other lacks."""
    if not theirs.num_rows or not ours.num_rows:
        return ours
    theirs = near(theirs, ours, schema)
    return present(stacked(with_weight(ours, 1), with_weight(theirs, -1)), schema)


def within(ours: pa.Table, theirs: pa.Table, schema: Schema) -> pa.Table:
    """Rows of one set that the other has too."""
    if not theirs.num_rows or not ours.num_rows:
        return ours.slice(0, 0)
    return without(ours, without(ours, theirs, schema), schema)


def latest(before: pa.Table, after: pa.Table, keys: list[str]) -> pa.Table:
    """One row for every group of keys: that of `after` where it has one, else that of `before`."""
    if not before.num_rows or not after.num_rows:
        return after if after.num_rows else before
    whole = stacked(before, after)
    if not keys:
        return after
    numbered = whole.select(keys).append_column(PLACE, _places(whole))
    grouped = numbered.group_by(keys, use_threads=False).aggregate([(PLACE, "max")])
    return whole.take(grouped.column(f"{PLACE}_max")).combine_chunks()


def of_keys(rows: pa.Table, wanted: pa.Table, keys: Schema) -> pa.Table:
    """The rows whose keys are among those of the wanted ones."""
    names = list(keys.names)
    if not names or not rows.num_rows:
        return rows if wanted.num_rows else rows.slice(0, 0)
    if not are_flat(keys):
        there = set(encoded_rows(wanted.select(names), keys))
        mask = [each in there for each in encoded_rows(rows.select(names), keys)]
        return rows.filter(pa.array(mask, pa.bool_()))
    ours = pa.chunked_array([_places(rows), pa.nulls(wanted.num_rows, pa.int64())])
    theirs = pa.chunked_array([pa.repeat(False, rows.num_rows), pa.repeat(True, wanted.num_rows)])
    whole = stacked(rows.select(names), wanted.select(names))
    whole = whole.append_column(_OURS, ours).append_column(_THEIRS, theirs)
    totals = [(_OURS, "list"), (_THEIRS, "max")]
    grouped = whole.group_by(names, use_threads=False).aggregate(totals)
    found = grouped.filter(grouped.column(f"{_THEIRS}_max")).column(f"{_OURS}_list")
    return rows.take(pc.list_flatten(found).drop_null()).combine_chunks()


def better(
    found: pa.Table, known: pa.Table, keys: list[str], value: str, *, is_min: bool
) -> pa.Table:
    """Rows whose value beats the one that is known of their group, or whose group is not known.

    Both have one row for every group. NULL is worse than any value.
    """
    if not known.num_rows or not found.num_rows:
        return found
    ours = pa.chunked_array([_places(found), pa.nulls(known.num_rows, pa.int64())])
    theirs = pa.chunked_array([pa.nulls(found.num_rows, pa.int64()), _places(known)])
    whole = stacked(found.select(keys), known.select(keys))
    whole = whole.append_column(_OURS, ours).append_column(_THEIRS, theirs)
    totals = [(_OURS, "max"), (_THEIRS, "max")]
    grouped = whole.group_by(keys, use_threads=False).aggregate(totals)
    grouped = grouped.filter(pc.is_valid(grouped.column(f"{_OURS}_max")))
    at, beside = grouped.column(f"{_OURS}_max"), grouped.column(f"{_THEIRS}_max")
    new, old = found.column(value).take(at), known.column(value).take(beside)
    beats = (pc.less if is_min else pc.greater)(new, old)
    is_first = pc.and_(pc.is_null(old), pc.is_valid(new))
    wanted = pc.or_(pc.or_(pc.is_null(beside), is_first), pc.fill_null(beats, False))
    return found.take(at.filter(wanted)).combine_chunks()


def _places(table: pa.Table) -> pa.Array:
    return pa.array(range(table.num_rows), pa.int64())
