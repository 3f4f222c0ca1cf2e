"""Everything that a batch may be made from comes out as the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest

from ivm_core import BatchError, ConstraintViolation, DeltaBatch
from tests.flow.shop import assert_exact, log_of, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ivm_core import IncrementalFlow

ROWS = [(1, "ann", 20), (2, None, None)]
NAMES = ["id", "customer", "amount"]
DDL = "id BIGINT, customer STRING, amount INT"


def arrow(weights: list[int] | None = None) -> pa.Table:
    table = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "customer": pa.array(["ann", None], pa.large_string()),
            "amount": pa.array([20, None], pa.int16()),
        }
    )
    return table if weights is None else table.append_column("_weight", pa.array(weights))


def frame(spark: SparkSession, weights: bool = False) -> Any:
    if weights:
        return spark.createDataFrame([(*row, 1) for row in ROWS], f"{DDL}, _weight BIGINT")
    return spark.createDataFrame(ROWS, DDL)


def inputs(spark: SparkSession) -> dict[str, Any]:
    table = arrow()
    return {
        "tuples": ROWS,
        "lists": [list(row) for row in ROWS],
        "dicts": [dict(zip(NAMES, row, strict=True)) for row in ROWS],
        "dicts in another order": [dict(zip(NAMES[::-1], row[::-1], strict=True)) for row in ROWS],
        "rows of Spark": frame(spark).collect(),
        "a generator": (row for row in ROWS),
        "arrow": table,
        "arrow, other order and case": pa.table(
            {"AMOUNT": table["amount"], "Id": table["id"], "customer": table["customer"]}
        ),
        "a record batch": table.to_batches()[0],
        "a record batch reader": table.to_reader(),
        "pandas": pd.DataFrame(ROWS, columns=NAMES).astype({"amount": "Int64"}),
        "pandas of objects": pd.DataFrame(ROWS, columns=NAMES, dtype=object),
        "a DataFrame": frame(spark),
        "a DataFrame with weights": frame(spark, weights=True),
        "a DataFrame, other order": frame(spark).select("amount", "customer", "id"),
        "a batch of a DataFrame": DeltaBatch.inserts(frame(spark)),
        "upserts of a DataFrame": DeltaBatch.upserts(frame(spark)),
        "rows and a DataFrame": DeltaBatch.of(ROWS[:1]) + DeltaBatch.of(frame(spark).where("id=2")),
        "two DataFrames": DeltaBatch.of(frame(spark).where("id=1"))
        + DeltaBatch.of(frame(spark).where("id=2")),
    }


def test_every_form_of_input_gives_the_same_tick(
    shop: IncrementalFlow, spark: SparkSession
) -> None:
    digests = set()
    for name, given in inputs(spark).items():
        summary = shop.tick("orders", given, views=[])
        assert summary.rows_in == 2, name
        digests.add(summary.sources["orders"].digest)
        assert shop.tick("orders", DeltaBatch.delete_keys([1, 2]), views=[]).rows_in == 2, name
    assert len(digests) == 1
    shop.tick("orders", ROWS)
    assert rows(shop.snapshot("orders")) == ROWS
    assert_exact(shop, "totals")


def test_weights_come_beside_or_within(shop: IncrementalFlow, spark: SparkSession) -> None:
    goes = frame(spark).selectExpr("*", "CAST(-1 AS INT) AS _weight")
    for batch in (
        arrow([-1, -1]),
        DeltaBatch.of(arrow(), [-1, -1]),
        DeltaBatch.deletes(arrow()),
        DeltaBatch.deletes(pd.DataFrame(ROWS, columns=NAMES, dtype=object)),
        DeltaBatch.deletes(frame(spark)),
        goes,
        DeltaBatch.of([{**dict(zip(NAMES, row, strict=True)), "_weight": -1} for row in ROWS]),
    ):
        shop.tick("orders", ROWS, views=[])
        assert shop.tick("orders", batch, views=[]).rows_in == 2
    assert rows(shop.snapshot("orders")) == []


def test_a_large_frame_goes_through_files_and_small_ticks_follow(
    flow: IncrementalFlow, spark: SparkSession
) -> None:
    flow.register_source("big", "id BIGINT, k STRING, x DOUBLE", primary_key=["id"])
    flow.register_source("names", "k STRING, name STRING")
    flow.register_view("n", "SELECT k, COUNT(*) AS n, MAX(id) AS m FROM big GROUP BY k")
    flow.register_view("named", "SELECT b.id, n.name FROM big b JOIN names n ON b.k = n.k")
    large = spark.range(120_000).selectExpr(
        "id", "CONCAT('k', id % 1000) AS k", "CASE WHEN id % 7 > 0 THEN id / 7 END AS x"
    )
    summary = flow.tick({"big": large, "names": [("k1", "one"), ("k2", "two")]})
    assert summary.rows_in == 120_002
    assert summary.views["n"].rows == 1000
    assert summary.views["named"].rows == 240
    assert "high gear" in str(summary.views["n"].ways)
    summary = flow.tick({"big": [(500_000, "k1", None)], "names": [("k999", "last")]})
    assert "high gear" not in str(summary.views["n"].ways)
    assert summary.views["n"].rows_out == 2
    assert summary.views["named"].rows == 240 + 120 + 1
    with pytest.raises(ConstraintViolation) as caught:
        flow.tick("big", [(77, "x", 0.0)])
    assert caught.value.keys == (77,)
    flow.tick("big", DeltaBatch.delete_keys([119_001, 500_000]))
    assert rows(flow.snapshot("n").where("k = 'k1'")) == [("k1", 119, 118_001)]
    assert_exact(flow)


def test_a_frame_is_read_as_its_own_session_means_it(
    flow: IncrementalFlow, spark: SparkSession
) -> None:
    """A user's session may have other settings, temporary views and time zone than ours."""
    theirs = spark.newSession()
    for name, value in {
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        "spark.sql.caseSensitive": "true",
    }.items():
        theirs.conf.set(name, value)
    theirs.range(3).createOrReplaceTempView("mine")
    given = theirs.sql(
        "SELECT CAST(id AS INT) AS id, CAST('zero' AS INT) AS n, "
        "TIMESTAMP '1500-01-01 00:00:00' AS ts, DATE '1500-01-01' AS d, id / 0 AS x FROM mine"
    )
    flow.register_source("s", "id INT, n INT, ts TIMESTAMP, d DATE, x DOUBLE")
    flow.register_view("v", "SELECT id, n, CAST(ts AS STRING) AS ts, CAST(d AS STRING) AS d FROM s")
    flow.tick("s", given)
    # New York's clock was 4:56:02 behind in 1500
    expected = [(id_, None, "1500-01-01 04:56:02", "1500-01-01") for id_ in range(3)]
    assert rows(flow.snapshot("v")) == expected
    assert_exact(flow)
    flow.tick("s", DeltaBatch.deletes(given))
    assert rows(flow.snapshot("v")) == []
    assert [row.viewName for row in theirs.sql("SHOW VIEWS").collect()] == ["mine"]
    assert theirs.conf.get("spark.sql.session.timeZone") == "America/New_York"


