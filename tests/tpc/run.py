"""Runs queries as views through a stream of ticks, beside Spark's recompute of each."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from ivm_core import IncrementalFlow
from tests.sql.bags import bag, differences, rounded_differences
from tests.tpc.oracle import Oracle

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from tests.sql.bags import Row
    from tests.tpc.history import History

ROUNDED = re.compile(r"^-- rounded: (.*)$", re.MULTILINE)
ROUNDING = 1e-9


@dataclass
class Covered:
    """What was compared of one query."""

    query: str
    ticks: int = 0
    changed: int = 0
    """Ticks in which the view changed."""
    rows: list[int] = field(default_factory=list)
    seconds: float = 0.0
    """In ticks alone."""

    def __str__(self) -> str:
        return (
            f"{self.query}: {self.ticks} ticks compared, {self.changed} changed it, "
            f"{min(self.rows)} to {max(self.rows)} rows, {self.seconds:.1f} s in ticks"
        )


def run_queries(
    queries: dict[str, str],
    history: History,
    ticks: int,
    folder: Path,
    spark: SparkSession,
    *,
    loaded_first: bool = True,
) -> list[Covered]:
    """Load, then tick; AssertionError with query, tick and rows for the first difference.

    With `loaded_first` the views are hydrated over tables that have rows; else the first load is
    a tick like any other.
    """
    tables = [name for name in history.schemas if any(name in reads(q) for q in queries.values())]
    oracle = Oracle(spark, history, tables)
    covered = {name: Covered(name) for name in queries}
    first = {name: history.first[name] for name in tables}
    with IncrementalFlow.open(folder / "flow", spark) as flow:
        for name in tables:
            key = history.keys[name] or None
            flow.register_source(name, history.schemas[name], primary_key=key)
        if loaded_first:
            flow.tick(first)
        for name, sql in queries.items():
            flow.register_view(name, sql)
        for tick in range(ticks + 1):
            if tick:
                changes = history.changes(tick)
                batches = {name: changes[name].batch() for name in tables}
            else:
                batches = {} if loaded_first else first
            started = time.monotonic()
            summary = flow.tick(batches)
            spent = time.monotonic() - started
            for name, sql in queries.items():
                _compare(flow, oracle, name, sql, tick, covered[name])
                covered[name].seconds += spent / len(queries)
                covered[name].changed += bool(summary.views[name].rows_out)
        for name in queries:
            check = flow.check(name)
            assert check.equal, f"{history.name} {name}: the flow's own check finds {check}"
    return list(covered.values())


def _compare(
    flow: IncrementalFlow, oracle: Oracle, name: str, sql: str, tick: int, covered: Covered
) -> None:
    got, expected = flow.snapshot(name).toArrow(), oracle.rows(sql, tick)
    assert got.column_names == expected.column_names
    assert [str(each) for each in got.schema.types] == [str(each) for each in expected.schema.types]
    rounded = ROUNDED.search(sql)
    if rounded is None:
        found = differences(bag(_rows(expected)), bag(_rows(got)))
    else:
        places = [got.column_names.index(each.strip()) for each in rounded[1].split(",")]
        found = rounded_differences(_rows(expected), _rows(got), places, ROUNDING)
    assert not found, f"{name} after tick {tick} is not what Spark gives:\n{found}"
    covered.ticks += 1
    covered.rows.append(got.num_rows)


def reads(sql: str) -> set[str]:
    """The names of tables in a query's text."""
    return {table.name for table in sqlglot.parse_one(sql, dialect="spark").find_all(exp.Table)}


def _rows(table: pa.Table) -> list[Row]:
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows
