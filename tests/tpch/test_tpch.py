"""All 22 queries of TPC-H as views, exact after every tick of a refresh stream.

At night each of them over scale 0.01 through 20 ticks, and all of them in one flow; in the
ordinary tests a few of them, other ones each day, over a smaller scale.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from bench.tpch.queries import queries
from tests.tpc.run import run_queries
from tests.tpch.refresh import history

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.tpc.history import History

WHOLE, SMALL = 0.01, 0.001
TICKS, FEW_TICKS, TOGETHER_TICKS = 20, 3, 6
SAMPLE = 2
NAMES = sorted(queries(WHOLE))
TODAY = date.today().toordinal() * SAMPLE
SAMPLED = [NAMES[(TODAY + i) % len(NAMES)] for i in range(SAMPLE)]


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> History:
    return history(WHOLE, tmp_path_factory.mktemp("tpch"))


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> History:
    return history(SMALL, tmp_path_factory.mktemp("tpch-small"))


@pytest.mark.xdist_group("tpch")
@pytest.mark.parametrize("name", SAMPLED)
def test_some_queries_over_small_tables(
    name: str,
    small: History,
    tmp_path: Path,
    spark: SparkSession,
    record_property: Callable[[str, object], None],
) -> None:
    sql = queries(SMALL)[name]
    for covered in run_queries({name: sql}, small, FEW_TICKS, tmp_path, spark):
        record_property("covered", f"TPC-H {SMALL}, {covered}")


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", NAMES)
def test_every_query(
    name: str,
    whole: History,
    tmp_path: Path,
    spark: SparkSession,
    record_property: Callable[[str, object], None],
) -> None:
    sql = queries(WHOLE)[name]
    first = int(name[1:]) % 2 == 0
    for covered in run_queries({name: sql}, whole, TICKS, tmp_path, spark, loaded_first=first):
        record_property("covered", f"TPC-H {WHOLE}, {covered}")
        assert any(covered.rows), f"{name} had no row in any tick"
        assert covered.changed > 1, f"{name} never changed"


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_all_queries_in_one_flow(
    small: History,
    tmp_path: Path,
    spark: SparkSession,
    record_property: Callable[[str, object], None],
) -> None:
    for covered in run_queries(queries(SMALL), small, TOGETHER_TICKS, tmp_path, spark):
        record_property("covered", f"TPC-H {SMALL}, all in one flow, {covered}")
