"""Every titled case of `cases/*.sql`, tick by tick against Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

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


@pytest.mark.parametrize("case", CASES)
def test_case(case: Case, tmp_path: Path, spark: SparkSession) -> None:
    run_case(case, tmp_path, spark)
