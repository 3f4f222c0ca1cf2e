from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import IncrementalFlow
from tideview.pipelines import demo

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ivm_core.engine.checking import Comparison

SMALL = ["--customers", "6", "--orders", "12"]


def test_ticks_are_shown_and_checked(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    assert demo.main([*SMALL, "--ticks", "1", "--store", str(store)]) == 0
    out = capsys.readouterr().out
    assert "4 sources and 7 views registered" in out
    assert out.count("7 views, all equal") == 2
    assert "new orders: inserts only" in out
    assert "certificate of tick 2" in out
    assert "2 ticks, 14 deltas, all digests equal" in out
    assert "make ui" in out
    assert "2 ticks, every check was equal" in out
    with IncrementalFlow.open(store / "flow", spark, read_only=True) as flow:
        assert flow.current_tick == 2
        assert len(flow.views) == 7
    assert demo.main([*SMALL, "--store", str(store)]) == 1
    assert "there is a flow already" in capsys.readouterr().out


def test_a_view_that_differs_ends_the_demo_with_code_1(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    honest = IncrementalFlow.check

    def check(flow: IncrementalFlow, view: str) -> Comparison:
        found = honest(flow, view)
        if view != "daily_orders":
            return found
        row = {"placed_on": "2025-03-03", "orders": 1, "cancelled": 0, "_weight": 1}
        return type(found)(view, found.tick, False, found.rows, 1, 0, (row,))

    monkeypatch.setattr(IncrementalFlow, "check", check)
    assert demo.main([*SMALL, "--ticks", "0"]) == 1
    out = capsys.readouterr().out
    assert "daily_orders lacks 1 rows and has 0 too many" in out
    assert "'placed_on': '2025-03-03'" in out
    assert "1 CHECKS FAILED" in out


def test_help_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        demo.main(["--help"])
    assert ended.value.code == 0
    assert "--orders" in capsys.readouterr().out
