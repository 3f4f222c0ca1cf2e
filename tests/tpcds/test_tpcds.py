"""Queries of TPC-DS as views, exact after every tick of a refresh stream.

The tables are small and have NULLs; parameters are chosen so that the results are not empty. At
night all queries, in the ordinary tests one of them, another one each day.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.tpc.run import run_queries
from tests.tpcds.refresh import history

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from tests.tpc.history import History

QUERIES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted(Path(__file__).with_name("queries").glob("*.sql"))
}
LONG = frozenset(
    [
        *("q04", "q05", "q06", "q09", "q10", "q14", "q16", "q18", "q22", "q23", "q24", "q27"),
        *("q31", "q33", "q35", "q36", "q47", "q49", "q54", "q64", "q67", "q72", "q74", "q75"),
        *("q77", "q78", "q80", "q83", "q87", "q88"),
    ]
)
"""Take too long for the ordinary tests."""
SHORT = [name for name in QUERIES if name not in LONG]
TICKS, FEW_TICKS = 6, 2
SAMPLE = 1
TODAY = date.today().toordinal() * SAMPLE
SAMPLED = [SHORT[(TODAY + i) % len(SHORT)] for i in range(SAMPLE)]


@pytest.fixture(scope="session")
def changes(tmp_path_factory: pytest.TempPathFactory) -> History:
    return history(tmp_path_factory.mktemp("tpcds"))


@pytest.mark.xdist_group("tpcds")
@pytest.mark.parametrize("name", SAMPLED)
def test_some_queries(
    name: str,
    changes: History,
    tmp_path: Path,
    spark: SparkSession,
    record_property: Callable[[str, object], None],
) -> None:
    for covered in run_queries({name: QUERIES[name]}, changes, FEW_TICKS, tmp_path, spark):
        record_property("covered", f"TPC-DS {covered}")


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", list(QUERIES))
def test_every_query(
    name: str,
    changes: History,
    tmp_path: Path,
    spark: SparkSession,
    record_property: Callable[[str, object], None],
) -> None:
    sql = QUERIES[name]
    first = int(name[1:]) % 2 == 0
    for covered in run_queries({name: sql}, changes, TICKS, tmp_path, spark, loaded_first=first):
        record_property("covered", f"TPC-DS {covered}")
        assert any(covered.rows), f"{name} had no row in any tick"
        assert covered.changed > 1, f"{name} never changed"
