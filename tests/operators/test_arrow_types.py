"""Types go to Arrow and Spark and come back the same."""

from __future__ import annotations

import pytest
from pyspark.sql import types as spark_types

from ivm_core.model.errors import InvalidName, Unsupported
from ivm_core.model.schema import parse_schema
from ivm_core.operators.arrow_types import arrow_schema, from_arrow, from_spark, to_spark

EVERY_TYPE = parse_schema(
    "a BOOLEAN, b TINYINT, c SMALLINT, d INT NOT NULL, e BIGINT, f FLOAT, g DOUBLE, "
    "h DECIMAL(38,10), i STRING, j BINARY, k DATE, l TIMESTAMP, m TIMESTAMP_NTZ, "
    "n ARRAY<STRUCT<x: INT, y: ARRAY<DECIMAL(5,2)>>>, o STRUCT<`z.z`: TIMESTAMP>, "
    "p MAP<STRING, ARRAY<MAP<INT, DOUBLE>>>"
)


def test_there_and_back() -> None:
    assert from_spark(to_spark(EVERY_TYPE)) == EVERY_TYPE
    assert from_arrow(arrow_schema(EVERY_TYPE, weight=True)) == EVERY_TYPE
    assert arrow_schema(EVERY_TYPE, weight=True).names[-1] == "_weight"


@pytest.mark.parametrize(
    "odd",
    [
        spark_types.MapType(spark_types.StringType(), spark_types.VariantType()),
        spark_types.NullType(),
        spark_types.VariantType(),
        spark_types.DayTimeIntervalType(),
        spark_types.YearMonthIntervalType(),
        spark_types.CalendarIntervalType(),
        spark_types.StringType("UTF8_LCASE"),
        spark_types.VarcharType(3),
        spark_types.CharType(3),
        spark_types.TimeType(),
    ],
    ids=str,
)
def test_spark_types_without_identity_are_refused(odd: spark_types.DataType) -> None:
    schema = spark_types.StructType().add("c", spark_types.ArrayType(odd))
    with pytest.raises(Unsupported) as refusal:
        from_spark(schema, "view v")
    assert refusal.value.position == "column 'c' of view v"
    assert refusal.value.rewrite not in ("", "cast it")


def test_a_column_without_an_alias_is_told_to_get_one() -> None:
    with pytest.raises(InvalidName, match="an alias with AS"):
        from_spark(spark_types.StructType().add("sum(x)", spark_types.LongType()))
