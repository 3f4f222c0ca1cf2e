"""Replays into a shadow that is kept: stopped and gone on with, beside live ticks, refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import DeltaBatch, IncrementalFlow, UserError
from tests.faults.story import killed_at
from tests.flow.shop import assert_exact, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_a_replay_is_stopped_and_gone_on_with_beside_live_ticks(
    shop: IncrementalFlow, place: Path, tmp_path: Path, spark: SparkSession
) -> None:
    shop.tick({"orders": [(1, "ann", 20), (2, "bob", 3)], "customers": [("ann", "Rome")]})
    shop.tick("orders", DeltaBatch.upserts([(2, "ann", 7), (3, "bob", 9)]))
    shop.rename_view("large", "big")
    shop.tick("customers", [("bob", "Oslo")], views=["cities"])
    shop.alter_view("big", "SELECT id, customer FROM orders WHERE amount >= 8")
    into = tmp_path / "shadow"
    seen: list[int] = []

    def ticking(tick: int, last: int) -> None:
        """The flow goes on meanwhile: the replay is of the ticks that were there."""
        assert last == 4
        seen.append(tick)
        shop.tick("orders", [(10 + tick, "eve", tick)])

    stopped: list[int] = []

    reader = IncrementalFlow.open(place, spark, read_only=True)
    with killed_at(140):
        reader.replay(into=into, progress=lambda tick, last: stopped.append(tick))
    assert 1 < stopped[-1] < 4
    found = reader.replay(to_tick=4, into=into, progress=ticking)
    assert found.equal
    assert found.first_difference is None
    assert {each.tick for each in found.deltas} == {1, 2, 3, 4}
    # a tick that had begun was finished when the shadow was opened
    assert seen in ([*range(stopped[-1], 5)], [*range(stopped[-1] + 1, 5)])
    newest = shop.current_tick
    again = reader.replay(from_tick=5, into=into)
    assert again.equal
    assert {each.tick for each in again.deltas} == set(range(5, newest + 1))
    with IncrementalFlow.open(into, spark) as shadow:
        assert shadow.current_tick == newest
        assert rows(shadow.snapshot("cities")) == rows(shop.snapshot("cities"))
        assert_exact(shadow)
    assert_exact(shop)


def test_a_replay_has_what_was_defined_by_its_last_tick(
    shop: IncrementalFlow, tmp_path: Path, spark: SparkSession
) -> None:
    shop.tick({"orders": [(1, "ann", 20), (2, "bob", 3)], "customers": [("ann", "Rome")]})
    shop.tick("orders", [(3, "bob", 12)])
    before = rows(shop.snapshot("large"))
    shop.alter_view("large", "SELECT id, customer FROM orders WHERE amount < 10")
    shop.register_view("late", "SELECT name FROM customers")
    shop.rename_view("totals", "sums")
    shop.tick("orders", [(4, "cy", 1)])
    into = tmp_path / "shadow"
    assert shop.replay(to_tick=2, into=into).equal
    with IncrementalFlow.open(into, spark) as shadow:
        assert (shadow.current_tick, shadow.views) == (2, ("large", "totals", "cities"))
        assert rows(shadow.snapshot("large")) == before
        assert_exact(shadow)
    assert shop.replay(into=into).equal
    assert shop.replay(to_tick=2, into=into).equal
    with IncrementalFlow.open(into, spark) as shadow:
        assert shadow.current_tick == shop.current_tick
        assert set(shadow.views) == set(shop.views)
        assert_exact(shadow)


def test_a_replay_into_something_else_is_refused(
    shop: IncrementalFlow, place: Path, tmp_path: Path, spark: SparkSession
) -> None:
    shop.tick("orders", [(1, "ann", 20)])
    (tmp_path / "link").symlink_to(place)
    for entwined in (place, place / "views" / "more", tmp_path / "link", tmp_path):
        with pytest.raises(UserError, match="inside of each other"):
            shop.replay(into=entwined)
        with pytest.raises(UserError, match="inside of each other"):
            shop.backfill("totals", into=entwined)
    with IncrementalFlow.open(tmp_path / "other", spark) as other:
        other.register_source("orders", "x INT")
    with pytest.raises(UserError, match="no replay of this flow"):
        shop.replay(into=tmp_path / "other")
    with IncrementalFlow.open(tmp_path / "other", spark) as other:
        assert other.sources == ("orders",)
        assert other.current_tick == 0
