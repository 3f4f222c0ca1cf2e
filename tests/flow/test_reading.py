from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import DeltaBatch, IncrementalFlow, IvmError, OutOfRange, UnknownName
from tests.flow.shop import declare_shop, rows
from tests.processes import in_thread

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

HISTORY: list[list[tuple[Any, ...]]] = [
    [],
    [(1, "ann")],
    [(1, "ann"), (2, "bob")],
    [(2, "bob")],
    [(2, "bob")],
]


@pytest.fixture
def told(shop: IncrementalFlow) -> IncrementalFlow:
    shop.tick("orders", [(1, "ann", 20)])
    shop.tick("orders", [(2, "bob", 30)])
    shop.tick("orders", DeltaBatch.delete_keys([1]))
    shop.tick("orders", DeltaBatch.upserts([(2, "bob", 31)]))
    return shop


def test_a_snapshot_shows_a_view_at_any_tick(told: IncrementalFlow) -> None:
    for tick, expected in enumerate(HISTORY):
        assert rows(told.snapshot("large", at=tick)) == expected
    assert rows(told.snapshot("large")) == HISTORY[-1]
    assert rows(told.snapshot("orders", at=2)) == [(1, "ann", 20), (2, "bob", 30)]
    assert told.snapshot("large").columns == ["id", "customer"]
    assert rows(told.snapshot("totals", at=1)) == [("ann", 1, 20)]


def test_changes_tell_what_every_tick_did(told: IncrementalFlow) -> None:
    changes = told.changes("large")
    assert changes.columns == ["id", "customer", "_weight", "_tick"]
    assert rows(changes) == [(1, "ann", -1, 3), (1, "ann", 1, 1), (2, "bob", 1, 2)]
    assert rows(told.changes("large", since=2)) == [(1, "ann", -1, 3)]
    assert rows(told.changes("large", since=4)) == []
    assert rows(told.changes("totals", since=3)) == [("bob", 1, 30, -1, 4), ("bob", 1, 31, 1, 4)]
    assert rows(told.changes("orders", since=3)) == [(2, "bob", 30, -1, 4), (2, "bob", 31, 1, 4)]


@pytest.mark.parametrize("tick", [-1, 5, 1.0, "1", True])
def test_ticks_that_are_not_there_are_refused(tick: Any, told: IncrementalFlow) -> None:
    for read in (
        lambda: told.snapshot("large", at=tick),
        lambda: told.changes("large", since=tick),
        lambda: told.watch_output("large", since=tick),
    ):
        with pytest.raises(OutOfRange, match="0 to 4"):
            read()


def test_replays_stay_within_the_ticks(told: IncrementalFlow) -> None:
    for first, last in ((0, 4), (1, 5), (3, 2), (5, None)):
        with pytest.raises(OutOfRange):
            told.replay(first, last)


def test_what_is_not_there_is_unknown(told: IncrementalFlow) -> None:
    for read in (
        lambda: told.snapshot("nowhere"),
        lambda: told.changes("nowhere"),
        lambda: told.watch_output("nowhere"),
        lambda: told.snapshot(None),  # type: ignore[arg-type]
    ):
        with pytest.raises(UnknownName, match="orders, customers, large, totals, cities"):
            read()
    for ask in (told.explain, told.check):
        with pytest.raises(UnknownName, match="large, totals, cities"):
            ask("orders")


def test_a_snapshot_stays_what_it_was(told: IncrementalFlow) -> None:
    before = told.snapshot("large")
    told.tick("orders", [(7, "eve", 70)])
    assert rows(before) == HISTORY[-1]


def test_a_reader_sees_whole_ticks_of_another_handle(
    place: Path, told: IncrementalFlow, spark: SparkSession
) -> None:
    with IncrementalFlow.open(place, spark) as reader:
        assert reader.current_tick == 4
        told.tick("orders", [(7, "eve", 70)])
        assert rows(reader.snapshot("large")) == [(2, "bob"), (7, "eve")]
        assert reader.current_tick == 5
        assert rows(reader.snapshot("large", at=3)) == HISTORY[3]
        assert reader.check("totals").equal


# --- watching ---


def taken(watch: Any) -> list[tuple[int, list[tuple[Any, ...]]]]:
    return [
        (tick, sorted((tuple(row.values()) for row in batch.to_arrow().to_pylist()), key=repr))
        for tick, batch in watch
    ]


def test_a_watch_starts_now_and_goes_on(told: IncrementalFlow) -> None:
    watch = told.watch_output("large")
    assert taken(watch) == []
    told.tick("orders", [(3, "eve", 50), (4, "eve", 1)])
    told.tick("orders", [(5, "eve", 2)])
    told.tick("orders", DeltaBatch.delete_keys([3]))
    assert taken(watch) == [(5, [(3, "eve", 1)]), (7, [(3, "eve", -1)])]
    assert watch.since == 7
    assert taken(watch) == []
    told.tick("orders", [(6, "eve", 60)])
    assert taken(watch) == [(8, [(6, "eve", 1)])]


