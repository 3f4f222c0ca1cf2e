"""Dates that Spark has and Python hasn't, where rows are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from ivm_core import ConstraintViolation, DeltaBatch, IncrementalFlow, TickFailed
from tests.flow.shop import assert_exact
from tests.flow.test_explain_and_replay import tampered

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

LATE, LATER = 3_000_000, 3_000_001
"""Days since 1970."""


def dated(*rows: tuple[int, int, int]) -> pa.Table:
    ids, days, values = (list(each) for each in zip(*rows, strict=True))
    days = pa.array(days, pa.int32()).cast(pa.date32())
    return pa.table({"id": pa.array(ids, pa.int32()), "d": days, "x": pa.array(values, pa.int32())})


@pytest.fixture
def late(flow: IncrementalFlow) -> IncrementalFlow:
    flow.register_source("t", "id INT, d DATE, x INT")
    flow.register_source("keyed", "id INT, d DATE, x INT", primary_key=["d"])
    flow.register_view("divided", "SELECT id, d, 10 / x AS q FROM t")
    flow.register_view("plain", "SELECT id, d FROM t")
    flow.register_view("last", "SELECT MAX(d) AS d FROM t")
    flow.tick({"t": dated((1, LATE, 1)), "keyed": dated((1, LATE, 1))})
    return flow


@pytest.mark.parametrize(
    ("source", "change"),
    [
        ("t", DeltaBatch.deletes(dated((9, LATE, 1)))),
        ("keyed", DeltaBatch.inserts(dated((2, LATE, 1)))),
        ("keyed", DeltaBatch.upserts(dated((2, LATER, 1), (3, LATER, 1)))),
        ("keyed", DeltaBatch.delete_keys(dated((1, LATER, 1)).select(["d"]))),
    ],
)
def test_what_breaks_a_constraint_is_named(
    late: IncrementalFlow, source: str, change: DeltaBatch
) -> None:
    with pytest.raises(ConstraintViolation, match="10183-09-2") as refused:
        late.tick(source, change)
    assert "10183-09-2" in repr(refused.value.keys)


def test_a_row_that_fails_is_named(late: IncrementalFlow) -> None:
    with pytest.raises(TickFailed, match="10183-09-21"):
        late.tick("t", dated((2, LATE, 0)))
    late.tick("t", dated((3, LATER, 2)))
    assert_exact(late)


def test_views_of_them_are_altered_checked_and_replayed(late: IncrementalFlow) -> None:
    late.tick("t", dated((2, LATER, 2)))
    late.alter_view("plain", "SELECT id, d FROM t WHERE id > 1")
    assert_exact(late)
    assert late.replay().equal


def test_rows_that_differ_are_shown(
    late: IncrementalFlow, place: Path, spark: SparkSession
) -> None:
    late.close()
    tampered(place / "views" / "plain" / "rows", "id")
    with IncrementalFlow.open(place, spark) as flow:
        found = flow.check("plain")
        assert not found.equal
        assert [row["d"] for row in found.sample] == ["10183-09-21"] * 2
