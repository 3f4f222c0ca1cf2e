from __future__ import annotations

import shutil
import threading
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from ivm_core.cli.metrics_server import MetricsServer
from ivm_core.model.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Tool


def test_metrics_for_people_programs_and_collectors(
    tideview: Tool, shop: Path, tmp_path: Path
) -> None:
    shown = tideview("metrics", shop)
    assert shown.code == 0
    assert "2 ticks" in shown.out
    assert "totals" in shown.out
    told = tideview("metrics", shop, "--since", 1, "--json").json
    assert told["tick"] == 2
    assert {row["tick"] for row in told["rows"]} == {2}
    assert {row["kind"] for row in told["rows"]} >= {"tick", "source", "view"}
    file = tmp_path / "shop.prom"
    assert tideview("metrics", shop, "--openmetrics", file).code == 0
    families = {each.name: each for each in text_string_to_metric_families(file.read_text())}
    assert families["tideview_ticks"].samples[0].value == 2
    assert tideview("metrics", shop, "--openmetrics", "-").out == file.read_text()
    assert [each.name for each in tmp_path.glob("*shop.prom*")] == ["shop.prom"]
    assert tideview("metrics", shop, "--openmetrics", tmp_path / "none" / "x").code == 3
    assert tideview("metrics", tmp_path / "none").code == 3


def test_metrics_are_served_to_collectors(shop: Path) -> None:
    with MetricsServer(str(shop), 0) as server:
        answering = threading.Thread(target=server.serve_forever)
        answering.start()
        try:
            with urllib.request.urlopen(server.url, timeout=20) as answer:
                assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
                families = {
                    each.name for each in text_string_to_metric_families(answer.read().decode())
                }
            assert "tideview_ticks" in families
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(server.url.replace("/metrics", "/else"), timeout=20)
            with pytest.raises(UserError, match="can't be had"):
                MetricsServer(str(shop), server.server_address[1])
            shutil.rmtree(shop)
            with pytest.raises(urllib.error.HTTPError, match="503"):
                urllib.request.urlopen(server.url, timeout=20)
        finally:
            server.shutdown()
            answering.join()
