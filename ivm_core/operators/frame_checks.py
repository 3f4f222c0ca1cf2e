"""Fitting a Spark DataFrame to declared columns without evaluating it.

Types are compared now and widened where no value can be lost. What only values can tell (a NULL
where none may be) raises while the frame is evaluated; `refusal_of` turns that into a `BatchError`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from ivm_core.model.errors import BatchError, IvmError
from ivm_core.model.names import WEIGHT, quote
from ivm_core.model.types import BIGINT, Array, DataType, Decimal, Map, Struct
from ivm_core.operators.arrow_types import from_spark_type, to_spark_type

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import Column, DataFrame

    from ivm_core.model.schema import Schema

_MARK = "TIDEVIEW_NULL_IN"
_MARKED = re.compile(rf"{_MARK}\[(?P<source>[^|\]]*)\|(?P<column>[^|\]]*)\|(?P<type>[^|\]]*)\]")
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
_WIDER = {
    "TINYINT": {"SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"},
    "SMALLINT": {"INT", "BIGINT", "FLOAT", "DOUBLE"},
    "INT": {"BIGINT", "DOUBLE"},
    "FLOAT": {"DOUBLE"},
}


def widens(given: DataType, wanted: DataType) -> bool:
    """Whether every value of one type is a value of the other."""
    match given, wanted:
        case _ if given == wanted:
            return True
        case Decimal(), Decimal():
            more_scale = wanted.scale - given.scale
            return more_scale >= 0 and wanted.precision - given.precision >= more_scale
        case _, Decimal():
            digits = _DIGITS.get(given.kind)
            return digits is not None and digits <= wanted.precision - wanted.scale
        case Array(), Array():
            return widens(given.element, wanted.element)
        case Map(), Map():
            return widens(given.key, wanted.key) and widens(given.value, wanted.value)
        case Struct(), Struct():
            return len(given.fields) == len(wanted.fields) and all(
                ours.lower() == theirs.lower() and widens(smaller, larger)
                for (ours, smaller), (theirs, larger) in zip(
                    given.fields, wanted.fields, strict=True
                )
            )
        case _:
            return wanted.kind in _WIDER.get(given.kind, ())


def fitted_frame(
    frame: DataFrame,
    source: str,
    schema: Schema,
    keys: Collection[str] = (),
    sign: int | None = None,
) -> DataFrame:
    """The frame with the schema's columns and `_weight`, still lazy; else a `BatchError`.

    `sign` is the weight of every row; None takes the frame's `_weight`, or +1 where it has none.
    `keys` may not be NULL, like columns declared NOT NULL.
    """
    where = f"batch for source {source}"
    given = {each.name.lower(): each for each in frame.schema.fields}
    columns = []
    for field in schema:
        column = F.col(quote(given[field.name.lower()].name))
        found = _type_of(given[field.name.lower()].dataType)
        if found is not None and (isinstance(found, str) or not widens(found, field.type)):
            raise BatchError(
                f"column {field.name} has the wrong type",
                where,
                f"cast it: CAST({quote(field.name)} AS {field.type.ddl})",
                column=field.name,
                expected=field.type.ddl,
                got=str(found),
            )
        fitted = column if found == field.type else column.cast(to_spark_type(field.type))
        if not field.nullable or field.name in keys:
            fitted = _never_null(fitted, source, field.name, field.type)
        columns.append(fitted.alias(field.name))
    return _with_weight(frame, columns, source, sign).where(F.col(WEIGHT) != F.lit(0))


def _with_weight(
    frame: DataFrame, columns: list[Column], source: str, sign: int | None
) -> DataFrame:
    weight = next((each for each in frame.schema.fields if each.name.lower() == WEIGHT), None)
    if weight is None or sign is not None:
        one = F.lit(1 if sign is None else sign).cast("bigint")
        return frame.select(*columns, one.alias(WEIGHT))
    if not isinstance(weight.dataType, spark_types.IntegralType):
        raise BatchError(
            "weights are integers",
            f"batch for source {source}",
            f"cast {WEIGHT} to BIGINT",
            column=WEIGHT,
            expected="BIGINT",
            got=weight.dataType.simpleString().upper(),
        )
    checked = _never_null(F.col(quote(weight.name)).cast("bigint"), source, WEIGHT, BIGINT)
    return frame.select(*columns, checked.alias(WEIGHT))


def _type_of(of: spark_types.DataType) -> DataType | str | None:
    """The model's type; None for VOID, which any column takes; text for what no column takes."""
    if isinstance(of, spark_types.NullType):
        return None
    try:
        return from_spark_type(of)
    except IvmError:
        return of.simpleString().upper()


def _never_null(column: Column, source: str, name: str, of: DataType) -> Column:
    message = f"{_MARK}[{source}|{name}|{of.kind}]"
    return F.when(column.isNull(), F.raise_error(F.lit(message))).otherwise(column)


def refusal_of(failure: BaseException) -> BatchError | None:
    """The `BatchError` behind a failed evaluation of a fitted frame; None for other failures."""
    found = _MARKED.search(str(failure))
    if found is None:
        return None
    what = "a weight is NULL" if found["column"] == WEIGHT else "NULL where none may be"
    return BatchError(
        what,
        f"batch for source {found['source']}",
        "give every row a value there",
        column=found["column"],
        expected=f"{found['type']} NOT NULL",
        got="NULL",
    )
