"""A sieve lets through what Spark's filter does, and where it says all of a filter, just that."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
import sqlglot

from ivm_core.model.ddl import parse_type
from ivm_core.operators.sieve import passing, sieved
from ivm_core.operators.sql import scalar_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {
    "i": "INT",
    "j": "BIGINT",
    "m": "DECIMAL(12,2)",
    "d": "DATE",
    "e": "DATE",
    "s": "STRING",
    "x": "DOUBLE",
    "u": "DECIMAL(38,38)",
    "w": "DECIMAL(38,30)",
}
DAYS = [datetime.date(1996, 1, 31), datetime.date(1996, 2, 29), datetime.date(1997, 2, 28), None]
TEXTS = ["", "a", "A", "ab", "a\nb", "ä", "a_b", "a%b", "\U0001f30a", "\uffee", None]
ROWS = pa.table(
    {
        "i": pa.array([n % 7 - 3 if n % 11 else None for n in range(88)], pa.int32()),
        "j": pa.array([(n - 40) * 10**17 if n % 13 else None for n in range(88)], pa.int64()),
        "m": pa.array(
            [Decimal(n * n - 900) / 100 if n % 9 else None for n in range(88)],
            pa.decimal128(12, 2),
        ),
        "d": pa.array([DAYS[n % 4] for n in range(88)], pa.date32()),
        "e": pa.array([DAYS[n // 4 % 4] for n in range(88)], pa.date32()),
        "s": pa.array([TEXTS[n % len(TEXTS)] for n in range(88)], pa.string()),
        "x": pa.array([float(n) if n % 5 else None for n in range(88)], pa.float64()),
        "u": pa.array([Decimal(n % 3).scaleb(-38) for n in range(88)], pa.decimal128(38, 38)),
        "w": pa.array([Decimal(n % 3).scaleb(-30) for n in range(88)], pa.decimal128(38, 30)),
    }
)

SAID = [
    "i = 2",
    "2 < i",
    "i <> -1",
    "i = 2.0",
    "i IN (1, 2, -3)",
    "NOT i IN (1, 2)",
    "i IS NULL",
    "NOT i IS NULL",
    "i BETWEEN -1 AND 2",
    "j >= 1000000000000000000",
    "m < 24",
    "m >= -1.5 AND m < 3.25",
    "u = 0.0",
    "w = 0",
    "w IN (0.0, 1.5)",
    "d = DATE'1996-02-29'",
    "d < '1997-02-28'",
    "d < DATE'1996-01-31' + INTERVAL 1 MONTH",
    "d <= DATE'1996-02-29' + INTERVAL '1' YEAR",
    "d > DATE'1996-03-01' - INTERVAL 30 DAYS",
    "d < e",
    "d = e OR i = 1",
    "s = 'a'",
    "s >= 'a' AND s < 'b'",
    "s > '\U0001f30a'",
    "s IN ('a', 'ä')",
    "s LIKE 'a%'",
    "s LIKE '%b'",
    "s LIKE 'a_b'",
    "NOT s LIKE '%a%'",
    "s NOT LIKE '%a%'",
    "s NOT LIKE 'a_b' AND i IS NOT NULL",
    "i NOT IN (1, 2) AND s NOT IN ('a', 'ä')",
    "(i = 1 AND s = 'a') OR (i = 2 AND d = e)",
]
PARTLY = ["i = 1 AND x > 3", "(i = 1 AND x > 3) OR (i = 2 AND upper(s) = 'A')", "m < 24 AND m < x"]
NOTHING = [
    "x > 3",
    "i = 1 OR x > 3",
    "i < x",
    "i = m",
    "i = '2'",
    "i = 2.5",
    "i < 3000000000",
    "m < 1.005",
    "m < 1e3",
    "s = 2",
    "s LIKE 'a\\\\%'",
    "s NOT ILIKE 'A'",
    "s LIKE ANY ('a%', 'b')",
    "s LIKE 'a!_b' ESCAPE '!'",
    "d < '1996'",
    "u = 0",
    "w IN (0, 1)",
    "w = -(0)",
    "d = '2020-W01-1'",
    "d < current_date()",
    "i IN (1, NULL)",
    "NOT (i = 1)",
    "s <=> 'a'",
    "s COLLATE UTF8_LCASE = 'a'",
    "abs(i) = 1",
]


def _sieve(text: str):  # type: ignore[no-untyped-def]
    tree = sqlglot.parse_one(text, dialect="spark")
    return sieved(scalar_of(tree), lambda name: parse_type(TYPES[name]))


def test_what_it_says_is_what_spark_says(spark: SparkSession) -> None:
    numbered = ROWS.append_column("n", pa.array(range(ROWS.num_rows)))
    frame = spark.createDataFrame(numbered)
    asked = [f"({text}) AS p{at}" for at, text in enumerate([*SAID, *PARTLY])]
    answers = frame.selectExpr("n", *asked).toArrow().sort_by("n")
    for at, text in enumerate([*SAID, *PARTLY]):
        sieve = _sieve(text)
        assert sieve is not None, text
        kept = set(passing(numbered, [sieve])["n"].to_pylist())
        true = {n for n, yes in enumerate(answers[f"p{at}"].to_pylist()) if yes}
        assert true <= kept if text in PARTLY else true == kept, text
        assert len(kept) < ROWS.num_rows, f"{text} takes nothing away"


@pytest.mark.parametrize("text", NOTHING)
def test_what_arrow_may_see_otherwise_is_left_to_spark(text: str) -> None:
    assert _sieve(text) is None
