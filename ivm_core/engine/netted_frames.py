"""Netting in Spark frames, by the bits of rows, and back to plain rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from ivm_core.model.names import TICK, WEIGHT, quote
from ivm_core.operators.consolidation import goes_by_bits
from ivm_core.operators.row_identity import encoded_column
from ivm_core.operators.shown_rows import BEYOND_PYTHON, shown_rows
from ivm_core.operators.sql import column, text_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ivm_core.model.schema import Schema


def netted_frame(frame: DataFrame, schema: Schema, *, per_tick: bool = False) -> DataFrame:
    """Rows of one identity together, by their bits; per tick or over all."""
    keys = []
    for number, each in enumerate(schema):
        if goes_by_bits(each.type):
            encoded = F.expr(text_of(encoded_column(column(each.name), each.type)))
            keys.append(encoded.alias(f"_tv_{number}"))
        else:
            keys.append(F.col(quote(each.name)))
    by_bits = [
        F.first(quote(each.name)).alias(each.name) for each in schema if goes_by_bits(each.type)
    ]
    keys += [F.col(TICK)] if per_tick else []
    summed = frame.groupBy(*keys).agg(F.sum(WEIGHT).alias(WEIGHT), *by_bits)
    names = [*(quote(name) for name in schema.names), WEIGHT, *([TICK] if per_tick else [])]
    return summed.where(F.col(WEIGHT) != 0).select(*names)


def shown_frame(frame: DataFrame) -> tuple[dict[str, Any], ...]:
    """All rows of a small frame as Python has them, as `shown_rows` does."""
    try:
        return tuple(row.asDict(recursive=True) for row in frame.collect())
    except BEYOND_PYTHON:
        return tuple(shown_rows(frame.toArrow()))


def unweighted(frame: DataFrame, schema: Schema) -> DataFrame:
    """Every row as often as its weight says."""
    names = [quote(name) for name in schema.names]
    copies = F.explode(F.sequence(F.lit(1).cast("bigint"), F.col(WEIGHT)))
    return frame.select(*names, copies.alias("_tv_copy")).select(*names)
