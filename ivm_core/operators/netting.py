"""Netting on the driver: rows of the same identity become one, with the sum of their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.model.names import WEIGHT
from ivm_core.operators.row_identity import encoded_rows

if TYPE_CHECKING:
    from ivm_core.model.schema import Schema

_ENCODED = "_tv_encoded"


def net(table: pa.Table, schema: Schema) -> pa.Table:
    """The rows of a weighted table, netted; those that cancel out are gone."""
    names = list(schema.names)
    if not table.num_rows:
        return table.select([*names, WEIGHT])
    if all(_is_flat(table.schema.field(name).type) for name in names):
        summed = table.group_by(names).aggregate([(WEIGHT, "sum")])
        netted = summed.rename_columns([*names, WEIGHT]).select([*names, WEIGHT])
    else:
        encoded = pa.array(encoded_rows(table, schema), pa.binary())
        numbered = pa.table(
            {_ENCODED: encoded, WEIGHT: table.column(WEIGHT), "row": range(table.num_rows)}
        )
        groups = numbered.group_by(_ENCODED).aggregate([(WEIGHT, "sum"), ("row", "min")])
        netted = table.select(names).take(groups.column("row_min"))
        netted = netted.append_column(WEIGHT, groups.column(f"{WEIGHT}_sum"))
    kept = netted.filter(pc.not_equal(netted.column(WEIGHT), 0))
    return kept.combine_chunks()


def _is_flat(of: pa.DataType) -> bool:
    return not (pa.types.is_nested(of) or pa.types.is_floating(of))
