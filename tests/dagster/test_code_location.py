"""The code location as Dagster loads it, in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dagster import AssetKey, BackfillPolicy, DagsterInstance

from tests.dagster.conftest import DECLARATION, VIEWS, write_pipeline
from tideview.assets.view_assets import tick_assets
from tideview.pipelines import ui
from tideview.resources.pipeline_folder import load_pipeline

if TYPE_CHECKING:
    from dagster import Definitions

ROOT = Path(__file__).resolve().parents[2]

LOADS_AND_LOOKS = """
import json
import psutil
from dagster import DagsterInstance, Definitions, build_sensor_context
from tideview.pipelines.definitions import defs
from tideview.pipelines.feed import main as feed

Definitions.validate_loadable(defs)
feed(["--times", "1", "--every", "0", "--seed", "3"])
sensor = defs.resolve_sensor_def("shop_sources")
with (
    DagsterInstance.ephemeral() as instance,
    build_sensor_context(instance, resources={"flows": defs.resources["flows"]}) as context,
):
    requests = sensor.evaluate_tick(context).run_requests
from pyspark import SparkContext
children = [child.name() for child in psutil.Process().children(recursive=True)]
gateway = SparkContext._gateway is not None
print(json.dumps({"keys": [r.run_key for r in requests], "children": children, "jvm": gateway}))
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "TIDEVIEW_STORE": str(tmp_path), "DAGSTER_HOME": ""}


def test_dagster_validates_the_workspace(environment: dict[str, str], tmp_path: Path) -> None:
    validated = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"],
        cwd=ROOT,
        env={**environment, "DAGSTER_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert validated.returncode == 0, validated.stderr
    assert "All code locations passed validation" in validated.stderr + validated.stdout


def test_loading_and_sensing_start_no_jvm(environment: dict[str, str]) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LOADS_AND_LOOKS],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["children"] == []
    assert found["jvm"] is False
    [key] = found["keys"]
    assert key.startswith("after tick 0: customers@")


def test_assets_come_from_the_sql(defs: Definitions) -> None:
    graph = defs.resolve_asset_graph()
    sources = {AssetKey(["till", name]) for name in ("sales", "cities")}
    views = {AssetKey(["till", name]) for name in VIEWS}
    replay = AssetKey(["till", "history", "replay"])
    assert graph.get_all_asset_keys() == sources | views | {replay}
    assert graph.external_asset_keys == sources
    totals, big = (graph.get(AssetKey(["till", name])) for name in ("totals", "big"))
    assert totals.parent_keys == {AssetKey(["till", "sales"])}
    assert big.parent_keys == {totals.key}
    assert totals.group_name == "till"
    assert totals.kinds == {"spark", "delta", "sql"}
    assert totals.description is not None
    assert totals.description.startswith("What each has spent.")
    assert "```sql" in totals.description
    assert {key.asset_key for key in graph.asset_check_keys} == views | {replay}
    assert graph.get(replay).partitions_def is not None
    assert graph.get(replay).backfill_policy == BackfillPolicy.single_run()
    assert totals.partitions_def is None
    assert totals.pools == {"tideview_till"}
    assert totals.metadata["dagster/table_name"] == "till.totals"


def test_code_versions_follow_the_meaning_of_the_sql(tmp_path: Path) -> None:
    def versions(folder: str, declaration: str, **changed: str) -> dict[str, str | None]:
        written = write_pipeline(tmp_path / folder, declaration, {**VIEWS, **changed})
        specs = tick_assets(load_pipeline(written)).specs
        return {spec.key.path[-1]: spec.code_version for spec in specs}

    first = versions("first", DECLARATION)
    reworded = "-- Large.\nselect customer,\n  total\nfrom TOTALS where total >= 10"
    assert versions("cosmetic", DECLARATION, big=reworded) == first
    aliased = (
        "WITH t AS (SELECT x.customer, x.total FROM totals x) SELECT * FROM t WHERE total >= 10"
    )
    assert versions("aliased", DECLARATION, big=aliased) == first
    renamed = versions(
        "renamed", DECLARATION, big=VIEWS["big"].replace("total FROM", "total t FROM")
    )
    assert renamed["big"] != first["big"]
    stricter = versions("stricter", DECLARATION, big=VIEWS["big"].replace("10", "11"))
    assert stricter["big"] != first["big"]
    assert stricter["totals"] == first["totals"]
    wider = versions("wider", DECLARATION.replace("DECIMAL(12,2)", "DECIMAL(14,2)"))
    assert wider["totals"] != first["totals"]
    assert wider["places"] == first["places"]


def test_the_sample_settings_make_an_instance(tmp_path: Path) -> None:
    ui._prepare(tmp_path)
    (tmp_path / "dagster.yaml").write_text((tmp_path / "dagster.yaml").read_text() + "\n# mine\n")
    ui._prepare(tmp_path)
    assert (tmp_path / "dagster.yaml").read_text().endswith("# mine\n")
    with DagsterInstance.from_config(str(tmp_path)) as instance:
        concurrency = instance.get_concurrency_config()
        assert concurrency.pool_config.default_pool_limit == 1
        assert concurrency.run_queue_config is not None
        assert concurrency.run_queue_config.max_concurrent_runs == 2
        assert instance.run_monitoring_enabled
        assert instance.get_settings("freshness") == {"enabled": True}
        assert not instance.nux_enabled
        assert not instance.telemetry_enabled
