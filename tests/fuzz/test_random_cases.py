"""Random schemas, queries and conflicting batches, tick by tick against Spark.

What fails here is shrunk and kept as a case in `tests/sql/cases/found.sql`.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from tests.fuzz.random_cases import random_case
from tests.fuzz.random_queries import QueryMaker
from tests.fuzz.wide_queries import WideQueryMaker
from tests.sql.case_text import case_text
from tests.sql.runner import run_case

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

CHEAP = (3, 12, 17, 19, 20, 22)
"""Seeds that are cheap, and together use every operator; one half a day."""
TODAY = CHEAP[date.today().toordinal() % 2 :: 2]
NIGHTLY = range(1000, 1100)


def run(seed: int, folder: Path, spark: SparkSession, maker: type[QueryMaker] = QueryMaker) -> None:
    case = random_case(seed, maker=maker)
    try:
        run_case(case, folder, spark)
    except BaseException as error:
        error.add_note(f"The case, to be shrunk and kept:\n\n{case_text(case)}")
        raise


@pytest.mark.parametrize("seed", TODAY)
def test_seed(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    run(seed, tmp_path, spark)


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", NIGHTLY)
def test_many_seeds(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    run(seed, tmp_path, spark)


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", NIGHTLY)
def test_many_seeds_of_the_whole_grammar(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    run(seed, tmp_path, spark, WideQueryMaker)