@pytest.mark.parametrize("where", ["the first batch", "a later batch"])
def test_frames_are_checked_like_rows(
    where: str, shop: IncrementalFlow, spark: SparkSession
) -> None:
    if where == "a later batch":
        shop.tick("orders", [(50, "x", 1)])
    before = log_of(shop)
    for columns, error in {
        "1L AS id, 'a' AS customer, 3000000000L AS amount": BatchError,
        "CAST(NULL AS BIGINT) AS id, 'a' AS customer, 1 AS amount": BatchError,
        "1L AS id, 'a' AS customer": BatchError,
        "1L AS id, 'a' AS customer, 1 AS amount, 2 AS more": BatchError,
        "1L AS id, 'a' AS customer, 'x' AS amount": BatchError,
        "1L AS id, 'a' AS customer, 1 AS amount, CAST(NULL AS BIGINT) AS _weight": BatchError,
        "1L AS id, 'a' AS customer, EXPLODE(ARRAY(1, 2)) AS amount": ConstraintViolation,
        "1L AS id, 'a' AS customer, 1 AS amount, -1 AS _weight": ConstraintViolation,
        "1L AS id, CAST(RAISE_ERROR('boom') AS STRING) AS customer, 1 AS amount": BatchError,
    }.items():
        with pytest.raises(error):
            shop.tick("orders", spark.sql(f"SELECT {columns}"))
    assert log_of(shop) == before
    weighed = spark.sql(
        "SELECT 7L AS id, 'a' AS customer, 1 AS amount, EXPLODE(ARRAY(2, -1, 0)) AS _weight"
    )
    assert shop.tick("orders", weighed).rows_in == 1
    assert_exact(shop, "totals")


@pytest.mark.parametrize(
    ("batch", "column", "row"),
    [
        ([(1, "a", 1), (2, "b", "x")], "amount", 1),
        ([(1, "a", 2**31)], "amount", 0),
        ([(1.5, "a", 1)], "id", 0),
        ([(1, b"a", 1)], "customer", 0),
        ([(True, "a", 1)], "id", 0),
        ([{"id": 1, "customer": "a", "amount": 1, "_weight": None}], "_weight", 0),
        ([{"id": 1, "customer": "a", "amount": 1, "_weight": 0.5}], "_weight", 0),
    ],
)
def test_a_value_of_the_wrong_type_is_named(
    batch: Any, column: str, row: int, shop: IncrementalFlow
) -> None:
    with pytest.raises(BatchError) as caught:
        shop.tick("orders", batch)
    assert caught.value.column == column
    assert caught.value.row == row
    assert caught.value.expected
    assert shop.current_tick == 0


@pytest.mark.parametrize(
    "batch",
    [
        [(1, "a")],
        [(1, "a", 1, 1)],
        [{"id": 1, "customer": "a"}],
        [{"id": 1, "customer": "a", "amount": 1, "more": 1}],
        [7],
        "orders",
        7,
        {"id": 1, "customer": "a", "amount": 1},
        pa.table({"id": [1]}),
        pd.DataFrame({"id": [1], "customer": ["a"], "amonut": [1]}),
        [(1, "a", 1), None],
    ],
)
def test_rows_of_another_shape_are_refused(batch: Any, shop: IncrementalFlow) -> None:
    with pytest.raises(BatchError):
        shop.tick("orders", batch)
    assert shop.current_tick == 0


def test_a_first_frame_keeps_to_the_primary_key(flow: IncrementalFlow, spark: SparkSession) -> None:
    flow.register_source("s", "id INT, x INT", primary_key=["id"])
    twice = spark.createDataFrame([(1, 1, 2)], "id INT, x INT, _weight BIGINT")
    with pytest.raises(ConstraintViolation):
        flow.tick("s", twice)
    assert flow.current_tick == 0


def test_a_frame_that_fails_is_refused_as_a_batch(
    flow: IncrementalFlow, spark: SparkSession
) -> None:
    flow.register_source("s", "id INT, x INT", primary_key=["id"])
    failing = spark.sql("SELECT id, CAST(1 / (id - 1) AS INT) AS x FROM VALUES (1), (2) AS v(id)")
    for batch in (DeltaBatch.upserts(failing), DeltaBatch.inserts(failing)):
        with pytest.raises(BatchError, match="DIVIDE_BY_ZERO"):
            flow.tick("s", batch)
