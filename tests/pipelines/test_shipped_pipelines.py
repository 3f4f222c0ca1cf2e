"""The pipelines that ship, run as they are on what their traders do, against Spark's recompute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import UserError
from tests.processes import ROOT
from tideview.pipelines.feed import main as feed
from tideview.pipelines.partner.trade import Partner
from tideview.pipelines.warehouse.trade import Export
from tideview.resources.flow_store import FlowStore
from tideview.resources.pipeline_folder import load_pipeline, pipeline_folders

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from ivm_core import IncrementalFlow


@pytest.fixture
def flows(tmp_path: Path) -> FlowStore:
    return FlowStore(path=str(tmp_path))


def unequal(flow: IncrementalFlow) -> list[str]:
    return [view for view in flow.views if not flow.check(view).equal]


def pairs(frame: DataFrame) -> set[tuple[int, int]]:
    return {(row.item_id, row.part_id) for row in frame.collect()}


def contained(flow: IncrementalFlow) -> set[tuple[int, int]]:
    return pairs(flow.snapshot("contains"))


def by_hand(flow: IncrementalFlow) -> set[tuple[int, int]]:
    """Parts of parts, level by level."""
    direct = pairs(flow.snapshot("parts"))
    found, level = set(direct), set(direct)
    while level:
        level = {(item, part) for item, within in level for of, part in direct if of == within}
        level -= found
        found |= level
    return found


def test_all_of_them_load() -> None:
    shipped = {each.name: load_pipeline(each) for each in pipeline_folders(ROOT / "pipelines")}
    assert {name: len(each.views) for name, each in shipped.items()} == {
        "partner": 5,
        "shop": 7,
        "warehouse": 10,
    }
    groups = {view.group for view in shipped["warehouse"].views}
    assert groups == {"warehouse_staging", "warehouse_facts", "warehouse_marts"}


def test_a_partners_tables_are_followed(flows: FlowStore, spark: SparkSession) -> None:
    pipeline = load_pipeline(ROOT / "pipelines" / "partner")
    partner = Partner(flows.tables(pipeline), seed=3)
    with pytest.raises(UserError, match="catalogue"), flows.open(pipeline, spark):
        pass
    partner.open(items=12, deliveries=30)
    ways = {}
    with flows.open(pipeline, spark) as flow:
        flow.tick()
        acts = (
            partner.deliver,
            partner.reprice,
            partner.renew,
            partner.correct,
            partner.redesign,
        )
        for act in acts:
            act()
            for name, source in flow.tick().sources.items():
                if source.rows_in:
                    ways[act.__name__] = (name, source.way)
        assert unequal(flow) == []
        assert contained(flow) == by_hand(flow)
    assert ways == {
        "deliver": ("deliveries", "added files"),
        "reprice": ("catalogue", "change data feed"),
        "renew": ("catalogue", "change data feed"),
        "correct": ("deliveries", "snapshot difference: the table has no change data feed"),
        "redesign": ("parts", "change data feed"),
    }


@pytest.mark.nightly
def test_ten_views_of_a_warehouse(flows: FlowStore, spark: SparkSession) -> None:
    pipeline = load_pipeline(ROOT / "pipelines" / "warehouse")
    export = Export(flows.inboxes(pipeline), seed=5)
    export.open(customers=8, orders=20)
    with flows.open(pipeline, spark) as flow:
        flow.tick()
        for _ in range(3):
            export.trade()
        assert not export.send_again()
        flow.tick()
        assert unequal(flow) == []
    assert (
        feed(["--store", flows.path, "--pipeline", "warehouse", "--every", "0", "--times", "1"])
        == 0
    )
