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

    from pyspark.sql import SparkSession

    from ivm_core import IncrementalFlow


@pytest.fixture
def flows(tmp_path: Path) -> FlowStore:
    return FlowStore(path=str(tmp_path))


def unequal(flow: IncrementalFlow) -> list[str]:
    return [view for view in flow.views if not flow.check(view).equal]


def test_all_of_them_load() -> None:
    shipped = {each.name: load_pipeline(each) for each in pipeline_folders(ROOT / "pipelines")}
    assert {name: len(each.views) for name, each in shipped.items()} == {
        "partner": 3,
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
        for act in (partner.deliver, partner.reprice, partner.renew, partner.correct):
            act()
            for name, source in flow.tick().sources.items():
                if source.rows_in:
                    ways[act.__name__] = (name, source.way)
        assert unequal(flow) == []
    assert ways == {
        "deliver": ("deliveries", "added files"),
        "reprice": ("catalogue", "change data feed"),
        "renew": ("catalogue", "change data feed"),
        "correct": ("deliveries", "snapshot difference: the table has no change data feed"),
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
