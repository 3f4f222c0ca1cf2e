"""The data of the bars: orders, customers and products of any size, and changes to the orders.

Everything follows from the number of orders and a seed, so two runs see the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from ivm_core import DeltaBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PRODUCTS = 10_000
ORDERS_PER_CUSTOMER = 100
REGIONS = 25
CATEGORIES = 20
DAYS = 1_500
FIRST_DAY = date(2021, 1, 1)

SCHEMAS = {
    "orders": (
        "id BIGINT, customer_id BIGINT, product_id BIGINT, amount DECIMAL(12,2), "
        "quantity INT, ordered_at DATE"
    ),
    "customers": "id BIGINT, name STRING, region STRING",
    "products": "id BIGINT, name STRING, category STRING",
}

VIEWS = {
    "grouped sum": (
        "SELECT customer_id, SUM(amount) AS total, COUNT(*) AS orders "
        "FROM orders GROUP BY customer_id"
    ),
    "three-way join": (
        "SELECT c.region, p.category, SUM(o.amount * o.quantity) AS total, COUNT(*) AS orders "
        "FROM orders AS o "
        "JOIN customers AS c ON c.id = o.customer_id "
        "JOIN products AS p ON p.id = o.product_id "
        "GROUP BY c.region, p.category"
    ),
}

Where = Literal["scattered", "recent"]
CHANGED_ROWS = 1_000
_INSERTS, _UPDATES, _DELETES = 0.3, 0.6, 0.1
_OLD_SHARE = 0.8
"""Scattered changes keep to the older part of the keys, recent ones to the rest."""
_STRIDE = 7_368_787


def customers_of(orders: int) -> int:
    """How many customers made that many orders."""
    return max(10, orders // ORDERS_PER_CUSTOMER)


def tables(spark: SparkSession, orders: int) -> dict[str, DataFrame]:
    """The three tables as Spark frames."""
    customers = customers_of(orders)
    return {
        "customers": spark.range(customers).selectExpr(
            "id",
            "concat('customer ', id) AS name",
            f"concat('region ', pmod(xxhash64(id, 5), {REGIONS})) AS region",
        ),
        "products": spark.range(PRODUCTS).selectExpr(
            "id",
            "concat('product ', id) AS name",
            f"concat('category ', pmod(xxhash64(id, 6), {CATEGORIES})) AS category",
        ),
        "orders": spark.range(orders).selectExpr(
            "id",
            f"pmod(xxhash64(id, 1), {customers}) AS customer_id",
            f"pmod(xxhash64(id, 2), {PRODUCTS}) AS product_id",
            "CAST(pmod(xxhash64(id, 3), 1000000) / 100 AS DECIMAL(12,2)) AS amount",
            "CAST(1 + pmod(xxhash64(id, 4), 9) AS INT) AS quantity",
            f"date_add(DATE'{FIRST_DAY}', CAST(id * {DAYS} DIV {orders} AS INT)) AS ordered_at",
        ),
    }


@dataclass(frozen=True)
class OrderChanges:
    """One batch: orders that come, orders that become different, keys of orders that go."""

    inserts: pa.Table
    updates: pa.Table
    deletes: pa.Table

    def batch(self) -> DeltaBatch:
        """For a fed source."""
        return (
            DeltaBatch.inserts(self.inserts)
            + DeltaBatch.upserts(self.updates)
            + DeltaBatch.delete_keys(self.deletes)
        )

    def merge_into(self, spark: SparkSession, table: str) -> None:
        """Into a Delta table, as one commit of Spark's."""
        coming = pa.concat_tables([self.inserts, self.updates])
        gone = pa.concat_tables([self.deletes], promote_options="default")
        for field in coming.schema:
            if field.name != "id":
                gone = gone.append_column(field, pa.nulls(gone.num_rows, field.type))
        rows = pa.concat_tables([coming, gone.select(coming.column_names)])
        flags = pa.array([False] * coming.num_rows + [True] * gone.num_rows)
        frame = spark.createDataFrame(rows.append_column("gone", flags))
        frame.createOrReplaceTempView("bench_changes")
        columns = coming.column_names
        spark.sql(
            f"MERGE INTO delta.`{table}` AS t USING bench_changes AS s ON t.id = s.id "
            "WHEN MATCHED AND s.gone THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{n} = s.{n}' for n in columns)} "
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(columns)}) "
            f"VALUES ({', '.join(f's.{n}' for n in columns)})"
        )
        spark.catalog.dropTempView("bench_changes")


class Trade:
    """Goes on making changes to orders of a given size; no deleted key is touched again.

    Even keys are updated and odd ones deleted. A batch is 1,000 rows, less in a table of which
    that would be more than one in a hundred.
    """

    def __init__(self, orders: int, seed: int = 7) -> None:
        """Orders 0 to `orders` − 1 are there."""
        self._orders = orders
        self._old = int(orders * _OLD_SHARE) // 2
        """Pairs of an even and an odd key in the older part."""
        self._random = np.random.default_rng(seed)
        self._next_key = orders
        self._updated: dict[Where, int] = {"scattered": 0, "recent": 0}
        self._deleted: dict[Where, int] = {"scattered": 0, "recent": 0}
        self.rows = min(CHANGED_ROWS, orders // 100)

    def next(self, where: Where) -> OrderChanges:
        """The next batch; ValueError when there is nothing left to delete."""
        come = int(self.rows * _INSERTS)
        change = int(self.rows * _UPDATES)
        go = self.rows - come - change
        inserted = np.arange(self._next_key, self._next_key + come)
        self._next_key += come
        updated = 2 * self._pairs(where, self._updated[where], change)
        self._updated[where] += change
        if self._deleted[where] + go > self._span(where):
            raise ValueError(f"{self._orders} orders are too few for this many changes")
        deleted = 2 * self._pairs(where, self._deleted[where], go) + 1
        self._deleted[where] += go
        keys = pa.table({"id": pa.array(deleted, pa.int64())})
        return OrderChanges(self._rows(inserted), self._rows(updated), keys)

    def _span(self, where: Where) -> int:
        return self._old if where == "scattered" else self._orders // 2 - self._old

    def _pairs(self, where: Where, start: int, count: int) -> np.ndarray:
        steps = np.arange(start, start + count)
        if where == "scattered":
            return steps * _STRIDE % self._old
        return self._orders // 2 - 1 - steps % self._span("recent")

    def _rows(self, keys: np.ndarray) -> pa.Table:
        count = len(keys)
        cents = self._random.integers(0, 1_000_000, count)
        days = np.minimum(keys * DAYS // self._orders, DAYS - 1)
        return pa.table(
            {
                "id": pa.array(keys, pa.int64()),
                "customer_id": pa.array(
                    self._random.integers(0, customers_of(self._orders), count), pa.int64()
                ),
                "product_id": pa.array(self._random.integers(0, PRODUCTS, count), pa.int64()),
                "amount": pa.array(
                    [Decimal(int(each)).scaleb(-2) for each in cents], pa.decimal128(12, 2)
                ),
                "quantity": pa.array(self._random.integers(1, 10, count), pa.int32()),
                "ordered_at": pa.array(
                    [FIRST_DAY + timedelta(days=int(each)) for each in days], pa.date32()
                ),
            }
        )
