"""A view hydrated by replaying the log is the one that is hydrated at one frontier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import DeltaBatch, IncrementalFlow, UserError
from tests.flow.shop import assert_exact, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

BEST = (
    "SELECT c.city, t.customer, t.total FROM totals t JOIN customers c ON t.customer = c.name "
    "WHERE t.total >= 7"
)


def test_both_ways_give_the_same_digest(
    shop: IncrementalFlow, place: Path, tmp_path: Path, spark: SparkSession
) -> None:
    followed = tmp_path / "followed"
    spark.range(3).write.format("delta").save(str(followed))
    shop.register_source("wanted", delta_table=followed)
    shop.tick({"orders": [(1, "ann", 20), (2, "bob", 3)], "customers": [("ann", "Rome")]})
    shop.tick("orders", DeltaBatch.upserts([(2, "ann", 7), (3, "bob", 9)]))
    shop.tick()
    spark.range(9, 10).write.format("delta").mode("append").save(str(followed))
    shop.tick("customers", [("bob", "Oslo")], views=["cities"])
    shop.tick()
    shop.register_view("best", BEST, hydrate=True)
    shop.register_view(
        "ids", "SELECT o.id FROM orders o JOIN wanted w ON o.id = w.id", hydrate=True
    )
    for view, upto in (("best", 6), ("ids", 7)):
        seen: list[int] = []
        found = shop.backfill(
            view, into=tmp_path / view, progress=lambda tick, last, seen=seen: seen.append(tick)
        )
        assert found.equal, found
        assert (found.from_tick, found.to_tick) == (1, upto)
        assert seen == list(range(1, upto + 1))
    with IncrementalFlow.open(tmp_path / "best", spark) as history:
        assert rows(history.snapshot("best", at=1)) == [("Rome", "ann", 20)]
        assert rows(history.snapshot("best", at=3)) == [("Rome", "ann", 27)]
        assert rows(history.snapshot("best")) == rows(shop.snapshot("best"))
        assert_exact(history)
    with IncrementalFlow.open(tmp_path / "ids", spark) as history:
        assert rows(history.snapshot("ids", at=2)) == []
        assert rows(history.snapshot("ids", at=3)) == [(1,), (2,)]
    shop.tick("orders", [(5, "bob", 1)])
    steps: list[int] = []
    again = shop.backfill(
        "best", into=tmp_path / "best", progress=lambda tick, last: steps.append(tick)
    )
    assert again.equal
    assert steps == [7, 8]
    with pytest.raises(UserError, match="inside of each other"):
        shop.backfill("best", into=place)
