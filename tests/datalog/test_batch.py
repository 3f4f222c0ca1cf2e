"""Batch mode: one evaluation, small on the driver or large with Spark, the same either way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import BatchError, DatalogError, TickFailed, UnknownName, run
from ivm_core.api import datalog_run
from tests.datalog.programs import EVERYTHING, FACTS
from tests.datalog.reference import evaluate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENDLESS = ".decl n(x: number) n(0). n(x + 1) :- n(x)."


@pytest.mark.parametrize(
    "gear", ["on the driver", pytest.param("with Spark", marks=pytest.mark.nightly)]
)
def test_everything_is_what_the_reference_says(
    gear: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    if gear == "with Spark":
        monkeypatch.setattr(datalog_run, "LOCAL_ROWS", -1)
    found = run(EVERYTHING, FACTS, spark)
    expected = evaluate(EVERYTHING, FACTS)
    assert found.iterations["tc"] > 1
    assert {name: list(rows) for name, rows in found.items()} == {
        name: sorted(expected[name]) for name in found
    }
    assert sorted(map(tuple, found["both"].df.collect())) == sorted(expected["both"])
    nothing = run(EVERYTHING, {}, spark)
    assert [name for name, rows in nothing.items() if len(rows)] == ["dist", "lone"]


def test_what_does_not_fit_is_refused(spark: SparkSession) -> None:
    with pytest.raises(DatalogError):
        run("tc(x) :- e(x).", {}, spark)
    with pytest.raises(UnknownName):
        run(EVERYTHING, {"tc": [(1, 2)]}, spark)
    with pytest.raises(BatchError):
        run(EVERYTHING, {"e": [(1, "2")]}, spark)
    with pytest.raises(TickFailed) as told:
        run(ENDLESS, {}, spark, max_iterations=3)
    assert "the recursion of n has not ended after 3 rounds" in str(told.value)
    with pytest.raises(TickFailed) as told:
        run(".decl a(x: number) .decl b(x: number) b(x * 2) :- a(x).", {"a": [(2**62,)]}, spark)
    assert "b(x * 2) :- a(x)." in str(told.value)
    assert "ARITHMETIC_OVERFLOW" in str(told.value)
