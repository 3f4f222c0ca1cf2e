"""What is around a change in an order, against counting rows one by one."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from ivm_core.engine.around import around
from ivm_core.operators.window_extent import Extent

if TYPE_CHECKING:
    from ivm_core.engine.around import Around

Rows = list[int | None]


def table(keys: Rows, weights: list[int] | None = None) -> pa.Table:
    given = weights if weights is not None else [1] * len(keys)
    return pa.table({"k": pa.array(keys, pa.int64()), "_weight": pa.array(given, pa.int64())})


def found(known: Rows, came: Rows, gone: Rows, extent: Extent) -> Around:
    change = table([*came, *gone], [1] * len(came) + [-1] * len(gone))
    return around(table(known), change, "k", extent)


def test_a_row_that_comes_reaches_as_far_as_frames_look() -> None:
    extent = Extent("k", descending=False, nulls_first=True, behind=2, ahead=1)
    one = found([10, 20, 30, 40, 50, 60, 70, 80], [45], [], extent)
    assert one.reached.to_pylist() == [40, 45, 50, 60]
    assert one.near.to_pylist() == [20, 30, 40, 45, 50, 60, 70]


def test_a_running_total_goes_on_from_the_last_row_before() -> None:
    extent = Extent("k", descending=True, nulls_first=False, carried=(("s", "sum"),))
    one = found([10, 20, 30, 30, None], [], [20], extent)
    assert one.reached.to_pylist() == one.near.to_pylist() == [20, 10, None]
    assert (one.last.to_pylist(), one.before) == ([30], 2)
    first = found([10, 20], [99], [], extent)
    assert (first.last.to_pylist(), first.before) == ([], 0)


@pytest.mark.parametrize("seed", range(60))
def test_no_frame_that_changes_is_left_out(seed: int) -> None:
    chance = random.Random(seed)
    behind, ahead = chance.randint(0, 3), chance.randint(0, 3)
    extent = Extent("k", descending=False, nulls_first=True, behind=behind, ahead=ahead)
    old = sorted(chance.choices(range(40), k=chance.randint(1, 30)))
    gone = chance.sample(old, chance.randint(0, min(3, len(old))))
    came = chance.choices(range(40), k=chance.randint(0 if gone else 1, 3))
    new = list(old)
    for key in gone:
        new.remove(key)
    new = sorted(new + came)
    one = found(list(old), list(came), list(gone), extent)
    reached, near = set(one.reached.to_pylist()), set(one.near.to_pylist())
    assert {*came, *gone} <= reached <= near

    def frames(rows: list[int]) -> dict[int, list[list[int]]]:
        """Of every key, the frames of its rows."""
        made: dict[int, list[list[int]]] = {}
        for place, key in enumerate(rows):
            made.setdefault(key, []).append(rows[max(0, place - behind) : place + ahead + 1])
        return made

    before, after, kept = frames(old), frames(new), frames([key for key in new if key in near])
    for key in {*old, *new}:
        if key in reached:
            assert kept.get(key) == after.get(key), f"the frames of {key} are cut off"
        else:
            assert before[key] == after[key], f"the frames of {key} change"
