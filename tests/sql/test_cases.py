"""Every titled case of `cases/*.sql`, tick by tick against Spark.

One of `SHARE` cases runs each day, the others on the days after, and all of them at night. Cases
are small, so they run in the low gear, and most of them without a statement; a few each day, and
all of them at night, also run by statements alone and in the high gear.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ivm_core.engine import evaluation, reducing, relations, staging
from ivm_core.engine.evaluation import ViewEvaluation
from ivm_core.engine.low_gear import LowGearRun
from ivm_core.engine.readings import Readings
from ivm_core.engine.two_gears import FoldedBySparkRun, FoldedOnDriverRun
from tests.sql.case_format import read_cases
from tests.sql.runner import run_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.sql.case_format import Case

CASES = [
    pytest.param(case, id=f"{path.stem}: {case.title}")
    for path in sorted(Path(__file__).with_name("cases").glob("*.sql"))
    for case in read_cases(path)
]


GONE = [case for case in CASES if str(case.id).startswith("rows_that_are_gone")]
SHARE = 14
HIGH_SHARE = 60
FOLDED = ("join", "aggregate", "group", "min_max", "distinct", "time_windows", "nested")
FOLDS = [case for case in CASES if any(word in str(case.id) for word in FOLDED)]
TODAY = date.today().toordinal()
SAMPLE = CASES[TODAY % SHARE :: SHARE]
HIGH_SAMPLE = GONE[TODAY % 2 : TODAY % 2 + 1] + CASES[TODAY % HIGH_SHARE :: HIGH_SHARE]


@pytest.fixture(autouse=True)
def every_row_is_one_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that can have no partners are not bound, however few there are."""
    monkeypatch.setattr(reducing, "MANY_ROWS", 0)


@pytest.fixture
def high_gear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ViewEvaluation, "_why_high", lambda *_: "the test wants it")
    for run in (FoldedBySparkRun, FoldedOnDriverRun):
        monkeypatch.setattr(run, "is_for", lambda *_: False)
    monkeypatch.setattr(Readings, "why_whole", lambda *_: "")


@pytest.fixture
def large_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every change is one that is stored before it is used, and folded by Spark where it can be.

    Every other one is a change of most rows.
    """
    for module in (evaluation, relations, staging):
        monkeypatch.setattr(module, "LOCAL_ROWS", 0)
    monkeypatch.setattr(FoldedOnDriverRun, "is_for", lambda *_: False)

    def why_whole(readings: Readings, _way: str) -> str:
        is_odd = readings._view.relations.tick % 2
        return "most of it" if readings.has_choice and is_odd else ""

    monkeypatch.setattr(Readings, "why_whole", why_whole)


@pytest.fixture
def by_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is computed on the driver that a statement can say."""
    monkeypatch.setattr(LowGearRun, "_without_statement", lambda *_: None)


@pytest.mark.parametrize("case", SAMPLE)
def test_case(case: Case, tmp_path: Path, spark: SparkSession) -> None:
    run_case(case, tmp_path, spark)


@pytest.mark.usefixtures("high_gear")
@pytest.mark.parametrize("case", HIGH_SAMPLE)
def test_some_cases_in_the_high_gear(case: Case, tmp_path: Path, spark: SparkSession) -> None:
    run_case(case, tmp_path, spark, thorough=False)


@pytest.mark.usefixtures("by_statements")
@pytest.mark.parametrize("case", CASES[(TODAY + 1) % HIGH_SHARE :: HIGH_SHARE])
def test_some_cases_by_statements(case: Case, tmp_path: Path, spark: SparkSession) -> None:
    run_case(case, tmp_path, spark, thorough=False)


@pytest.mark.usefixtures("large_changes")
@pytest.mark.parametrize("case", FOLDS[TODAY % len(FOLDS) :][:2])
def test_some_cases_with_large_changes(case: Case, tmp_path: Path, spark: SparkSession) -> None:
    run_case(case, tmp_path, spark, thorough=False)


@pytest.mark.nightly
@pytest.mark.usefixtures("large_changes")
@pytest.mark.parametrize("case", FOLDS)
def test_all_cases_with_large_changes(case: Case, tmp_path: Path, spark: SparkSession) -> None:
    run_case(case, tmp_path, spark)


@pytest.mark.nightly
@pytest.mark.parametrize("case", [case for case in CASES if case not in SAMPLE])
def test_the_other_cases(case: Case, tmp_path: Path, spark: SparkSession) -> None:
    run_case(case, tmp_path, spark)


@pytest.mark.nightly
@pytest.mark.usefixtures("high_gear")
@pytest.mark.parametrize("case", CASES)
def test_all_cases_in_the_high_gear(case: Case, tmp_path: Path, spark: SparkSession) -> None:
    run_case(case, tmp_path, spark)


@pytest.mark.nightly
@pytest.mark.usefixtures("by_statements")
@pytest.mark.parametrize("case", CASES)
def test_all_cases_by_statements(case: Case, tmp_path: Path, spark: SparkSession) -> None:
    run_case(case, tmp_path, spark)
