"""What every peer is given: Delta tables, a query over them, and new orders round by round."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from bench.numbers import below
from bench.orders import DAYS, FIRST_DAY, PRODUCTS, SCHEMAS, VIEWS, customers_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

Row = tuple[Any, ...]


@dataclass
class Case:
    """One view over orders of which more and more come; a peer has a case of its own."""

    spark: SparkSession
    folder: Path
    view: str
    orders: int
    tables: dict[str, Path]
    _come: int = 0

    @property
    def sql(self) -> str:
        """The query, over tables by their names."""
        return VIEWS[self.view]

    @property
    def sql_over_paths(self) -> str:
        """The query, over Delta tables by their places."""
        text = self.sql
        for name, path in self.tables.items():
            for word in ("FROM", "JOIN"):
                text = text.replace(f"{word} {name}", f"{word} delta.`{path}`")
        return text

    def frame(self, table: str) -> DataFrame:
        """A table as Spark reads it."""
        return self.spark.read.format("delta").load(str(self.tables[table]))

    def query(self) -> DataFrame:
        """The query, by Spark, over the tables as they are now."""
        for name in SCHEMAS:
            self.frame(name).createOrReplaceTempView(name)
        return self.spark.sql(self.sql)

    def expected(self) -> list[Row]:
        """What any peer's result must be."""
        return comparable(tuple(row) for row in self.query().collect())

    def append(self, rows: int) -> pa.Table:
        """Append new orders to the Delta table, as one commit; returns them."""
        keys = np.arange(self.orders + self._come, self.orders + self._come + rows)
        self._come += rows
        cents = below(keys, 3, 1_000_000)
        made = pa.table(
            {
                "id": pa.array(keys, pa.int64()),
                "customer_id": below(keys, 1, customers_of(self.orders)),
                "product_id": below(keys, 2, PRODUCTS),
                "amount": pa.array(
                    [Decimal(int(each)).scaleb(-2) for each in cents], pa.decimal128(12, 2)
                ),
                "quantity": pa.array(1 + below(keys, 4, 9), pa.int32()),
                "ordered_at": pa.array(
                    np.full(rows, np.datetime64(FIRST_DAY) + np.timedelta64(DAYS, "D"))
                ),
            }
        )
        frame = self.spark.createDataFrame(made).coalesce(1)
        frame.write.format("delta").mode("append").save(str(self.tables["orders"]))
        return made

    def files(self) -> dict[str, list[str]]:
        """The Parquet files of every table's newest version."""
        return {name: DeltaTable(str(path)).file_uris() for name, path in self.tables.items()}


def comparable(rows: Iterable[Row]) -> list[Row]:
    """Rows in one order, money in whole cents."""
    return sorted(tuple(_plain(value) for value in row) for row in rows)


def _plain(value: Any) -> Any:
    return int((value * 100).to_integral_exact()) if isinstance(value, Decimal) else value
