"""Limits: what one brings is enough for another."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ivm_core.store.limit import ColumnLimit, Limit


def of(column: str, *values: int | None, with_null: bool = False) -> ColumnLimit:
    return ColumnLimit(column, pa.array(values, pa.int64()), with_null)


@pytest.mark.parametrize(
    ("brings", "asks", "is_enough"),
    [
        ([[of("a", 1, 2, 3)]], [[of("a", 2)]], True),
        ([[of("a", 1, 2, 3)]], [[of("a", 2, 4)]], False),
        ([[of("a", 1, 2, 3)]], [[of("b", 2)]], False),
        ([[of("a", 1, 2, 3)]], [[of("a", 2), of("b", 9)]], True),
        ([[of("a", 1, 2), of("b", 9)]], [[of("a", 2)]], False),
        ([[of("a", 1)], [of("b", 9)]], [[of("b", 9)], [of("a", 1)]], True),
        ([[of("a", 1)]], [[of("a", 1)], [of("b", 9)]], False),
        ([[of("a", 1, None)]], [[of("a", 1, with_null=True)]], False),
        ([[of("a", 1, with_null=True)]], [[of("a", 1, None, with_null=True)]], True),
        ([[of("a", 1)]], [[of("a")]], True),
        ([[of("a", 1)]], [], True),
        ([], [[of("a", 1)]], False),
    ],
)
def test_a_limit_covers_what_it_brings(
    brings: list[list[ColumnLimit]], asks: list[list[ColumnLimit]], is_enough: bool
) -> None:
    given, wanted = (Limit(tuple(tuple(part) for part in parts)) for parts in (brings, asks))
    assert given.covers(wanted) is is_enough


def test_values_of_other_types_are_not_compared() -> None:
    texts = ColumnLimit("a", pa.array(["1"]))
    assert not Limit(((of("a", 1),),)).covers(Limit(((texts,),)))
