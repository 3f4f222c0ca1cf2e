from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ivm_core import DeltaBatch, IncrementalFlow
from tests.flow.shop import rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def told(shop: IncrementalFlow) -> IncrementalFlow:
    shop.tick({"orders": [(1, "ann", 20), (2, "bob", 3)], "customers": [("ann", "Rome")]})
    shop.tick("orders", DeltaBatch.upserts([(2, "ann", 7), (3, "bob", 9)]))
    shop.tick("customers", [("bob", "Oslo")], views=["cities"])
    return shop


def test_an_explanation_has_query_verdicts_and_statements(told: IncrementalFlow) -> None:
    explained = told.explain("totals")
    text = str(explained)
    assert "SUM(`orders`.`amount`)" in explained.normalised.replace(
        "orders.amount", "orders`.`amount"
    )
    assert explained.fingerprint in text
    assert any("aggregate by" in node.node and node.verdict for node in explained.nodes)
    assert all(node.reason for node in explained.nodes)
    assert explained.statements
    assert all("SELECT" in statement for statement in explained.statements)
    for statement in explained.statements:
        assert statement.splitlines()[0].strip() in text
    assert "skipped" in text
    assert "low gear" in str(told.explain("large"))


def test_an_explanation_names_what_is_read_and_how(told: IncrementalFlow) -> None:
    text = str(told.explain("cities"))
    assert "join on" in text
    assert "customers" in text
    assert "totals" in text
    assert "last tick" in text


def test_a_view_without_ticks_is_explained_too(shop: IncrementalFlow) -> None:
    assert shop.explain("large").statements


def test_a_replay_repeats_every_digest(told: IncrementalFlow) -> None:
    replay = told.replay()
    assert replay.equal
    assert replay.first_difference is None
    seen = {(each.tick, each.view) for each in replay.deltas}
    assert seen == {
        *((tick, view) for tick in (1, 2) for view in told.views),
        (3, "totals"),
        (3, "cities"),
    }
    assert {each.tick for each in told.replay(2, 2).deltas} == {2}
    assert told.current_tick == 3


def test_a_replay_of_an_empty_flow_is_equal(flow: IncrementalFlow) -> None:
    assert flow.replay().equal


def tampered(trace: Path, column: str) -> None:
    """Change a column in the newest file of a trace."""
    file = max(trace.glob("t*.parquet"))
    table = pq.read_table(file)
    at = table.column_names.index(column)
    values = [each + ("x" if isinstance(each, str) else 1) for each in table[column].to_pylist()]
    changed = pa.array(values, table.schema.field(column).type)
    pq.write_table(table.set_column(at, table.schema.field(column), changed), file)


@pytest.mark.parametrize(
    ("source", "column", "tampered_at"),
    [("orders", "id", (2, "cities")), ("customers", "city", (3, "cities"))],
)
def test_a_replay_finds_a_source_that_was_tampered_with(
    source: str,
    column: str,
    tampered_at: tuple[int, str],
    place: Path,
    told: IncrementalFlow,
    spark: SparkSession,
) -> None:
    """Batches that can't be repeated, and batches that can but give something else."""
    told.close()
    tampered(place / "sources" / source / "rows", column)
    with IncrementalFlow.open(place, spark) as flow:
        replay = flow.replay()
        assert not replay.equal
        difference = replay.first_difference
        assert difference is not None
        assert (difference.tick, difference.view) == tampered_at
        assert difference.recorded != difference.replayed
        assert bool(difference.problem) == (column == "id")


def test_a_check_finds_a_view_that_was_tampered_with(
    place: Path, told: IncrementalFlow, spark: SparkSession
) -> None:
    told.close()
    tampered(place / "views" / "totals" / "rows", "total")
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.replay().equal
        comparison = flow.check("totals")
        assert not comparison.equal
        assert comparison.missing
        assert comparison.extra
        assert comparison.sample
        assert flow.check("large").equal


def test_a_check_tells_its_tick_and_rows(told: IncrementalFlow) -> None:
    comparison = told.check("large")
    assert (comparison.view, comparison.tick, comparison.rows) == ("large", 2, 1)
    assert comparison.rows == len(rows(told.snapshot("large")))
