"""Frames whose structs may have NULL fields, as far as Arrow is told.

`CASE WHEN p THEN struct(1 AS a) END` is a struct that may be NULL with a field that may not.
pyspark can't bring such a frame to the driver: the field of a NULL struct is NULL in Arrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from ivm_core.model.names import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_nullable_fields(frame: DataFrame) -> DataFrame:
    """The frame with fields of its structs declared as such that may be NULL."""
    wanted = {each.name: _nullable(each.dataType) for each in frame.schema}
    if all(wanted[each.name] == each.dataType for each in frame.schema):
        return frame
    return frame.select(
        *[
            F.col(quote(each.name))
            if wanted[each.name] == each.dataType
            else F.col(quote(each.name)).cast(wanted[each.name]).alias(each.name)
            for each in frame.schema
        ]
    )


def _nullable(of: DataType) -> DataType:
    if isinstance(of, StructType):
        return StructType([StructField(each.name, _nullable(each.dataType)) for each in of])
    if isinstance(of, ArrayType):
        # elements are brought as they are declared; only fields of structs are in the way
        return ArrayType(_nullable(of.elementType), of.containsNull)
    if isinstance(of, MapType):
        return MapType(_nullable(of.keyType), _nullable(of.valueType), of.valueContainsNull)
    return of
