"""A new flow for each test, and one with a little shop in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import IncrementalFlow
from tests.flow.shop import declare_shop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "flow"


@pytest.fixture
def flow(place: Path, spark: SparkSession) -> Iterator[IncrementalFlow]:
    with IncrementalFlow.open(place, spark) as opened:
        yield opened


@pytest.fixture
def shop(flow: IncrementalFlow) -> IncrementalFlow:
    declare_shop(flow)
    return flow
