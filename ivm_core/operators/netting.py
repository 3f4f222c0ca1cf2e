"""Netting on the driver: rows of the same identity become one, with the sum of their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.model.errors import UserError
from ivm_core.model.names import PLACE, WEIGHT
from ivm_core.model.types import FLOAT_KINDS, Nested
from ivm_core.operators.row_identity import encoded_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ivm_core.model.schema import Schema

MANY_ROWS = 200_000
"""From here on more cores than one are worth the rows' order, which they lose."""
_LARGEST_WEIGHT = (1 << 63) - 1


def net(table: pa.Table, schema: Schema) -> pa.Table:
    """The rows of a weighted table, netted, in the order of their first coming.

    Those that cancel out are gone. A sum beyond BIGINT is a `UserError`.
    """
    names = list(schema.names)
    table = table.select([*names, WEIGHT])
    if table.num_rows > 1:
        is_nested = any(isinstance(each.type, Nested) for each in schema)
        if not is_nested and _sums_fit(table.column(WEIGHT)):
            table = _netted(table, names)
        else:
            table = _net_by_encoding(table, schema)
    return table.filter(pc.not_equal(table.column(WEIGHT), 0)).combine_chunks()


def _netted(table: pa.Table, names: list[str]) -> pa.Table:
    """Those of values that Arrow compares; of many rows by all cores, and put in order again."""
    floating = [each for each in names if pa.types.is_floating(table.schema.field(each).type)]
    many = table.num_rows > MANY_ROWS
    if not (floating or many):
        grouped = table.group_by(names, use_threads=False).aggregate([(WEIGHT, "sum")])
        return grouped.rename_columns([*names, WEIGHT])
    compared = table.append_column(PLACE, pa.array(np.arange(table.num_rows)))
    for name in floating:
        compared = compared.set_column(names.index(name), name, _bits(table.column(name)))
    summed = compared.group_by(names, use_threads=many).aggregate([(WEIGHT, "sum"), (PLACE, "min")])
    summed = summed.rename_columns([*names, WEIGHT, PLACE]).sort_by(PLACE)
    if not floating:
        return summed.drop_columns(PLACE)
    kept = table.select(names).take(summed.column(PLACE))
    return kept.append_column(WEIGHT, summed.column(WEIGHT))


def _bits(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """What tells floating-point values apart in a row's encoding: their bits, of one NaN."""
    one = pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), values.type), values)
    wanted = pa.int32() if pa.types.is_float32(values.type) else pa.int64()
    return pa.chunked_array([chunk.view(wanted) for chunk in one.chunks], wanted)


def are_flat(schema: Schema) -> bool:
    """Whether values of these columns are equal exactly where Arrow says so."""
    return all(
        not isinstance(each.type, Nested) and each.type.kind not in FLOAT_KINDS for each in schema
    )


def stacked(*tables: pa.Table) -> pa.Table:
    """The rows of tables with the same columns, whatever each says of NULLs."""
    return pa.concat_tables(tables, promote_options="default")


def repeated(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Rows of every key whose weights add up to more than one, one of each."""
    numbered = rows.select([*keys, WEIGHT]).append_column(PLACE, pa.array(np.arange(rows.num_rows)))
    # renamed by their order: Arrow's own names can be those of columns
    sums = numbered.group_by(list(keys)).aggregate([(WEIGHT, "sum"), (PLACE, "min")])
    sums = sums.rename_columns([*keys, WEIGHT, PLACE])
    twice = sums.filter(pc.greater(sums.column(WEIGHT), 1))
    return rows.take(twice.column(PLACE).sort())


def _sums_fit(weights: pa.ChunkedArray) -> bool:
    extremes = pc.min_max(weights).as_py()
    widest = max(abs(extremes["min"]), abs(extremes["max"]))
    return bool(widest * len(weights) <= _LARGEST_WEIGHT)


def _net_by_encoding(table: pa.Table, schema: Schema) -> pa.Table:
    first: dict[bytes, int] = {}
    sums: dict[bytes, int] = {}
    weights = table.column(WEIGHT).to_pylist()
    for index, (row, weight) in enumerate(zip(encoded_rows(table, schema), weights, strict=True)):
        first.setdefault(row, index)
        sums[row] = sums.get(row, 0) + weight
    if any(abs(total) > _LARGEST_WEIGHT for total in sums.values()):
        raise UserError(
            "the weights of a row add up to more than BIGINT holds",
            fix="use weights of less than 2**62",
        )
    kept = table.select(list(schema.names)).take(pa.array(first.values(), pa.int64()))
    return kept.append_column(WEIGHT, pa.array(sums.values(), pa.int64()))
