"""A Spark session that is given is a guest's house: nothing in it is moved."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from ivm_core import IncrementalFlow, TickFailed
from tests.flow.shop import declare_shop, rows

if TYPE_CHECKING:
    from pathlib import Path

STRANGE = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.caseSensitive": "true",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.execution.arrow.pyspark.enabled": "false",
    "spark.sql.sources.default": "csv",
}


@pytest.fixture
def theirs(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    for name, value in STRANGE.items():
        session.conf.set(name, value)
    session.range(3).createOrReplaceTempView("orders")
    return session


def settings(session: SparkSession) -> dict[str, str]:
    return {row["key"]: row["value"] for row in session.sql("SET").collect()}


def test_settings_and_temporary_views_stay_as_they_are(place: Path, theirs: SparkSession) -> None:
    before = settings(theirs)
    functions = {each.name for each in theirs.catalog.listFunctions()}
    with IncrementalFlow.open(place, theirs) as flow:
        declare_shop(flow)
        flow.register_function("my_own", lambda value: value, "INT", deterministic=True)
        flow.register_view("sevenths", "SELECT id, 7 / amount AS part FROM orders")
        flow.tick({"orders": [(1, "ann", 20)], "customers": [("ann", "Rome")]})
        with pytest.raises(TickFailed):
            flow.tick("orders", [(2, "bob", 0)])
        assert flow.spark is theirs
        assert rows(flow.snapshot("cities")) == [("Rome", 20)]
        assert flow.check("totals").equal
        assert flow.replay().equal
    assert settings(theirs) == before
    assert [row.viewName for row in theirs.sql("SHOW VIEWS").collect()] == ["orders"]
    assert theirs.table("orders").count() == 3
    assert {each.name for each in theirs.catalog.listFunctions()} == functions


def test_the_active_session_stays_the_active_one(place: Path, theirs: SparkSession) -> None:
    theirs.createDataFrame([(1,)], "x INT")
    assert SparkSession.getActiveSession() is theirs
    with IncrementalFlow.open(place, theirs) as flow:
        declare_shop(flow)
        flow.tick("orders", [(1, "ann", 20)])
        flow.check("totals")
        flow.snapshot("totals").collect()
        assert SparkSession.getActiveSession() is theirs
    with IncrementalFlow.open(place) as flow:
        flow.tick("orders", [(2, "ann", 20)])
        assert flow.spark is theirs
    assert SparkSession.getActiveSession() is theirs


def test_frames_of_a_flow_go_with_the_users_own(place: Path, theirs: SparkSession) -> None:
    with IncrementalFlow.open(place, theirs) as flow:
        declare_shop(flow)
        flow.tick("orders", [(1, "ann", 20)])
        flow.snapshot("large").createOrReplaceTempView("large")
        joined = theirs.sql("SELECT l.customer FROM large l JOIN orders o ON l.id = o.id")
        assert rows(joined) == [("ann",)]
        flow.changes("large").createOrReplaceTempView("changes")
        assert theirs.sql("SELECT _weight, _tick FROM changes").collect() == [(1, 1)]


def test_a_session_that_was_given_is_not_stopped(place: Path, spark: SparkSession) -> None:
    with IncrementalFlow.open(place, spark) as flow:
        declare_shop(flow)
    assert spark.range(2).count() == 2


def test_meaning_does_not_depend_on_the_session(
    place: Path, theirs: SparkSession, spark: SparkSession
) -> None:
    """ANSI mode, time zone and case are pinned: two sessions, the same digests."""
    digests = []
    for number, session in enumerate((theirs, spark)):
        with IncrementalFlow.open(f"{place}-{number}", session) as flow:
            flow.register_source("s", "X INT, ts TIMESTAMP")
            flow.register_view(
                "v",
                "SELECT x, HOUR(ts) AS h, CAST(ts AS STRING) AS t, x + 1 AS y FROM s WHERE x > 0",
            )
            summary = flow.tick("s", [(1, datetime(2024, 1, 1, 23, tzinfo=UTC))])
            digests.append(summary.views["v"].digest)
            with pytest.raises(TickFailed, match="OVERFLOW"):
                flow.tick("s", [(2**31 - 1, None)])
    assert digests[0] == digests[1]
