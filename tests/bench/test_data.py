"""Data and changes follow from numbers and seeds, and keys are what the programs rely on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bench.nexmark.generate import SCHEMAS, Nexmark
from bench.nexmark.program import queries
from bench.numbers import below, share
from bench.spark_costs import covered
from bench.tpch.changes import KINDS, Changes
from bench.tpch.first_rows import without_limit
from bench.tpch.generate import tables
from bench.tpch.queries import queries as tpch_queries
from bench.tpch.stock import Held
from bench.warehouse import Warehouse


def test_nexmark_does_not_depend_on_how_events_are_cut() -> None:
    site = Nexmark()
    whole = site.events(0, 3_000)
    parts = [site.events(first, min(first + 700, 3_000)) for first in range(0, 3_000, 700)]
    for name in SCHEMAS:
        assert pa.concat_tables([part[name] for part in parts]).equals(whole[name])


def test_nexmark_has_the_proportions_and_references_of_its_description() -> None:
    made = Nexmark().events(0, 5_000)
    assert [made[name].num_rows for name in ("person", "auction", "bid")] == [100, 300, 4_600]
    for name in ("person", "auction"):
        ids = made[name]["id"].to_pylist()
        assert ids == list(range(1_000, 1_000 + len(ids)))
    known = pa.array(range(1_000, 1_300))
    assert pc.all(pc.is_in(made["bid"]["auction"], known)).as_py()
    assert pc.min(made["bid"]["price"]).as_py() >= 100
    assert pc.all(pc.greater(made["auction"]["expires"], made["auction"]["date_time"])).as_py()


def test_another_seed_gives_other_events() -> None:
    one, other = (Nexmark(seed).events(0, 500)["bid"] for seed in (1, 2))
    assert not one.equals(other)


def test_nexmark_has_all_queries_but_the_one_without_a_result() -> None:
    assert list(queries()) == [f"q{n}" for n in range(23) if n != 12]
    assert list(queries(("q3", "q8"))) == ["q3", "q8"]


def test_numbers_stay_within_their_limits() -> None:
    keys = np.arange(10_000)
    found = below(keys, 5, 7)
    assert set(found.tolist()) == set(range(7))
    assert 0 <= share(keys, 5).min() < share(keys, 5).max() < 1
    assert not np.array_equal(below(keys, 5, 1_000), below(keys, 6, 1_000))


def held() -> Held:
    made = tables(0.001)
    orders = made["orders"]
    return Held(made, len(orders), orders["o_orderkey"][-1].as_py(), (0, len(orders)))


@pytest.mark.parametrize("kind", KINDS)
def test_changes_to_orders_fit_what_is_there(kind: str) -> None:
    stock = held()
    changes = Changes(stock, 0.02)
    alive = set(stock.tables["orders"]["o_orderkey"].to_pylist())
    for where in ("clustered", "scattered", "clustered"):
        batch = changes.next(where, kind=kind)["orders"]
        gone = batch.filter(pc.less(batch["_weight"], 0))["o_orderkey"].to_pylist()
        come = batch.filter(pc.greater(batch["_weight"], 0))["o_orderkey"].to_pylist()
        assert set(gone) <= alive
        alive -= set(gone)
        assert not set(come) & alive
        alive |= set(come)
        assert len(set(come)) == len(come)
        if kind == "inserts":
            assert not gone
            assert len(come) == 2 * changes.orders
        if kind == "join keys":
            assert sorted(gone) == sorted(come)


def test_a_changed_join_key_keeps_the_rest_of_the_row() -> None:
    batch = Changes(held(), 0.02).next("scattered", kind="join keys")["orders"]
    rest = [name for name in batch.column_names if name not in ("o_custkey", "_weight")]
    before, after = (
        batch.filter(pc.equal(batch["_weight"], weight)).select(rest) for weight in (-1, 1)
    )
    assert before.equals(after)


def test_orders_of_a_large_scale_are_drawn_from_their_sample() -> None:
    made = tables(0.001)
    first, behind = 100, 400
    stock = Held(made, 10_000, 99_999, (first, behind))
    neighbours = set(made["orders"]["o_orderkey"].to_pylist()[first:behind])
    changes = Changes(stock, 0.002)
    assert changes.orders == 10
    for where in ("clustered", "scattered"):
        batch = changes.next(where)["orders"]
        gone = set(batch.filter(pc.less(batch["_weight"], 0))["o_orderkey"].to_pylist())
        assert gone <= neighbours if where == "clustered" else not gone & neighbours


def test_the_warehouse_has_ten_views_staging_first() -> None:
    warehouse = Warehouse(100)
    levels = [name.split("_")[0] for name in warehouse.views]
    assert len(levels) == 10
    assert levels == sorted(levels, key=["stg", "fct", "mart"].index)
    assert warehouse.tables()["raw_order_lines"].num_rows == 300


def test_spans_of_time_are_counted_once() -> None:
    assert covered([]) == 0
    assert covered([(0, 10), (5, 12), (20, 21), (22, 21)]) == 13


def test_every_limited_query_of_tpch_is_ordered_by_its_columns() -> None:
    limited = {name: without_limit(sql) for name, sql in tpch_queries(1.0).items()}
    ordered = {name: order for name, (order, _) in limited.items() if order}
    assert set(ordered) == {"q02", "q03", "q10", "q18", "q21"}
    assert ordered["q03"] == ["revenue", "o_orderdate"]
    assert "LIMIT" not in limited["q03"][1]