def test_a_watch_is_resumed_where_another_left_off(told: IncrementalFlow) -> None:
    first = told.watch_output("large", since=0)
    assert next(first)[0] == 1
    assert next(first)[0] == 2
    assert taken(told.watch_output("large", since=first.since)) == [(3, [(1, "ann", -1)])]
    assert taken(first) == [(3, [(1, "ann", -1)])]
    assert [tick for tick, _ in taken(told.watch_output("totals", since=2))] == [3, 4]


def test_a_watch_does_not_go_on_with_another_view_of_the_name(told: IncrementalFlow) -> None:
    watch = told.watch_output("large", since=2)
    assert [tick for tick, _ in watch] == [3]
    told.drop_view("large")
    told.register_view("Large", "SELECT id, customer FROM orders WHERE amount >= 1")
    fresh = told.watch_output("large")
    told.tick("orders", [(3, "eve", 2)])
    with pytest.raises(OutOfRange, match="another view was called Large up to tick 4"):
        next(watch)
    for since in (1, 4):
        with pytest.raises(OutOfRange, match="another view"):
            told.changes("large", since=since)
        with pytest.raises(OutOfRange, match="another view"):
            told.watch_output("large", since=since)
    whole = [(5, [(2, "bob", 1), (3, "eve", 1)])]
    assert taken(fresh) == taken(told.watch_output("large", since=0)) == whole
    assert taken(told.watch_output("large", since=5)) == []


def test_what_a_watch_gives_may_be_fed_on(told: IncrementalFlow) -> None:
    told.register_source("copy", "id BIGINT, customer STRING")
    for _, batch in told.watch_output("large", since=0):
        told.tick("copy", batch, views=[])
    assert rows(told.snapshot("copy")) == HISTORY[-1]


def test_watches_of_several_consumers_do_not_meet(told: IncrementalFlow) -> None:
    slow = told.watch_output("large", since=0)
    fast = told.watch_output("large", since=0)
    assert next(slow)[0] == 1
    assert [tick for tick, _ in fast] == [1, 2, 3]
    assert [tick for tick, _ in slow] == [2, 3]


def test_a_watch_in_another_thread_gets_every_tick_while_the_flow_goes_on(
    place: Path, spark: SparkSession
) -> None:
    with IncrementalFlow.open(place, spark) as flow:
        flow.register_source("s", "x INT")
        flow.register_view("v", "SELECT x FROM s WHERE x % 2 = 0")
        patient = flow.watch_output("v", wait=60)
        slow = flow.watch_output("v", wait=60)

        def last_is_ten(watch: Any, pause: float) -> list[tuple[int, int]]:
            seen = []
            for tick, batch in watch:
                time.sleep(pause)
                (value,) = batch.to_arrow()["x"].to_pylist()
                seen.append((tick, value))
                if value == 10:
                    break
            return seen

        with ThreadPoolExecutor(2) as pool:
            waiting = pool.submit(last_is_ten, patient, 0)
            dragging = pool.submit(last_is_ten, slow, 0.3)
            for number in range(1, 11):
                assert flow.tick("s", [(number,)]).tick == number
            expected = [(number, number) for number in range(2, 11, 2)]
            assert waiting.result(60) == expected
            assert dragging.result(60) == expected


def test_a_watch_waits_as_long_as_it_may(told: IncrementalFlow) -> None:
    watch = told.watch_output("large", wait=0.2)
    started = time.monotonic()
    assert taken(watch) == []
    assert 0.2 <= time.monotonic() - started < 5


def test_a_watch_needs_no_spark(place: Path, spark: SparkSession) -> None:
    with IncrementalFlow.open(place, spark) as flow:
        declare_shop(flow)
        flow.tick("orders", [(1, "ann", 20)])

    def read() -> tuple[list[Any], bool]:
        flow = IncrementalFlow.open(place)
        seen = taken(flow.watch_output("large", since=0))
        return seen, flow._engine._gears is None

    assert in_thread(read) == ([(1, [(1, "ann", 1)])], True)


def test_a_watch_of_the_many_ticks_that_compaction_merged(flow: IncrementalFlow) -> None:
    flow.register_source("s", "x INT")
    flow.register_view("v", "SELECT x FROM s")
    lazy = flow.watch_output("v", since=0)
    for number in range(1, 38):
        flow.tick("s", [(number,)])
    assert [tick for tick, _ in lazy] == list(range(1, 38))
    assert [batch.to_arrow()["x"].to_pylist() for _, batch in flow.watch_output("v", since=35)] == [
        [36],
        [37],
    ]


def test_changes_of_a_view_that_is_not_there_are_no_ivm_bug(shop: IncrementalFlow) -> None:
    with pytest.raises(IvmError):
        shop.changes("v")
