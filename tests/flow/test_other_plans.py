"""Flows of which another version of Tideview has made the plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import IncrementalFlow, OtherPlan
from ivm_core.compile import program
from tests.flow.shop import assert_exact, declare_shop, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_a_view_of_another_plan_is_not_read_as_if_it_were_this_one(
    place: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(program, "PLAN_FORMAT", "another")
        with IncrementalFlow.open(place, spark) as flow:
            declare_shop(flow)
            flow.tick({"orders": [(1, "ann", 20)], "customers": [("ann", "Rome")]})
            flow.tick("orders", [(2, "ann", 5)])
            wanted = rows(flow.snapshot("cities"))
    with IncrementalFlow.open(place, spark) as flow:
        with pytest.raises(OtherPlan, match="another version of Tideview"):
            flow.tick("orders", [(3, "bob", 7)])
        flow.checkpoint(tmp_path / "backup")
    with IncrementalFlow.open(tmp_path / "again", spark) as flow:
        flow.restore(tmp_path / "backup")
        assert rows(flow.snapshot("cities")) == wanted
        flow.tick("orders", [(3, "ann", 7)])
        assert_exact(flow)
