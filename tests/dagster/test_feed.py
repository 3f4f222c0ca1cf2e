from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable

from tideview.pipelines import feed
from tideview.pipelines.shop.trade import KEY_WIDTH, Shop
from tideview.resources.pipeline_folder import load_pipeline

if TYPE_CHECKING:
    import pytest

    from tideview.resources.flow_store import FlowStore
    from tideview.resources.inbox import Inbox


def test_changes_lead_from_the_old_rows_to_the_new_ones() -> None:
    shop = Shop(seed=7)
    copies: dict[str, dict[tuple[object, ...], object]] = {name: {} for name in KEY_WIDTH}
    shop.open(12, 30)
    for _ in range(20):
        for name, changes in shop.take_changes().items():
            copy, width = copies[name], KEY_WIDTH[name]
            for row in changes.deletes:
                assert copy.pop(row[:width]) == row
            for row in changes.updates:
                assert copy[row[:width]] != row
                copy[row[:width]] = row
            for row in changes.inserts:
                assert copy.setdefault(row[:width], row) is row
        for name, copy in copies.items():
            assert set(copy.values()) == set(shop.rows(name))
        shop.some_day()
        shop.forget(1)


def test_the_same_seed_trades_alike() -> None:
    first, second, other = Shop(seed=1), Shop(seed=1), Shop(seed=2)
    for shop in (first, second, other):
        shop.open(5, 10)
        shop.some_day()
    assert first.take_changes() == second.take_changes() != other.take_changes()


def test_the_feeder_goes_on_from_what_is_in_the_inboxes(
    flows: FlowStore, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--store", flows.path, "--every", "0", "--seed", "4"]
    assert feed.main([*arguments, "--times", "3"]) == 0
    assert "the shop opens" in capsys.readouterr().out
    inboxes = flows.inboxes(load_pipeline(feed.SHOP))
    orders = {row[0] for row in inboxes["orders"].rows()}
    before = inboxes["orders"].version
    assert feed.main([*arguments, "--times", "2"]) == 0
    assert "the shop is open already" in capsys.readouterr().out
    assert {row[0] for row in inboxes["orders"].rows()} > orders
    assert inboxes["orders"].version.table_id == before.table_id
    assert inboxes["orders"].version.version > before.version


def test_an_inbox_has_a_change_data_feed(inboxes: dict[str, Inbox]) -> None:
    cities = inboxes["cities"]
    cities.merge([("ada", "Delft")], [("ben", "Lund")])
    assert cities.rows() == [("ada", "Delft")]
    table = DeltaTable(str(cities.path))
    changes = pa.RecordBatchReader.from_stream(table.load_cdf(table.version())).read_all()
    assert sorted(
        zip(changes["_change_type"].to_pylist(), changes["city"].to_pylist(), strict=True)
    ) == [("delete", "Lund"), ("update_postimage", "Delft"), ("update_preimage", "Lund")]
