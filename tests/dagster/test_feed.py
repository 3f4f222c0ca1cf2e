from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from ivm_core import UserError
from tideview.pipelines import feed
from tideview.pipelines.shop.trade import KEY_WIDTH, Shop
from tideview.resources.inbox import Inbox
from tideview.resources.pipeline_folder import load_pipeline
from tideview.resources.pipeline_spec import Source

if TYPE_CHECKING:
    from pathlib import Path

    from tideview.resources.flow_store import FlowStore


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


def test_an_inbox_loses_nothing_without_a_word(tmp_path: Path) -> None:
    box = Inbox(Source("s", "id BIGINT, _gone STRING", primary_key=["id"]), tmp_path / "s")
    box.append([(1, "a")])  # makes the table, with its change data feed
    assert (
        DeltaTable(str(box.path)).metadata().configuration["delta.enableChangeDataFeed"] == "true"
    )
    box.merge(updates=[(1, "b"), (2, "new")], deletes=[(3, "never there")])
    assert sorted(box.rows()) == [(1, "b"), (2, "new")]
    with pytest.raises(UserError, match=r"keys are given twice: \(1,\)"):
        box.merge(updates=[(1, "c")], deletes=[(1, "b")])
    without = Inbox(Source("t", "id BIGINT"), tmp_path / "t")
    with pytest.raises(UserError, match="the source has none"):
        without.merge(updates=[(1,)], deletes=[])
