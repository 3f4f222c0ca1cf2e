"""Netting on the driver: rows of the same identity become one, with the sum of their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.model.errors import UserError
from ivm_core.model.names import WEIGHT
from ivm_core.model.types import FLOAT_KINDS, Nested
from ivm_core.operators.row_identity import encoded_rows

if TYPE_CHECKING:
    from ivm_core.model.schema import Schema

MANY_ROWS = 200_000
"""From here on more cores than one are worth the rows' order, which they lose."""
_PLACE = "?place"
_LARGEST_WEIGHT = (1 << 63) - 1


def net(table: pa.Table, schema: Schema) -> pa.Table:
    """The rows of a weighted table, netted, in the order of their first coming.

    Those that cancel out are gone. A sum beyond BIGINT is a `UserError`.
    """
    names = list(schema.names)
    table = table.select([*names, WEIGHT])
    if table.num_rows > 1:
        if are_flat(schema) and _sums_fit(table.column(WEIGHT)):
            of_so_many = _many_netted if table.num_rows > MANY_ROWS else _netted
            table = of_so_many(table, names)
        else:
            table = _net_by_encoding(table, schema)
    return table.filter(pc.not_equal(table.column(WEIGHT), 0)).combine_chunks()


def _netted(table: pa.Table, names: list[str]) -> pa.Table:
    grouped = table.group_by(names, use_threads=False).aggregate([(WEIGHT, "sum")])
    return grouped.rename_columns([*names, WEIGHT])


def _many_netted(table: pa.Table, names: list[str]) -> pa.Table:
    """The same by all cores, put in the order of the rows' first coming afterwards."""
    placed = table.append_column(_PLACE, pa.array(np.arange(table.num_rows)))
    grouped = placed.group_by(names).aggregate([(WEIGHT, "sum"), (_PLACE, "min")])
    grouped = grouped.rename_columns([*names, WEIGHT, _PLACE])
    return grouped.sort_by(_PLACE).drop_columns(_PLACE)


def are_flat(schema: Schema) -> bool:
    """Whether values of these columns are equal exactly where Arrow says so."""
    return all(
        not isinstance(each.type, Nested) and each.type.kind not in FLOAT_KINDS for each in schema
    )


def stacked(*tables: pa.Table) -> pa.Table:
    """The rows of tables with the same columns, whatever each says of NULLs."""
    return pa.concat_tables(tables, promote_options="default")


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
