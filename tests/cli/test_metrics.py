from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.openmetrics.parser import text_string_to_metric_families

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
