"""`make ui` as its user has it: web server, daemon, feeder, runs that nobody asked for, a browser.

The pictures that it takes are those of the docs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.dagster.browser import Browser, chromium
from tests.dagster.serving import free_port, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
RUNS = "{runsOrError {... on Runs {results {runId status tags {key value}}}}}"
CHECKS = """{assetNodes {assetKey {path} assetChecksOrError {... on AssetChecks {checks
  {name executionForLatestMaterialization {status}}}}}}"""
CANCEL = """mutation Cancel($run: String!) {terminateRun(runId: $run, terminatePolicy: SAFE_TERMINATE)
  {__typename}}"""
DIALOG = "[class*=dialog i]"


@pytest.fixture
def ui(tmp_path: Path) -> Iterator[int]:
    """The port of a web interface with everything that belongs to it."""
    chromium()
    port = free_port()
    command = [sys.executable, "-m", "tideview.pipelines.ui", "--port", str(port), "--every", "20"]
    store = {"TIDEVIEW_STORE": str(tmp_path / "store"), "DAGSTER_HOME": str(tmp_path / "home")}
    process = subprocess.Popen(command, env={**os.environ, **store})
    yield port
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 0
    _, left = psutil.wait_procs(children, timeout=90)
    assert left == []


@pytest.mark.nightly
def test_the_first_ten_minutes(ui: int, tmp_path: Path) -> None:
    wait_until(lambda: len(runs(ui, "SUCCESS")) >= 2, "two runs that the sensor asked for")
    assert not runs(ui, "FAILURE")
    asked_by = {
        tag["value"] for run in runs(ui, "SUCCESS") for tag in run["tags"] if "sensor" in tag["key"]
    }
    assert asked_by == {"shop_sources"}
    with Browser(tmp_path) as browser:
        tour(browser, ui)
        wait_until(lambda: replays(ui, "SUCCESS"), "a replay that was launched from the UI")
        browser.go(f"http://127.0.0.1:{ui}/assets/shop/history/replay?view=checks")
        browser.wait_for("same_digests", "Passed")
        browser.picture(PICTURES / "replay.png")

    # a run that is cancelled in the middle leaves the flow whole, and the next one goes on
    wait_until(lambda: ticks(ui, "STARTED"), "a run to cancel")
    cancelled = ticks(ui, "STARTED")[0]["runId"]
    ask(ui, CANCEL, run=cancelled)
    done = len(ticks(ui, "SUCCESS"))
    wait_until(lambda: not ticks(ui, "STARTED", "CANCELING"), "the end of the cancelled run")
    wait_until(lambda: len(ticks(ui, "SUCCESS")) > done, "a run after the cancelled one")
    statuses = {
        (node["assetKey"]["path"][-1], check["name"]): check["executionForLatestMaterialization"]
        for node in ask(ui, CHECKS)["assetNodes"]
        if node["assetKey"]["path"][0] == "shop"
        for check in node["assetChecksOrError"].get("checks", ())
    }
    assert len(statuses) == 7 * 3 + 1
    failed = [key for key, found in statuses.items() if found and found["status"] == "FAILED"]
    assert failed == []


def tour(browser: Browser, port: int) -> None:
    """What a new user looks at, and in the end a backfill that is launched."""
    address = f"http://127.0.0.1:{port}"
    graph = f"{address}/asset-groups/{{}}?expanded=global%40global:shop"
    browser.go(graph.format(""))
    browser.wait_for("order_items", "daily_orders", "best_sellers")
    upstream = "view=lineage&lineageScope=upstream&lineageDepth=5"
    browser.go(f"{address}/assets/shop/apologies?{upstream}")
    browser.wait_for("order_items", "late_customers", "Observed", "Materialized")
    browser.wait("!document.body.innerText.includes('Loading')", "all of the graph")
    browser.picture(PICTURES / "lineage.png")

    browser.go(f"{address}/runs")
    browser.wait_for("Success", "shop_sources")
    browser.picture(PICTURES / "runs.png")

    browser.go(f"{address}/assets/shop/revenue_per_customer?view=checks")
    browser.wait_for("determinism", "certificate_chain", "Passed")
    browser.click("replay_equality", "span, div, a")
    browser.wait_for("differing_rows", "equal at tick")
    browser.picture(PICTURES / "check.png")

    # the picture of the plots is taken where that of rows_out is
    browser.go(graph.format("~/shop%2Frevenue_per_customer"))
    browser.wait_for("Metadata plots")
    plot = "[...document.querySelectorAll('canvas')].find(e => /^rows_out/.test(%s))"
    headed = "e.closest('div[class]').parentElement.parentElement.innerText.trim()"
    browser.wait(f"!!({plot % headed})", "a plot of rows out per tick")
    browser.value(f"({plot % headed}).scrollIntoView({{block: 'center'}})")
    browser.picture(PICTURES / "plots.png")

    browser.go(f"{address}/assets/shop/history/replay?view=partitions")
    browser.wait_for("Partitions Selected")
    browser.settle()
    browser.click("Materialize")
    browser.wait_for("Launch backfill")
    browser.click("All", f"{DIALOG} button")
    browser.wait_for("1 partition")
    browser.picture(PICTURES / "backfill.png")
    browser.click("Launch", f"{DIALOG} button:not(:disabled)")


def runs(port: int, *statuses: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ask(port, RUNS)["runsOrError"]["results"]
    return [run for run in found if run["status"] in statuses]


def ticks(port: int, *statuses: str) -> list[dict[str, Any]]:
    tagged = {"key": "tideview/pipeline", "value": "shop"}
    return [run for run in runs(port, *statuses) if tagged in run["tags"]]


def replays(port: int, *statuses: str) -> list[dict[str, Any]]:
    keys = {"dagster/asset_partition_range_start", "dagster/partition", "dagster/backfill"}
    return [r for r in runs(port, *statuses) if keys & {tag["key"] for tag in r["tags"]}]


def ask(port: int, query: str, **variables: str) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql",
        json.dumps({"query": query, "variables": variables}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["data"]
