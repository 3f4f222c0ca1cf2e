"""The same orders twice: in a flow, and in Delta tables for Spark; and copies of both to change."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.measure import progress, size_text
from bench.orders import SCHEMAS, VIEWS, tables
from ivm_core import IncrementalFlow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Dataset:
    """Orders of one size on disk."""

    spark: SparkSession
    folder: Path
    orders: int

    def delta_table(self, name: str) -> Path:
        """Where Spark's copy of a table is."""
        return self.folder / "delta" / name

    def open_copy(self, name: str) -> IncrementalFlow:
        """A flow of its own that holds the data and has no view yet."""
        return IncrementalFlow.open(copy_of(self.folder / "flow", self.folder / name), self.spark)

    def remove(self, name: str) -> None:
        """Give back the room of a copy."""
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def query(self, view: str, orders: Path | None = None) -> DataFrame:
        """A view's query over Spark's Delta tables."""
        for table in SCHEMAS:
            path = orders if orders is not None and table == "orders" else self.delta_table(table)
            frame = self.spark.read.format("delta").load(str(path))
            frame.createOrReplaceTempView(table)
        return self.spark.sql(VIEWS[view])

    def refresh(self, view: str, target: Path) -> None:
        """Spark's full refresh: the query's result over whatever the target holds."""
        self.query(view).write.format("delta").mode("overwrite").save(str(target))


class Datasets:
    """Makes datasets when they are asked for, once each."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        """All below one folder."""
        self.spark = spark
        self._folder = folder
        self._made: dict[int, Dataset] = {}

    def of(self, orders: int) -> Dataset:
        """The dataset with that many orders."""
        if orders not in self._made:
            self._made[orders] = self._make(orders)
        return self._made[orders]

    def _make(self, orders: int) -> Dataset:
        made = Dataset(self.spark, self._folder / size_text(orders), orders)
        frames = tables(self.spark, orders)
        progress(f"writing {size_text(orders)} orders as Delta tables")
        for name, frame in frames.items():
            frame.write.format("delta").save(str(made.delta_table(name)))
        progress(f"loading {size_text(orders)} orders into a flow")
        with IncrementalFlow.open(made.folder / "flow", self.spark) as flow:
            for name, schema in SCHEMAS.items():
                flow.register_source(name, schema, primary_key=["id"])
            for name, frame in frames.items():
                flow.tick(name, frame)
        return made


def copy_of(source: Path, target: Path) -> Path:
    """A copy of a flow or Delta table; data files, which nobody writes to again, are linked."""
    shutil.copytree(source, target, copy_function=_link_data)
    return target


def same_rows(left: DataFrame, right: DataFrame) -> bool:
    """Whether two frames hold the same rows equally often."""
    right = right.select(*left.columns)
    return left.exceptAll(right).isEmpty() and right.exceptAll(left).isEmpty()


def _link_data(source: str, target: str) -> object:
    if source.endswith(".parquet") and "_delta_log" not in source:
        try:
            os.link(source, target)
        except OSError:
            return shutil.copy2(source, target)
        return target
    return shutil.copy2(source, target)
