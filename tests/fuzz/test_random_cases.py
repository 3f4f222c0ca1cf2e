"""Random schemas, queries to depth five and conflicting batches, tick by tick against Spark.

What fails is shrunk and written to `failures/`, to be mended and committed; those cases run first.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fuzz.coverage import Coverage
from tests.fuzz.shrinking import FAILURES, Shrinking, keep
from tests.fuzz.stories import TICKS, VIEWS, Found, Story, random_story, retell
from tests.sql.case_format import read_cases
from tests.sql.runner import run_case

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

KEPT = [
    pytest.param(case, id=case.title)
    for path in sorted(FAILURES.glob("*.sql"))
    for case in read_cases(path)
]
SAMPLE = (2002, 2012)
"""Seeds that are cheap; the same ones every time."""
SHARDS = 34
SEEDS_A_SHARD = 2
FIRST_SEED = 1000
"""68 stories of 6 views and 6 ticks, of which some advance a few views only: 2,000 views × ticks."""


@pytest.mark.parametrize("case", KEPT)
def test_kept_failure(case: object, tmp_path: Path, spark: SparkSession) -> None:
    run_case(case, tmp_path, spark, thorough=False)


def tell(
    seed: int, folder: Path, spark: SparkSession, views: int = VIEWS, ticks: int = TICKS
) -> Coverage:
    """Run a seed; what fails is shrunk and kept."""
    try:
        return random_story(seed, folder / str(seed), spark, views=views, ticks=ticks)
    except Found as found:
        smallest = Shrinking(found, lambda story: _retold(story, spark)).run()
        path = keep(smallest)
        raise AssertionError(f"{smallest}\n\n{path}:\n{path.read_text()}") from found


def _retold(story: Story, spark: SparkSession) -> None:
    with tempfile.TemporaryDirectory() as folder:
        retell(story, Path(folder), spark)


@pytest.mark.parametrize("seed", SAMPLE)
def test_seed(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    covered = tell(seed, tmp_path, spark, views=3, ticks=3)
    assert covered.nonempty


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_shard(
    shard: int, tmp_path: Path, spark: SparkSession, record_property: Callable[[str, object], None]
) -> None:
    covered = Coverage()
    failed = []
    first = FIRST_SEED + shard * SEEDS_A_SHARD
    for seed in range(first, first + SEEDS_A_SHARD):
        try:
            covered += tell(seed, tmp_path, spark)
        except AssertionError as error:
            covered.differences += 1
            failed.append(str(error))
    record_property("covered", f"random stories, shard {shard:02}: {covered}")
    record_property("random stories", json.dumps(vars(covered)))
    assert not failed, "\n\n".join(failed)
