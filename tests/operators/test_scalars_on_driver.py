"""Expressions that the driver computes have the values and types that Spark gives them."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from ivm_core.model.schema import parse_type
from ivm_core.operators.accumulator import OnlySpark
from ivm_core.operators.arrow_types import to_arrow
from ivm_core.operators.scalars_on_driver import values_of
from tests.operators.driver_rows import SCAN, SMALL, VALUES, drawn, scalar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEFT_TO_SPARK = [
    "v * p",
    "w * p * p",
    "z * z * z * z * z",
    "v + p",
    "-p * 2",
    "i / 2",
    "k || 'x'",
    "abs(b)",
    "year(d) / 2",
    "dayofweek(d)",
    "CASE i WHEN 1 THEN 2 END",
    "CASE WHEN i > 0 THEN k ELSE i END",
    "coalesce(w, v) * 1.000001",
    "i IN (1, NULL)",
    "k LIKE 'a\\\\%%'",
    "CAST(i AS STRING)",
    "TRY_CAST(b AS INT)",
    "CAST(p AS INT)",
    "CAST(p AS DECIMAL(12, 1))",
    "CAST(k AS INT)",
    "CAST(i AS DOUBLE)",
    "upper(k) = 'A'",
    "i = '2'",
    "v = '-0.000001'",
    "p <= '1'",
    "k = 2",
    "d < '1996'",
    "k ILIKE 'A'",
    "k NOT ILIKE 'A'",
    "k LIKE ANY ('a%', 'b')",
    "k LIKE 'a!_b' ESCAPE '!'",
    "k COLLATE UTF8_LCASE = 'a'",
    "p < 1e3",
    "i < 3000000000 AND i > 0",
    "EXTRACT(WEEK FROM d)",
]
COMPUTED = [
    "i + 1",
    "7",
    "b - i",
    "i * i",
    "p * (1 - z)",
    "p * (1 + p) - 2.50",
    "0.05 * p",
    "p * -3",
    "i * p",
    "b + p",
    "p + w",
    "q * p * (1 + p)",
    "w * w",
    "w * p * 1.5",
    "100 - b",
    "1.0 - p",
    "p / 2",
    "p / 7.0",
    "1 / p",
    "i / p",
    "b / v",
    "w / v",
    "100.00 * p / w",
    "v / w / p",
    "p / (i * i + 1)",
    "year(d)",
    "EXTRACT(YEAR FROM d) + 1",
    "month(d) * 100 + day(d)",
    "quarter(d)",
    "CASE WHEN k = 'a' THEN p ELSE 0 END",
    "CASE WHEN k LIKE '%a%' THEN p * (1 - z) WHEN i > 0 THEN w END",
    "CASE WHEN i > 0 OR k IS NULL THEN 1 ELSE b END",
    "CASE WHEN i = b THEN NULL WHEN p < 0 THEN 2.5 ELSE i END",
    "IF(d < DATE '2000-01-01', i, 0)",
    "COALESCE(p, 0)",
    "COALESCE(i, b, 7)",
    "COALESCE(k, 'none')",
    "CASE WHEN i IS NOT NULL THEN k ELSE 'é' END",
    "CAST(i AS BIGINT)",
    "CAST(i AS DECIMAL(20, 2)) * 2",
    "CAST(p AS DECIMAL(20, 4))",
    "CAST(1.5 AS DECIMAL(5, 2)) + p",
    "CAST(i AS SMALLINT)",
    "CAST(q AS DECIMAL)",
    *LEFT_TO_SPARK,
]
CONDITIONS = [
    "i > b",
    "p = w",
    "p <> i",
    "w >= q",
    "p <= 1 + 10",
    "p BETWEEN 0.06 - 0.07 AND 0.06 + 0.01",
    "p NOT BETWEEN -1 AND 1",
    "i BETWEEN b AND 7",
    "d BETWEEN DATE '1500-01-01' AND DATE '2026-02-28' + INTERVAL 3 MONTH",
    "d > '2020-01-01'",
    "k IN ('a', 'é')",
    "k NOT IN ('a')",
    "i IN (1, 7) OR k = 'b'",
    "k LIKE '%' AND NOT i = 0",
    "k NOT LIKE '_'",
    "k = 'a%_b'",
    "i <=> b",
    "p <=> w",
    "k <=> 'a'",
    "i IS NULL OR p IS NOT NULL",
    "(i > 0) = (b > 0)",
    "year(d) = 2026",
    "i + 1 > 1",
    "CASE WHEN i > 0 THEN p > 0 ELSE k = 'a' END",
    "p / 3 > 0.1",
    "TRUE",
]


@pytest.mark.parametrize("text", [*COMPUTED, *CONDITIONS])
def test_values_and_types_are_those_of_spark(spark: SparkSession, text: str) -> None:
    """Or it is left to Spark: where digits would be dropped, where a value doesn't fit."""
    draw = random.Random(text)
    told = 0
    for values in (VALUES, SMALL):
        rows = drawn(draw, 60, [1], values)
        spark.createDataFrame(rows).createOrReplaceTempView("driver_rows")
        asked = spark.sql(f"SELECT {text} AS x FROM driver_rows")
        of = parse_type(asked.schema["x"].dataType.simpleString().upper())
        try:
            found = values_of(scalar(text), rows.rename_columns([*SCAN.columns, "_weight"]))
        except OnlySpark:
            continue
        told += 1
        assert found.type == to_arrow(of)
        assert found.to_pylist() == asked.toArrow().column("x").to_pylist()
    assert bool(told) != (text in LEFT_TO_SPARK)


def half_way(draw: random.Random) -> tuple[int, int]:
    """A quotient so little below a half of the last digit that 37 more digits don't show it."""
    unit = 2 * 10**6
    while True:
        below = draw.randrange(10**36, 10**37)
        if below % 2 and below % 5:
            odd = pow(below, -1, unit)
            return (odd * below - 1) // unit, below


def test_quotients_are_rounded_once(spark: SparkSession) -> None:
    draw = random.Random(3)
    pairs = [half_way(draw) for _ in range(20)]
    pairs += [
        (draw.randrange(-(10**20), 10**20), draw.choice([2, 4, -8, 10**6])) for _ in range(50)
    ]
    columns = list(zip(*[(Decimal(top), Decimal(below)) for top, below in pairs], strict=True))
    of = pa.decimal128(38, 0)
    rows = pa.table({"t.a": pa.array(columns[0], of), "t.c": pa.array(columns[1], of)})
    spark.createDataFrame(rows.rename_columns(["a", "c"])).createOrReplaceTempView("quotients")
    wanted = spark.sql("SELECT a / c AS x FROM quotients").toArrow()
    assert values_of(scalar("a / c"), rows).to_pylist() == wanted.column("x").to_pylist()


@pytest.mark.parametrize(("text", "value"), [("i / p", Decimal("0.00")), ("b + i", 2**63 - 1)])
def test_what_spark_raises_is_left_to_it(text: str, value: Any) -> None:
    rows = drawn(random.Random(1), 3, [1], {**SMALL, text[-1]: [value], "b": [2**63 - 1], "i": [1]})
    with pytest.raises(OnlySpark):
        values_of(scalar(text), rows.rename_columns([*SCAN.columns, "_weight"]))
