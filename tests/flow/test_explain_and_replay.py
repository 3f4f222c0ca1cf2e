from __future__ import annotations

import json
import re
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


def test_an_explanation_is_a_tree_with_keys_state_reads_and_costs(told: IncrementalFlow) -> None:
    told.register_view(
        "least",
        "SELECT c.city, MIN(o.amount) AS m FROM orders o LEFT JOIN customers c "
        "ON o.customer = c.name GROUP BY c.city",
        hydrate=True,
    )
    told.tick("orders", DeltaBatch.delete_keys([2]))
    explained = told.explain("least")
    nodes = {node.node.split(" ")[0]: node for node in explained.nodes}
    assert explained.tree.depth == 0
    aggregate = nodes["aggregate"]
    assert aggregate.verdict == "affected keys only"
    assert aggregate.keys == ("c.city",)
    assert [(each.trace, each.holds) for each in aggregate.state] == [
        ("views/least/node_2/state", "accumulators"),
        ("views/least/node_2/rows", "rows"),
    ]
    assert all(each.stored_rows and each.files for each in aggregate.state)
    assert nodes["left"].steps == ("least#1",)
    [last] = aggregate.last
    assert re.fullmatch(r"least#2: delta, affected keys recomputed, low gear, [\d,]+ ms", last)
    reads = {(each.relation, each.how) for step in explained.steps for each in step.reads}
    assert ("customers", "limited") in reads
    assert ("orders", "full") in reads  # by city, which no column of orders is
    [scan] = [node for node in explained.nodes if node.node == "scan orders"]
    assert scan.verdict == "read in full"
    assert [cost.tick for cost in explained.last] == [told.current_tick]
    assert explained.last[0].duration_ms > 0
    assert [cost.skipped for cost in told.explain("totals").last] == [False]


def test_an_explanation_is_json(told: IncrementalFlow) -> None:
    explained = told.explain("totals")
    content = json.loads(explained.to_json())
    assert content == explained.to_dict()
    assert set(content) == {
        "format",
        "view",
        "key",
        "origins",
        "fingerprint",
        "require",
        "verdict",
        "incremental",
        "normalised",
        "tree",
        "steps",
        "last",
        "why_not",
    }
    assert set(content["tree"]) == {
        "node",
        "verdict",
        "reason",
        "keys",
        "steps",
        "state",
        "reads",
        "last",
        "shared_with",
        "inputs",
    }
    assert [each["step"] for each in content["steps"]] == ["totals#1", "totals"]
    assert [each["tick"] for each in content["last"]] == [3, 2]
    assert [each["skipped"] for each in content["last"]] == [True, False]


def test_sql_is_explained_without_being_registered(told: IncrementalFlow) -> None:
    explained = told.explain(sql="SELECT city, COUNT(*) AS n FROM cities GROUP BY city")
    assert explained.view == "this query"
    assert explained.last == ()
    assert explained.statements
    assert told.views == ("large", "totals", "cities")


def test_a_query_that_is_read_twice_is_explained_once(told: IncrementalFlow) -> None:
    levels = ["a AS (SELECT customer AS c, COUNT(*) AS n FROM orders GROUP BY customer)"]
    for name, below in zip("bc", "ab", strict=True):
        query = f"SELECT x.c, x.n + y.n AS n FROM {below} x JOIN {below} y ON x.c = y.c"
        levels.append(f"{name} AS ({query})")
    explained = told.explain(sql=f"WITH {', '.join(levels)} SELECT c, n FROM c")
    assert len([node for node in explained.nodes if node.node == "scan orders"]) == 1
    assert any(node.node.endswith(", as above") for node in explained.nodes)


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
        cities = {(row["city"], row["_weight"]) for row in difference.sample}
        assert cities == (set() if column == "id" else {("Oslo", 1), ("Oslox", -1)})


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
