"""A few pages of Dagster's web interface, in a browser, on runs that were made before.

The daemon, the feeder and runs that the interface launches: `test_ui.py`, by night.
"""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from dagster import DagsterInstance

from tests.dagster.browser import Browser, chromium
from tests.dagster.conftest import DECLARATION, VIEWS, write_pipeline
from tests.dagster.running import Run
from tests.dagster.serving import free_port, wait_until
from tideview.assets import tideview_definitions
from tideview.resources.flow_store import STORE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tideview.resources.flow_store import FlowStore
    from tideview.resources.inbox import Inbox

pytestmark = pytest.mark.usefixtures("spark")
LOCATION = """
from pathlib import Path
from tideview.assets import tideview_definitions
defs = tideview_definitions(Path(__file__).parent)
"""
QUIET = "telemetry: {enabled: false}\nnux: {enabled: false}\n"


@pytest.fixture
def address(
    tmp_path: Path, flows: FlowStore, inboxes: dict[str, Inbox], monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """A web server on a pipeline that has ticked twice and a broken one beside it."""
    chromium()
    write_pipeline(tmp_path / "broken", DECLARATION.replace("till", "broken"), VIEWS | {"bad": "("})
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text(QUIET)
    location = tmp_path / "location.py"
    location.write_text(LOCATION)
    monkeypatch.setenv(STORE_VARIABLE, flows.path)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with DagsterInstance.get() as instance:
        run = Run(tideview_definitions(tmp_path), instance)
        assert run().success
        inboxes["sales"].append([(3, "ada", Decimal("4.00")), (4, "cleo", Decimal("1.00"))])
        assert run().success
    port = free_port()
    command = [sys.executable, "-m", "dagster_webserver", "-f", str(location)]
    server = subprocess.Popen(
        [*command, "-h", "127.0.0.1", "-p", str(port)], env=dict(os.environ), cwd=tmp_path
    )
    answer = f"http://127.0.0.1:{port}"

    def is_up() -> bool:
        with urllib.request.urlopen(f"{answer}/server_info", timeout=5) as found:
            return bool(found.status == 200)

    wait_until(is_up, "the web server")
    yield answer
    server.terminate()
    assert server.wait(60) is not None


def test_lineage_checks_and_plots_can_be_seen(address: str, tmp_path: Path) -> None:
    with Browser(tmp_path) as browser:
        browser.go(f"{address}/assets/till/big?view=lineage&lineageScope=upstream&lineageDepth=5")
        browser.wait_for("sales", "totals", "big", "Observed", "Materialized")

        browser.go(f"{address}/assets/till/totals?view=checks")
        browser.wait_for("determinism", "certificate_chain", "Passed")
        browser.click("replay_equality", "span, div, a")
        browser.wait_for("differing_rows", "equal at tick 2")

        browser.go(f"{address}/asset-groups/~/till%2Ftotals?expanded=global%40global:till")
        browser.wait_for("Metadata plots", "rows_out")

        browser.go(f"{address}/assets/broken/bad")
        browser.wait_for("bad.sql")
