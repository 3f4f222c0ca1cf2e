"""What a source holds is what its batches say: contradictions are refused as a whole."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import BatchError, ConstraintViolation, DeltaBatch
from tests.flow.shop import ORDERS, log_of, rows

if TYPE_CHECKING:
    from ivm_core import IncrementalFlow

HELD = [(1, "ann", 20), (2, "bob", 3), (3, None, None)]


@pytest.fixture
def orders(flow: IncrementalFlow) -> IncrementalFlow:
    flow.register_source("orders", ORDERS, primary_key=["id"])
    flow.tick("orders", HELD)
    return flow


@pytest.fixture
def bag(flow: IncrementalFlow) -> IncrementalFlow:
    flow.register_source("orders", ORDERS)
    flow.tick("orders", [*HELD, HELD[0]])
    return flow


@pytest.mark.parametrize(
    ("batch", "keys"),
    [
        (DeltaBatch.inserts([(1, "eve", 1)]), (1,)),
        (DeltaBatch.inserts([(1, "ann", 20)]), (1,)),
        (DeltaBatch.inserts([(7, "x", 1), (7, "y", 1)]), (7,)),
        (DeltaBatch.inserts([(7, "x", 1), (7, "x", 1)]), (7,)),
        (DeltaBatch.of([(7, "x", 1)], [2]), (7,)),
        (DeltaBatch.deletes([(9, "x", 1)]), (9,)),
        (DeltaBatch.deletes([(1, "ann", 21)]), (1,)),
        (DeltaBatch.deletes([(3, None, 0)]), (3,)),
        (DeltaBatch.of([(1, "ann", 20)], [-2]), (1,)),
        (DeltaBatch.deletes([(1, "ann", 20), (1, "ann", 20)]), (1,)),
        (DeltaBatch.edits([((1, "ann", 21), (1, "ann", 22))]), (1,)),
        (DeltaBatch.edits([((1, "ann", 20), (2, "ann", 20))]), (2,)),
        (DeltaBatch.edits([((9, "x", 1), (9, "y", 1))]), (9,)),
        (DeltaBatch.delete_keys([9]), (9,)),
        (DeltaBatch.delete_keys([1, 9, 8]), (9, 8)),
        (DeltaBatch.delete_keys([1]) + DeltaBatch.deletes([(1, "ann", 20)]), (1,)),
        (DeltaBatch.upserts([(1, "a", 1)]) + DeltaBatch.deletes([(1, "ann", 20)]), (1,)),
        (DeltaBatch.upserts([(7, "a", 1)]) + DeltaBatch.inserts([(7, "b", 1)]), (7,)),
        (DeltaBatch.upserts([(7, "a", 1), (7, "b", 1)]), ((7,),)),
        (DeltaBatch.upserts([(1, "a", 1)]) + DeltaBatch.delete_keys([1]), ((1,),)),
    ],
)
def test_changes_that_break_the_key_are_refused_with_the_keys(
    batch: DeltaBatch, keys: tuple[Any, ...], orders: IncrementalFlow
) -> None:
    before = log_of(orders)
    with pytest.raises(ConstraintViolation) as caught:
        orders.tick("orders", batch + DeltaBatch.inserts([(100, "good", 1)]))
    assert set(caught.value.keys) == set(keys)
    assert "orders" in str(caught.value)
    assert log_of(orders) == before
    assert rows(orders.snapshot("orders")) == sorted(HELD, key=repr)


@pytest.mark.parametrize(
    ("batch", "after"),
    [
        (DeltaBatch.edits([((1, "ann", 20), (1, "ann", 21))]), [(1, "ann", 21), *HELD[1:]]),
        (DeltaBatch.edits([((1, "ann", 20), (9, "ann", 20))]), [(9, "ann", 20), *HELD[1:]]),
        (
            DeltaBatch.edits([((1, "ann", 20), (2, "x", 1)), ((2, "bob", 3), (1, "y", 2))]),
            [(1, "y", 2), (2, "x", 1), HELD[2]],
        ),
        (
            DeltaBatch.upserts([(1, None, None), (7, "new", 7)]),
            [(1, None, None), (7, "new", 7), *HELD[1:]],
        ),
        (DeltaBatch.upserts([{"amount": 5, "ID": 3, "customer": "c"}]), [*HELD[:2], (3, "c", 5)]),
        (DeltaBatch.delete_keys([1, 3]), [HELD[1]]),
        (DeltaBatch.delete_keys([{"id": 2}]), [HELD[0], HELD[2]]),
        (DeltaBatch.delete_keys([(2,)]), [HELD[0], HELD[2]]),
        (DeltaBatch.deletes([HELD[2]]), HELD[:2]),
        (
            DeltaBatch.deletes([HELD[0]]) + DeltaBatch.inserts([(1, "eve", 1)]),
            [(1, "eve", 1), *HELD[1:]],
        ),
        (
            DeltaBatch.inserts([(1, "eve", 1)]) + DeltaBatch.deletes([HELD[0]]),
            [(1, "eve", 1), *HELD[1:]],
        ),
        (
            DeltaBatch.delete_keys([1]) + DeltaBatch.inserts([(1, "eve", 1)]),
            [(1, "eve", 1), *HELD[1:]],
        ),
        (DeltaBatch.of([(7, "x", 1), (7, "x", 1), (7, "x", 1)], [1, -1, 1]), [*HELD, (7, "x", 1)]),
        (DeltaBatch.of([(9, "x", 1), (9, "x", 1)], [-1, 1]), HELD),
        (
            DeltaBatch.of([(7, "x", 1)], [3]) + DeltaBatch.of([(7, "x", 1)], [-2]),
            [*HELD, (7, "x", 1)],
        ),
    ],
)
def test_changes_that_keep_the_key_are_taken(
    batch: DeltaBatch, after: list[Any], orders: IncrementalFlow
) -> None:
    orders.tick("orders", batch)
    assert rows(orders.snapshot("orders")) == sorted(after, key=repr)


@pytest.mark.parametrize(
    "batch",
    [
        DeltaBatch.inserts([(None, "x", 1)]),
        DeltaBatch.deletes([(None, "x", 1)]),
        DeltaBatch.upserts([(None, "x", 1)]),
        DeltaBatch.delete_keys([None]),
    ],
)
def test_a_key_is_never_null(batch: DeltaBatch, orders: IncrementalFlow) -> None:
    with pytest.raises(BatchError, match="NULL") as caught:
        orders.tick("orders", batch)
    assert caught.value.column == "id"
    assert caught.value.row == 0


@pytest.mark.parametrize(
    ("batch", "row"),
    [
        (DeltaBatch.deletes([(9, "x", 1)]), (9, "x", 1)),
        (DeltaBatch.deletes([HELD[1], HELD[1]]), HELD[1]),
        (DeltaBatch.of([HELD[0]], [-3]), HELD[0]),
        (DeltaBatch.deletes([(3, None, 0)]), (3, None, 0)),
        (DeltaBatch.edits([((1, "ann", 21), (1, "ann", 22))]), (1, "ann", 21)),
        (DeltaBatch.of([(7, "x", 1), (7, "x", 1)], [1, -2]), (7, "x", 1)),
    ],
)
def test_a_bag_never_goes_below_zero(
    batch: DeltaBatch, row: tuple[Any, ...], bag: IncrementalFlow
) -> None:
    before = log_of(bag)
    with pytest.raises(ConstraintViolation) as caught:
        bag.tick("orders", batch + DeltaBatch.inserts([(100, "good", 1)]))
    assert caught.value.keys == (row,)
    assert log_of(bag) == before
    assert bag.snapshot("orders").count() == 4


@pytest.mark.parametrize(
    ("batch", "count"),
    [
        (DeltaBatch.inserts([HELD[0]]), 5),
        (DeltaBatch.of([HELD[0]], [-2]), 2),
        (DeltaBatch.deletes([HELD[0], HELD[2]]), 2),
        (DeltaBatch.of([(7, "x", 1), (7, "x", 1)], [-1, 1]), 4),
        (DeltaBatch.of([HELD[1]], [1000]), 1004),
    ],
)
def test_a_bag_holds_rows_as_often_as_they_come(
    batch: DeltaBatch, count: int, bag: IncrementalFlow
) -> None:
    bag.tick("orders", batch)
    assert bag.snapshot("orders").count() == count


def test_upserts_and_delete_keys_need_a_key(bag: IncrementalFlow) -> None:
    for batch in (DeltaBatch.upserts([(1, "a", 1)]), DeltaBatch.delete_keys([1])):
        with pytest.raises(BatchError, match="primary key"):
            bag.tick("orders", batch)


UTC = dt.UTC


@pytest.mark.parametrize(
    ("kind", "key", "same", "other"),
    [
        ("STRING", "a", "a", "A"),
        ("BINARY", b"\x00", b"\x00", b""),
        ("BOOLEAN", True, True, False),
        ("DECIMAL(10,2)", Decimal("1.5"), Decimal("1.50"), Decimal("1.51")),
        ("DATE", dt.date(2024, 1, 1), dt.date(2024, 1, 1), dt.date(2024, 1, 2)),
        (
            "TIMESTAMP",
            dt.datetime(2024, 1, 1, tzinfo=UTC),
            dt.datetime(2024, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
            dt.datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        ),
        (
            "TIMESTAMP_NTZ",
            dt.datetime(2024, 1, 1),
            dt.datetime(2024, 1, 1),
            dt.datetime(2024, 1, 1, 1),
        ),
    ],
)
def test_keys_of_every_type_are_told_apart(
    kind: str, key: Any, same: Any, other: Any, flow: IncrementalFlow
) -> None:
    flow.register_source("s", f"a INT, k {kind}", primary_key=["k", "a"])
    flow.tick("s", [(1, key)])
    with pytest.raises(ConstraintViolation):
        flow.tick("s", [(1, same)])
    flow.tick("s", [(1, other), (2, key)])
    flow.tick("s", DeltaBatch.upserts([(1, same)]))
    flow.tick("s", DeltaBatch.delete_keys([{"k": same, "a": 1}, {"a": 2, "k": key}]))
    assert rows(flow.snapshot("s").select("a")) == [(1,)]
    with pytest.raises(ConstraintViolation) as caught:
        flow.tick("s", DeltaBatch.delete_keys([{"k": same, "a": 1}]))
    assert len(caught.value.keys) == 1
    flow.tick("s", DeltaBatch.delete_keys([{"k": other, "a": 1}]))
    assert flow.snapshot("s").count() == 0
