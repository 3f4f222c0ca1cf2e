"""What comes before a full refresh: Spark brings the same change into its Delta tables.

A tick is given rows, checks them against what is stored and makes them durable. A full refresh
begins where that has been done, so it is measured by itself: rows that only come are appended,
others are merged by primary key into tables with deletion vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from bench.dataset import copy_of
from bench.tpch.changes import WEIGHT
from bench.tpch.schema import PRIMARY_KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bench.measure import Samples
    from bench.tpch.stock import Stock

TABLES = ("orders", "lineitem")
KEYS = {
    "orders": ("o_orderkey", "o_custkey"),
    "lineitem": ("l_orderkey", "l_linenumber", "l_partkey", "l_suppkey"),
}
"""What is added up to see that all has landed; some of it is what moves."""
GONE = "is_gone"


class Landing:
    """Copies of the tables that change, and the rows that they have to have."""

    def __init__(self, stock: Stock) -> None:
        """Nothing has landed yet."""
        self._spark = stock.spark
        self._folder = stock.folder / "landed"
        self._wanted: dict[str, tuple[int, ...]] = {}
        for name in TABLES:
            place = self._place(name)
            place.parent.mkdir(parents=True, exist_ok=True)
            copy_of(stock.folder / "delta" / name, place)
            self._spark.sql(
                f"ALTER TABLE delta.`{place}` "
                "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
            )
            self._wanted[name] = self._totals(name)

    def land(self, sample: Samples, batch: Mapping[str, pa.Table], *, keep: bool) -> None:
        """Time the change of both tables; its rows are in files before the clock starts."""
        files = {name: self._written(name, batch[name]) for name in TABLES}
        only_come = {name: not _has_gone(batch[name]) for name in TABLES}
        sample.time(self._land, files, only_come, keep=keep)
        for name in TABLES:
            rows = batch[name]
            weights = rows.column(WEIGHT)
            changes = [pc.sum(weights).as_py()]
            changes += [pc.sum(pc.multiply(rows[key], weights)).as_py() for key in KEYS[name]]
            self._wanted[name] = tuple(map(sum, zip(self._wanted[name], changes, strict=True)))

    @property
    def is_right(self) -> bool:
        """Whether the tables have as many rows as they should, and their keys the right sums."""
        return all(self._totals(name) == wanted for name, wanted in self._wanted.items())

    def _land(self, files: Mapping[str, Path], only_come: Mapping[str, bool]) -> None:
        for name, file in files.items():
            rows = self._spark.read.parquet(str(file))
            if only_come[name]:
                target = str(self._place(name))
                rows.drop(GONE).write.format("delta").mode("append").save(target)
            else:
                rows.createOrReplaceTempView("landing_rows")
                self._spark.sql(self._merge(name, [c for c in rows.columns if c != GONE]))

    def _merge(self, name: str, columns: list[str]) -> str:
        same = " AND ".join(f"t.{key} = s.{key}" for key in PRIMARY_KEYS[name])
        return (
            f"MERGE INTO delta.`{self._place(name)}` AS t USING landing_rows AS s ON {same} "
            f"WHEN MATCHED AND s.{GONE} THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{c} = s.{c}' for c in columns)} "
            f"WHEN NOT MATCHED AND NOT s.{GONE} THEN INSERT ({', '.join(columns)}) "
            f"VALUES ({', '.join(f's.{c}' for c in columns)})"
        )

    def _written(self, name: str, rows: pa.Table) -> Path:
        """Rows that come, and those that go and don't come back with their key."""
        keys = list(PRIMARY_KEYS[name])
        come = rows.filter(pc.greater(rows.column(WEIGHT), 0)).drop_columns(WEIGHT)
        gone = rows.filter(pc.less(rows.column(WEIGHT), 0)).drop_columns(WEIGHT)
        gone = gone.join(come.select(keys), keys, join_type="left anti").select(come.column_names)
        file = self._folder / f"{name}.parquet"
        parts = [
            part.append_column(GONE, pa.repeat(pa.scalar(is_gone), part.num_rows))
            for part, is_gone in ((come, False), (gone, True))
        ]
        parquet.write_table(pa.concat_tables(parts), file)
        return file

    def _place(self, name: str) -> Path:
        return self._folder / name

    def _totals(self, name: str) -> tuple[int, ...]:
        """How many rows a table has, and the sums of its keys."""
        frame = self._spark.read.format("delta").load(str(self._place(name)))
        return tuple(frame.selectExpr("COUNT(*)", *(f"SUM({key})" for key in KEYS[name])).head())


def _has_gone(rows: pa.Table) -> bool:
    return bool(pc.any(pc.less(rows.column(WEIGHT), 0)).as_py())
