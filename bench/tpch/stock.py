"""TPC-H's tables of one scale on disk: for Spark as Delta tables, and in a flow.

Up to scale 1 all orders and lines also stay in memory, to draw changes from. Above it a part of
them does: neighbours from the middle, and orders from everywhere.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from bench.dataset import copy_of
from bench.measure import progress
from bench.tpch.generate import PART, Generator
from bench.tpch.schema import PRIMARY_KEYS, SCHEMAS
from ivm_core import IncrementalFlow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

NEIGHBOURS = 100_000
ONE_IN = 50
"""Beside the neighbours every so manieth order of a large scale stays in memory."""


@dataclass(frozen=True)
class Held:
    """Orders and lines in memory, in the order of their keys."""

    tables: dict[str, pa.Table]
    all_orders: int
    last_key: int
    neighbours: tuple[int, int]
    """From where to where the orders in memory have no others between them."""


class Stock:
    """One scale."""

    def __init__(self, spark: SparkSession, folder: Path, scale: float) -> None:
        """Nothing is written yet."""
        self.spark = spark
        self.folder = folder
        self.scale = scale

    def delta_table(self, name: str) -> str:
        """Where Spark's copy of a table is."""
        return str(self.folder / "delta" / name)

    def load(self) -> None:
        """Write both copies."""
        progress(f"tpch: generating scale {self.scale:g}")
        generator = Generator(self.scale)
        if generator.orders <= PART:
            tables = generator.tables()
            for name, table in tables.items():
                self._write(name, iter([table]))
            last = int(pc.max(tables["orders"].column("o_orderkey")).as_py())
            self.held = Held(tables, generator.orders, last, (0, generator.orders))
        else:
            for name, table in generator.small_tables().items():
                self._write(name, iter([table]))
            self.held = self._write_parts(generator)
        with IncrementalFlow.open(self.folder / "flow", self.spark) as flow:
            for name, schema in SCHEMAS.items():
                flow.register_source(name, schema, primary_key=list(PRIMARY_KEYS[name]))
            for name in SCHEMAS:
                progress(f"tpch: loading {name} into a flow")
                flow.tick(name, self.spark.read.format("delta").load(self.delta_table(name)))

    def open_copy(self, name: str) -> IncrementalFlow:
        """A flow of its own that has the tables and no view yet."""
        return IncrementalFlow.open(copy_of(self.folder / "flow", self.folder / name), self.spark)

    def remove(self, name: str) -> None:
        """Give back the room of a copy."""
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def query(self, sql: str) -> DataFrame:
        """A query over Spark's Delta tables, as they were loaded."""
        for table in SCHEMAS:
            frame = self.spark.read.format("delta").load(self.delta_table(table))
            frame.createOrReplaceTempView(table)
        return self.spark.sql(sql)

    def refresh(self, name: str, sql: str) -> None:
        """Spark's full refresh of a view into Delta."""
        target = str(self.folder / "refreshed" / name)
        self.query(sql).write.format("delta").mode("overwrite").save(target)

    def _write(self, name: str, parts: Iterator[pa.Table]) -> None:
        """By way of files that Spark reads and writes in a few large parts.

        A table made from rows on the driver would have hundreds of small ones, and slow its
        refreshes.
        """
        whole = self.folder / "whole" / name
        whole.mkdir(parents=True)
        count = 0
        for number, part in enumerate(parts):
            parquet.write_table(part, whole / f"{number:04d}.parquet")
            count += part.num_rows
        progress(f"tpch: writing {name}, {count} rows")
        frame = self.spark.read.schema(SCHEMAS[name]).parquet(str(whole))
        frame.write.format("delta").save(self.delta_table(name))
        shutil.rmtree(whole)

    def _write_parts(self, generator: Generator) -> Held:
        places = {name: self.folder / "whole" / name for name in ("orders", "lineitem")}
        for place in places.values():
            place.mkdir(parents=True)
        kept: dict[str, list[pa.Table]] = {"orders": [], "lineitem": []}
        middle = generator.orders // 2 // PART
        block = (0, 0)
        for number, part in enumerate(generator.sales()):
            progress(f"tpch: part {number + 1} of {-(-generator.orders // PART)}")
            for name, table in part.items():
                parquet.write_table(table, places[name] / f"{number:04d}.parquet")
            last = int(part["orders"].column("o_orderkey")[-1].as_py())
            held = sum(each.num_rows for each in kept["orders"])
            chosen = np.arange(0, part["orders"].num_rows, ONE_IN)
            if number == middle:
                chosen = np.arange(NEIGHBOURS)
                block = (held, held + NEIGHBOURS)
            some = part["orders"].take(pa.array(chosen))
            lines = part["lineitem"]
            of = pc.is_in(lines.column("l_orderkey"), some.column("o_orderkey"))
            kept["orders"].append(some)
            kept["lineitem"].append(lines.filter(of))
        for name, place in places.items():
            progress(f"tpch: writing {name}")
            frame = self.spark.read.schema(SCHEMAS[name]).parquet(str(place))
            frame.write.format("delta").save(self.delta_table(name))
            shutil.rmtree(place)
        tables = {name: pa.concat_tables(parts) for name, parts in kept.items()}
        return Held(tables, generator.orders, last, block)


class Stocks:
    """Makes the tables of a scale when they are asked for, once each."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        """All below one folder."""
        self.spark = spark
        self._folder = folder
        self._made: dict[float, Stock] = {}

    def of(self, scale: float) -> Stock:
        """The tables of that scale."""
        if scale not in self._made:
            stock = Stock(self.spark, self._folder / f"{scale:g}", scale)
            stock.load()
            self._made[scale] = stock
        return self._made[scale]

    def forget(self, scale: float) -> None:
        """Give back memory and room."""
        stock = self._made.pop(scale, None)
        if stock is not None:
            shutil.rmtree(stock.folder, ignore_errors=True)
