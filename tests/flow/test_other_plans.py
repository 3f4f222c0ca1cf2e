"""Flows of which another version of Tideview has made the plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import IncrementalFlow, OtherPlan
from ivm_core.compile import program
from tests.flow.shop import declare_shop

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_a_view_of_another_plan_is_not_read_as_if_it_were_this_one(
    place: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(program, "PLAN_FORMAT", "another")
        with IncrementalFlow.open(place, spark) as flow:
            declare_shop(flow)
            flow.tick({"orders": [(1, "ann", 20)], "customers": [("ann", "Rome")]})
            flow.tick("orders", [(2, "ann", 5)])
    with IncrementalFlow.open(place, spark) as flow:
        with pytest.raises(OtherPlan, match="another version of Tideview") as refused:
            flow.tick("orders", [(3, "bob", 7)])
        assert "view " in str(refused.value)
        assert flow.current_tick == 2
