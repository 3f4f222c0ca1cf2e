"""One mapping between the model's types, Arrow's and Spark's.

TIMESTAMP is timestamp[us, UTC], TIMESTAMP_NTZ timestamp[us], STRING and BINARY have 32-bit offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types as spark_types

from ivm_core.model.errors import Unsupported
from ivm_core.model.names import WEIGHT
from ivm_core.model.schema import Field, Schema
from ivm_core.model.types import Array, DataType, Decimal, Map, Scalar, Struct, refused_type

if TYPE_CHECKING:
    from collections.abc import Callable

_SCALARS: dict[str, tuple[pa.DataType, type[spark_types.DataType]]] = {
    "BOOLEAN": (pa.bool_(), spark_types.BooleanType),
    "TINYINT": (pa.int8(), spark_types.ByteType),
    "SMALLINT": (pa.int16(), spark_types.ShortType),
    "INT": (pa.int32(), spark_types.IntegerType),
    "BIGINT": (pa.int64(), spark_types.LongType),
    "FLOAT": (pa.float32(), spark_types.FloatType),
    "DOUBLE": (pa.float64(), spark_types.DoubleType),
    "STRING": (pa.string(), spark_types.StringType),
    "BINARY": (pa.binary(), spark_types.BinaryType),
    "DATE": (pa.date32(), spark_types.DateType),
    "TIMESTAMP": (pa.timestamp("us", tz="UTC"), spark_types.TimestampType),
    "TIMESTAMP_NTZ": (pa.timestamp("us"), spark_types.TimestampNTZType),
}
_OF_SPARK = {spark: Scalar(kind) for kind, (_, spark) in _SCALARS.items()}
_REFUSED_SPARK = {
    "variant": "VARIANT",
    "void": "VOID",
    "char": "CHAR",
    "varchar": "VARCHAR",
    "interval": "INTERVAL",
    "daytimeinterval": "INTERVAL",
    "yearmonthinterval": "INTERVAL",
    "time": "TIME",
    "geometry": "GEOMETRY",
    "geography": "GEOGRAPHY",
}


def to_arrow(of: DataType) -> pa.DataType:
    """The Arrow type that holds values of this type."""
    match of:
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Array(element):
            return pa.list_(to_arrow(element))
        case Struct(fields):
            return pa.struct([pa.field(name, to_arrow(each)) for name, each in fields])
        case Map(key, value):
            return pa.map_(to_arrow(key), to_arrow(value))
        case _:
            return _SCALARS[of.kind][0]


def arrow_schema(schema: Schema, weight: bool = False) -> pa.Schema:
    """The Arrow schema of these columns, with `_weight` int64 behind them where asked."""
    fields = [pa.field(each.name, to_arrow(each.type), each.nullable) for each in schema]
    if weight:
        fields.append(pa.field(WEIGHT, pa.int64(), nullable=False))
    return pa.schema(fields)


def to_spark_type(of: DataType) -> spark_types.DataType:
    """The Spark type of this type."""
    match of:
        case Decimal(precision, scale):
            return spark_types.DecimalType(precision, scale)
        case Array(element):
            return spark_types.ArrayType(to_spark_type(element), True)
        case Struct(fields):
            return spark_types.StructType(
                [spark_types.StructField(name, to_spark_type(each)) for name, each in fields]
            )
        case Map(key, value):
            return spark_types.MapType(to_spark_type(key), to_spark_type(value), True)
        case _:
            return _SCALARS[of.kind][1]()


def to_spark(schema: Schema) -> spark_types.StructType:
    """The Spark schema of these columns."""
    return spark_types.StructType(
        [
            spark_types.StructField(each.name, to_spark_type(each.type), each.nullable)
            for each in schema
        ]
    )


def from_spark_type(of: spark_types.DataType, where: str = "") -> DataType:
    """The model's type of a Spark type; what can't be in a row of a Z-set is `Unsupported`."""
    if isinstance(of, spark_types.StringType) and of != spark_types.StringType():
        raise _refusal("collate" if "collate" in of.simpleString() else "string", of, where)
    if type(of) in _OF_SPARK:
        return _OF_SPARK[type(of)]
    match of:
        case spark_types.DecimalType():
            return Decimal(of.precision, of.scale)
        case spark_types.ArrayType():
            return Array(from_spark_type(of.elementType, where))
        case spark_types.StructType():
            return Struct(
                tuple((each.name, from_spark_type(each.dataType, where)) for each in of.fields)
            )
        case spark_types.MapType():
            return Map(from_spark_type(of.keyType, where), from_spark_type(of.valueType, where))
        case _:
            raise _refusal(of.typeName(), of, where)


def from_spark(of: spark_types.StructType, where: str = "") -> Schema:
    """The model's schema of a Spark schema; `Unsupported` types and names that `Schema` refuses.

    `where` says whose columns these are, for the messages.
    """
    return Schema(
        tuple(
            Field(
                each.name, from_spark_type(each.dataType, _column(each.name, where)), each.nullable
            )
            for each in of.fields
        )
    )


def _column(name: str, where: str) -> str:
    return f"column {name!r} of {where}" if where else f"column {name!r}"


def _refusal(word: str, of: spark_types.DataType, where: str) -> Unsupported:
    known = refused_type(_REFUSED_SPARK.get(word, word), where)
    return known or Unsupported(
        f"the type {of.simpleString()}", where, "it can't be in a row of a Z-set", "cast it"
    )


_ARROW_TESTS: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "BOOLEAN"),
    (pa.types.is_int8, "TINYINT"),
    (pa.types.is_int16, "SMALLINT"),
    (pa.types.is_int32, "INT"),
    (pa.types.is_int64, "BIGINT"),
    (pa.types.is_float32, "FLOAT"),
    (pa.types.is_float64, "DOUBLE"),
    (pa.types.is_string, "STRING"),
    (pa.types.is_large_string, "STRING"),
    (pa.types.is_string_view, "STRING"),
    (pa.types.is_binary, "BINARY"),
    (pa.types.is_large_binary, "BINARY"),
    (pa.types.is_fixed_size_binary, "BINARY"),
    (pa.types.is_binary_view, "BINARY"),
    (pa.types.is_date32, "DATE"),
)


def from_arrow_type(of: pa.DataType, where: str = "") -> DataType:
    """The model's type whose values this Arrow type holds; others are `Unsupported`."""
    for holds, kind in _ARROW_TESTS:
        if holds(of):
            return Scalar(kind)
    if pa.types.is_timestamp(of):
        return Scalar("TIMESTAMP" if of.tz else "TIMESTAMP_NTZ")
    if pa.types.is_decimal(of) and of.precision <= 38 and of.scale >= 0:
        return Decimal(of.precision, of.scale)
    if pa.types.is_struct(of):
        return Struct(tuple((each.name, from_arrow_type(each.type, where)) for each in of))
    if pa.types.is_map(of):
        return Map(from_arrow_type(of.key_type, where), from_arrow_type(of.item_type, where))
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        return Array(from_arrow_type(of.value_type, where))
    raise Unsupported(f"the Arrow type {of}", where, "it has no type of its own here", "cast it")


def from_arrow(of: pa.Schema, where: str = "") -> Schema:
    """The model's schema of an Arrow schema, without `_weight`; else as `from_spark`."""
    return Schema(
        tuple(
            Field(each.name, from_arrow_type(each.type, _column(each.name, where)), each.nullable)
            for each in of
            if each.name != WEIGHT
        )
    )
