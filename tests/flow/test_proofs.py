"""Proofs of a flow that cost less than a whole replay: some ticks, some keys, the digests alone."""

from __future__ import annotations

import copy
import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark import TaskContext

from ivm_core import DeltaBatch, IncrementalFlow, SourceReplaced, UnknownName, UserError
from tests.flow.shop import declare_shop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def told(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Iterator[IncrementalFlow]:
    with IncrementalFlow.open(tmp_path_factory.mktemp("proofs") / "flow", spark) as shop:
        declare_shop(shop)
        fill(shop)
        yield shop


def fill(shop: IncrementalFlow) -> None:
    shop.register_view(
        "ranked",
        "SELECT customer, id, row_number() OVER (PARTITION BY customer ORDER BY amount) AS place, "
        "collect_list(id) OVER (PARTITION BY customer) AS ids FROM orders",
    )
    shop.tick({"orders": [(1, "ann", 20), (2, "bob", 3)], "customers": [("ann", "Rome")]})
    shop.tick("orders", DeltaBatch.upserts([(2, "ann", 7), (3, "bob", 9), (4, "cy", 9)]))
    shop.tick("customers", [("bob", "Oslo")], views=["cities"])
    shop.tick("orders", DeltaBatch.upserts([(5, "bob", 9), (6, "cy", 2)]))


@pytest.fixture
def forged(told: IncrementalFlow, tmp_path: Path, spark: SparkSession) -> Iterator[IncrementalFlow]:
    """A copy in which the newest row of cy was changed behind the flow's back."""
    copied = shutil.copytree(told._engine.layout.root.path, tmp_path / "flow")
    forge(copied, "totals", "n", {"cy": 77})
    with IncrementalFlow.open(copied, spark, read_only=True) as flow:
        yield flow


def test_some_ticks_are_replayed_from_the_rows_before_them(told: IncrementalFlow) -> None:
    ticks: list[int] = []
    found = told.replay(4, hydrated=True, progress=lambda tick, _: ticks.append(tick))
    assert found.equal
    assert found.hydrated_at == 2  # after tick 3 views lagged behind
    assert ticks == [3, 4]
    assert {each.tick for each in found.deltas} == {4}
    assert {each.view for each in found.deltas} == {"large", "totals", "cities", "ranked"}


def test_order_and_partitions_of_rows_show_in_no_digest(told: IncrementalFlow) -> None:
    found = told.replay(1, scattered=True)
    assert found.equal, found.first_difference
    assert len(found.deltas) == 4 * 3 + 2


def test_what_depends_on_partitions_is_found(flow: IncrementalFlow) -> None:
    def part(value: int) -> int:
        context = TaskContext.get()
        return value if context is None else context.partitionId()

    flow.register_source("numbers", "n BIGINT")
    flow.register_function("part", part, "BIGINT", deterministic=True)  # which is a lie
    flow.register_view("parts", "SELECT n, part(n) AS p FROM numbers")
    flow.tick("numbers", [(n,) for n in range(40)])
    assert flow.replay(1).equal
    found = flow.replay(1, scattered=True)
    assert not found.equal
    assert found.first_difference is not None
    assert found.first_difference.view == "parts"
    assert all("p" in row and row["_weight"] for row in found.first_difference.sample)
    assert found.first_difference.sample


def test_a_shard_of_keys_is_compared_by_itself(
    told: IncrementalFlow, forged: IncrementalFlow
) -> None:
    parts = 3
    assert all(told.check("totals", shard=(part, parts)).equal for part in range(parts))
    found = [forged.check("totals", shard=(part, parts)) for part in range(parts)]
    [wrong] = [each for each in found if not each.equal]
    assert (wrong.missing, wrong.extra) == (1, 1)
    assert {row["customer"] for row in wrong.sample} == {"cy"}
    assert [each.shard for each in found] == [(0, parts), (1, parts), (2, parts)]
    for shard in ((5, 5), (-1, 2), (True, 2), (0.5, 2), (1,), "half"):
        with pytest.raises(UserError, match="not a part of so many"):
            told.check("totals", shard=shard)  # type: ignore[arg-type]


def test_certificates_add_up(told: IncrementalFlow, forged: IncrementalFlow) -> None:
    for view, ticks in (("totals", 4), ("ranked", 3)):
        chain = told.check_chain(view)
        assert chain.equal
        assert chain.rows_read
        assert (chain.ticks, chain.newest) == (ticks, 4)
    changed = told.tick_change("totals")
    assert changed.column_names == ["customer", "n", "total", "_weight"]
    assert sorted(changed["_weight"].to_pylist()) == [-1, -1, 1, 1]

    broken = forged.check_chain("totals")
    assert broken.broken_at == 4
    assert "the stored rows of its change have the digest" in broken.problem
    assert {row["customer"] for row in broken.sample} == {"bob", "cy"}
    commits = forged._engine.history.commits
    wrong = copy.deepcopy(commits[4])
    wrong["views"]["totals"]["digest"] = "0" * 31 + "1"
    commits[4] = wrong
    broken = forged.check_chain("totals")
    assert broken.broken_at == 4
    assert "add up to the digest" in broken.problem


def test_a_chain_begins_anew_with_other_columns(flow: IncrementalFlow) -> None:
    declare_shop(flow)
    flow.tick("orders", [(1, "ann", 20), (2, "bob", 9)])
    flow.alter_view("large", "SELECT id, customer, amount FROM orders WHERE amount >= 9")
    assert flow.view_sql("large").endswith(">= 9")
    flow.tick("orders", [(3, "cy", 9)])
    chain = flow.check_chain("large")
    assert chain.equal
    assert chain.ticks == 3


def forge(place: Path, view: str, column: str, values: dict[str, int]) -> None:
    """Give the newest rows of some customers another value, behind the flow's back."""
    files = sorted((place / "views" / view / "rows").glob("*.parquet"))
    for file in files:
        rows = pq.read_table(file)
        place_of = rows.schema.get_field_index(column)
        triples = zip(
            rows["customer"].to_pylist(),
            rows[column].to_pylist(),
            rows["_tick"].to_pylist(),
            rows["_weight"].to_pylist(),
            strict=True,
        )
        forged = [
            values[name] if name in values and tick == 4 and weight > 0 else value
            for name, value, tick, weight in triples
        ]
        kind = rows.schema.field(column).type
        pq.write_table(rows.set_column(place_of, column, pa.array(forged, kind)), file)


def test_what_nobody_reads_any_more_is_in_the_way_of_no_replay(
    flow: IncrementalFlow, tmp_path: Path
) -> None:
    for name in ("former", "next"):
        write_deltalake(str(tmp_path / name), pa.table({"n": [1, 2]}))
        flow.register_source(name, delta_table=tmp_path / name)
    flow.register_source("fed", "n BIGINT")
    flow.register_view("apart", "SELECT n + 1 AS n FROM fed")
    flow.register_view("kept", "SELECT n * 2 AS n FROM former")
    flow.tick()
    shutil.rmtree(tmp_path / "former")
    write_deltalake(str(tmp_path / "former"), pa.table({"n": [7]}))
    flow.tick("fed", [(2,)], views=["apart"])
    with pytest.raises(SourceReplaced):
        flow.replay(2, hydrated=True)
    alone = flow.replay(2, hydrated=True, views=["apart"])
    assert alone.equal
    assert alone.hydrated_at == 1
    assert {(each.tick, each.view) for each in alone.deltas} == {(2, "apart")}
    flow.alter_view("kept", "SELECT n * 2 AS n FROM next")
    flow.tick("fed", [(3,)])
    flow.tick("fed", [(4,)])
    found = flow.replay(flow.current_tick, hydrated=True)
    assert found.equal
    assert {each.view for each in found.deltas} == {"apart", "kept"}
    assert flow.replay(2, hydrated=True, views=["apart"]).equal
    with pytest.raises(UnknownName, match="no view 'gone'"):
        flow.replay(2, views=["gone"])
