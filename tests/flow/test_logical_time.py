from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import IncrementalFlow, LogicalTimeError
from tests.flow.shop import assert_exact, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

UTC = dt.UTC
NOON = dt.datetime(2024, 2, 28, 12, tzinfo=UTC)


@pytest.fixture
def bills(flow: IncrementalFlow) -> IncrementalFlow:
    flow.register_source("bills", "id INT, due DATE", primary_key=["id"])
    flow.register_view("late", "SELECT id FROM bills WHERE due < current_date()")
    flow.register_view("stamped", "SELECT id, current_timestamp() AS seen FROM bills")
    flow.register_view("plain", "SELECT id FROM bills")
    return flow


def test_views_of_the_clock_move_when_it_advances(bills: IncrementalFlow) -> None:
    days = [dt.date(2024, 2, 27), dt.date(2024, 2, 28), dt.date(2024, 2, 29)]
    summary = bills.tick("bills", list(enumerate(days)), logical_time=NOON)
    assert summary.logical_time == NOON
    assert rows(bills.snapshot("late")) == [(0,)]
    later = bills.tick(logical_time=NOON + dt.timedelta(hours=2))
    assert later.views["late"].skipped
    assert later.views["plain"].skipped
    assert later.views["stamped"].rows_out == 6
    same = bills.tick(logical_time=NOON + dt.timedelta(hours=2))
    assert same.views["stamped"].skipped
    assert same.statements == 0
    tomorrow = bills.tick(logical_time=NOON + dt.timedelta(hours=12))
    assert not tomorrow.views["late"].skipped
    assert rows(bills.snapshot("late")) == [(0,), (1,)]
    assert rows(bills.snapshot("late", at=2)) == [(0,)]
    (seen,) = {row.seen for row in bills.snapshot("stamped").collect()}
    assert seen.astimezone(UTC) == NOON + dt.timedelta(hours=12)
    assert_exact(bills)
    assert bills.replay().equal


def test_a_lagging_view_of_the_clock_keeps_its_time(bills: IncrementalFlow) -> None:
    bills.tick("bills", [(1, dt.date(2024, 2, 28))], logical_time=NOON)
    bills.tick(logical_time=NOON + dt.timedelta(days=1), views=["plain"])
    assert rows(bills.snapshot("late")) == []
    assert_exact(bills)
    bills.tick(logical_time=NOON + dt.timedelta(days=1))
    assert rows(bills.snapshot("late")) == [(1,)]
    assert_exact(bills)


def test_time_is_compared_in_any_zone_and_never_runs_backwards(
    place: Path, bills: IncrementalFlow, spark: SparkSession
) -> None:
    zone = dt.timezone(dt.timedelta(hours=-5))
    bills.tick(logical_time=NOON)
    assert bills.tick(logical_time=NOON.astimezone(zone)).logical_time == NOON
    for backwards in (
        NOON - dt.timedelta(microseconds=1),
        (NOON - dt.timedelta(1)).astimezone(zone),
    ):
        with pytest.raises(LogicalTimeError, match="2024-02-28T12:00:00"):
            bills.tick("bills", [(1, None)], logical_time=backwards)
    assert bills.current_tick == 2
    bills.close()
    with IncrementalFlow.open(place, spark) as again, pytest.raises(LogicalTimeError):
        again.tick(logical_time=NOON - dt.timedelta(hours=1))


@pytest.mark.parametrize("given", [dt.datetime(2024, 2, 28), "2024-02-28", 7, dt.date(2024, 2, 28)])
def test_a_time_has_a_zone(given: Any, bills: IncrementalFlow) -> None:
    with pytest.raises(LogicalTimeError, match="time zone"):
        bills.tick(logical_time=given)
    assert bills.current_tick == 0


def test_without_a_time_ticks_go_with_the_clock_but_never_back(bills: IncrementalFlow) -> None:
    before = dt.datetime.now(UTC)
    assert bills.tick().logical_time >= before
    future = dt.datetime.now(UTC) + dt.timedelta(days=400)
    bills.tick(logical_time=future)
    assert bills.tick().logical_time == future
