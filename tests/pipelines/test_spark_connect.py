"""Runs on a Spark Connect server that they find or start, in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import SparkLost
from ivm_core.engine.local_spark import remote_spark
from tests.dagster.conftest import DECLARATION, VIEWS, write_pipeline
from tests.processes import ENVIRONMENT
from tideview.resources.connect_server import FOLDER_VARIABLE, ConnectServers, ServerSettings

if TYPE_CHECKING:
    from pathlib import Path

RUN = """
import json, os, sys, time
from decimal import Decimal
from dagster import DagsterInstance
from tideview.assets import tideview_definitions
from tideview.resources.connect_server import ConnectServers
from tideview.resources.flow_store import FlowStore
from tideview.resources.pipeline_folder import load_pipeline

folder, row = sys.argv[1], int(sys.argv[2])
pipeline = load_pipeline(folder)
defs = tideview_definitions(folder)
inbox = FlowStore().inboxes(pipeline)["sales"]
inbox.make()
inbox.append([(row, "ada", Decimal("7.00"))])
with DagsterInstance.ephemeral() as instance:
    ran = defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance, raise_on_error=False
    )
rows = {
    event.asset_key.path[-1]: event.materialization.metadata["dagster/row_count"].value
    for event in ran.get_asset_materialization_events()
}
checks = [each.passed for each in ran.get_asset_check_evaluations()]
servers = os.environ.get("SPARK_REMOTE") or [each.pid for each in ConnectServers().known()]
from pyspark import SparkContext
own = SparkContext._gateway is not None
print(json.dumps({"rows": rows, "ok": ran.success, "checks": checks, "servers": servers, "own": own}))
"""


def run(folder: Path, row: int, **environment: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(folder), str(row)],
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["ok"], done.stderr
    return found


@pytest.mark.nightly
def test_runs_share_a_server_that_the_first_one_starts(tmp_path: Path) -> None:
    declaration = f"{DECLARATION}\nspark: {{connect: auto, memory: 1g}}\n"
    folder = write_pipeline(tmp_path / "till", declaration, VIEWS)
    place = {FOLDER_VARIABLE: str(tmp_path / "connect"), "TIDEVIEW_STORE": str(tmp_path / "store")}
    servers = ConnectServers(tmp_path / "connect")
    try:
        first = run(folder, 1, **place)
        second = run(folder, 2, **place)
        assert first["servers"] == second["servers"]
        assert len(first["servers"]) == 1
        assert (first["own"], second["own"]) == (False, False)
        assert all(first["checks"])
        assert all(second["checks"])
        assert (second["rows"]["totals"], second["rows"]["big"]) == (1, 1)
        [server] = servers.known()
        secret = tmp_path / "connect" / f"{server.settings.name}.json"
        assert secret.stat().st_mode & 0o077 == 0
        # another way to the same server: its address in the environment
        (folder / "pipeline.yaml").write_text(DECLARATION)
        third = run(folder, 3, SPARK_REMOTE=server.url, **place)
        assert third["own"] is False
        assert all(third["checks"])
        # nobody else gets in
        os.environ.pop("SPARK_CONNECT_AUTHENTICATE_TOKEN", None)
        stranger = subprocess.run(
            [sys.executable, "-c", STRANGER, server.url.partition(";")[0]],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "SparkLost" in stranger.stdout, stranger.stderr
    finally:
        stopped = servers.stop()
    assert stopped == 1
    for _ in range(100):
        if not servers.known():
            break
        time.sleep(0.2)
    assert servers.known() == []


STRANGER = """
import sys
from ivm_core import SparkLost
from ivm_core.engine.local_spark import remote_spark
try:
    remote_spark(sys.argv[1]).range(1).count()
except Exception as error:
    print(type(error).__name__)
"""


def test_a_server_that_is_gone_is_not_one(tmp_path: Path) -> None:
    servers = ConnectServers(tmp_path)
    settings = ServerSettings()
    assert servers.known() == []
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        content = {"pid": process.pid, "port": 1, "token": "x", "settings": {}}
        (tmp_path / f"{settings.name}.json").write_text(json.dumps(content))
        assert servers.known() == []  # nothing listens there
        process.send_signal(signal.SIGKILL)
    (tmp_path / f"{settings.name}.json").write_text("{")
    assert servers.known() == []
    assert ServerSettings(cores=3).name != settings.name


def test_an_address_where_nobody_is_gets_our_words() -> None:
    with pytest.raises(SparkLost, match="sc://"):
        remote_spark("sc://localhost:1/;token=secret;nonsense")
