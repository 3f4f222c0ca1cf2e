"""`make ui` as its user has it: web server, daemon, feeder, and runs that nobody asked for."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import psutil
import pytest

if TYPE_CHECKING:
    from pathlib import Path

RUNS = "{runsOrError {... on Runs {results {status tags {key value}}}}}"
CHECKS = """{assetNodes {assetKey {path} assetChecksOrError {... on AssetChecks {checks
  {name executionForLatestMaterialization {status}}}}}}"""


@pytest.mark.nightly
def test_the_feeder_changes_the_sensor_sees_the_views_tick(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "tideview.pipelines.ui", "--port", str(port), "--every", "10"]
    store = {"TIDEVIEW_STORE": str(tmp_path / "store"), "DAGSTER_HOME": str(tmp_path / "home")}
    ui = subprocess.Popen(command, env={**os.environ, **store})
    try:
        wait_for_two_runs(port)
        nodes = ask(port, CHECKS)["assetNodes"]
        assert len(nodes) == 11
        shown = {node["assetKey"]["path"][-1]: node["assetChecksOrError"] for node in nodes}
        [check] = shown["apologies"]["checks"]
        assert check["name"] == "replay_equality"
    finally:
        children = psutil.Process(ui.pid).children(recursive=True)
        ui.send_signal(signal.SIGTERM)
        assert ui.wait(120) == 0
    _, left = psutil.wait_procs(children, timeout=30)
    assert left == []


def wait_for_two_runs(port: int) -> None:
    deadline = time.monotonic() + 900
    while time.monotonic() < deadline:
        time.sleep(2)
        try:
            runs = ask(port, RUNS)["runsOrError"]["results"]
        except OSError:
            continue
        assert not [run for run in runs if run["status"] == "FAILURE"]
        done = [run for run in runs if run["status"] == "SUCCESS"]
        if len(done) >= 2:
            sensors = {tag["value"] for r in done for tag in r["tags"] if "sensor" in tag["key"]}
            assert sensors == {"shop_sources"}
            return
    pytest.fail("no two runs in a quarter of an hour")


def ask(port: int, query: str) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql",
        json.dumps({"query": query}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["data"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
