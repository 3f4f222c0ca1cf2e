"""A table with very many columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sql.case_format import Case, Change, SourceSpec, Tick, ViewSpec
from tests.sql.runner import run_case

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

WIDTH = 200


def test_two_hundred_columns(tmp_path: Path, spark: SparkSession) -> None:
    names = [f"c{number}" for number in range(WIDTH)]
    source = SourceSpec("t", ", ".join(["id INT", *(f"{name} INT" for name in names)]), ("id",))
    sums = ", ".join(f"SUM({name}) AS {name}" for name in names[:40])
    views = [
        ViewSpec("everything", "SELECT * FROM t"),
        ViewSpec("summed", f"SELECT c0 % 2 AS g, {sums} FROM t GROUP BY c0 % 2"),
        ViewSpec("paired", f"SELECT p.*, q.{names[-1]} AS z FROM t p JOIN t q ON p.c7 = q.c8"),
    ]
    first = _rows([1, 2, 3])
    second = [(2, *range(7, 7 + WIDTH))]
    ticks = [
        Tick("rows", [Change("UPSERT INTO", "t", tuple(first), (1,) * 3)]),
        Tick("one changes", [Change("UPSERT INTO", "t", tuple(second), (1,))]),
        Tick("one goes", [Change("DELETE KEYS FROM", "t", ((1,),), (1,))]),
    ]
    run_case(Case("many columns", [source], views, ticks), tmp_path, spark)


def _rows(ids: list[int]) -> list[tuple[int | None, ...]]:
    return [(i, *((number * i) % 5 or None for number in range(WIDTH))) for i in ids]
