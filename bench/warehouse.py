"""The warehouse that ships, of any size: its raw tables, changes to them, Spark's full refresh."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from bench.numbers import Numbers, below
from ivm_core import DeltaBatch, IncrementalFlow
from ivm_core.operators.arrow_types import arrow_schema
from tideview import pipelines
from tideview.resources.pipeline_folder import load_pipeline

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import SparkSession

FIRST_DAY = (date(2024, 1, 1) - date(1970, 1, 1)).days
DAYS = 365
PRODUCTS = 500
LINES = 3
LEVELS = ("stg_", "fct_", "mart_")
LINES_TABLE = "raw_order_lines"
STATES = np.array(["O", "S", "S", "S", "C"])
AT_MOST = 5


class Warehouse:
    """Rows follow from their keys; lines are changed one after the other."""

    def __init__(self, orders: int) -> None:
        """Three lines an order, one customer to twenty orders."""
        self.orders = orders
        self._customers = max(10, orders // 20)
        lines = np.arange(orders * LINES) * 7_368_787 % (orders * LINES)
        self._to_change = lines[_states(lines // LINES) != "C"]
        self._changed = 0
        self._pipeline = load_pipeline(Path(pipelines.__file__).parent / "warehouse")
        self._types = {
            each.name: arrow_schema(each.schema, weight=False) for each in self._pipeline.sources
        }

    @property
    def views(self) -> dict[str, str]:
        """The texts by name, staging first, then facts, then marts."""
        texts = {view.name: view.sql for view in self._pipeline.views}
        names = sorted(texts, key=lambda name: [name.startswith(level) for level in LEVELS[::-1]])
        return {name: texts[name] for name in names}

    def tables(self) -> dict[str, pa.Table]:
        """The raw tables as they are at first."""
        customers, products = np.arange(1, self._customers + 1), np.arange(1, PRODUCTS + 1)
        orders = np.arange(self.orders)
        lines = np.arange(self.orders * LINES)
        return {
            "raw_customers": self._table(
                "raw_customers", _codes("C-", customers), _codes(" Customer ", customers),
                _codes("Town ", customers % 40),
            ),
            "raw_products": self._table(
                "raw_products", _codes("P-", products), _codes("Product ", products),
                _codes("KIND ", products % 12), 100 + below(products, 1, 20_000),
            ),
            "raw_orders": self._table(
                "raw_orders", orders, self._customer(orders),
                (FIRST_DAY + orders * DAYS // self.orders).astype(np.int32),
                _states(orders),
            ),
            LINES_TABLE: self._lines(lines, 1 + below(lines, 4, AT_MOST)),
            "raw_payments": self._table(
                "raw_payments", orders, orders, 100 + below(orders, 5, 50_000),
                (FIRST_DAY + orders * DAYS // self.orders).astype(np.int32),
            ),
        }  # fmt: skip

    def open(self, folder: Path, spark: SparkSession) -> IncrementalFlow:
        """A flow with sources, and no view and no row yet."""
        flow = IncrementalFlow.open(folder, spark)
        for source in self._pipeline.sources:
            keys = list(source.primary_key) or None
            flow.register_source(source.name, source.schema.ddl, primary_key=keys)
        return flow

    def change(self, rows: int) -> dict[str, DeltaBatch]:
        """More is ordered by so many lines, scattered over all orders that were not cancelled.

        No line is changed twice, and each to another quantity: every change reaches a mart.
        """
        lines = self._to_change[self._changed : self._changed + rows]
        if len(lines) < rows:
            raise ValueError(f"all {len(self._to_change)} lines were changed: take more orders")
        self._changed += rows
        quantities = 1 + AT_MOST + below(lines, 6, 9)
        return {LINES_TABLE: DeltaBatch.upserts(self._lines(lines, quantities))}

    def refresh(self, spark: SparkSession, raw: Path, target: Path) -> None:
        """All views by Spark, one after the other, each over the Delta tables of those before."""
        for name in self._types:
            _seen(spark, name, raw / name)
        for name, sql in self.views.items():
            place = target / name
            spark.sql(sql).write.format("delta").mode("overwrite").save(str(place))
            _seen(spark, name, place)

    def _lines(self, lines: Numbers, quantities: Numbers) -> pa.Table:
        orders, numbers = np.divmod(lines, LINES)
        products = 1 + below(lines, 7, PRODUCTS)
        return self._table(
            LINES_TABLE,
            orders,
            (numbers + 1).astype(np.int32),
            _codes("P-", products),
            quantities.astype(np.int32),
            100 + below(products, 1, 20_000),
        )

    def _customer(self, orders: Numbers) -> list[str]:
        return _codes("C-", 1 + below(orders, 2, self._customers))

    def _table(self, name: str, *columns: object) -> pa.Table:
        types = self._types[name]
        arrays = [pa.array(each).cast(kind.type) for each, kind in zip(columns, types, strict=True)]
        return pa.table(arrays, schema=types)


def _states(orders: Numbers) -> NDArray[np.str_]:
    return STATES[below(orders, 3, len(STATES))]


def _codes(prefix: str, numbers: Numbers) -> list[str]:
    return [f"{prefix}{number}" for number in numbers.tolist()]


def _seen(spark: SparkSession, name: str, place: Path) -> None:
    spark.read.format("delta").load(str(place)).createOrReplaceTempView(name)
