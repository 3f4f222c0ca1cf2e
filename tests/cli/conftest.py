"""A little shop that was ticked twice, made once and copied for every test, and the tool."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from ivm_core import DeltaBatch, IncrementalFlow
from ivm_core.cli.main import main
from tests.flow.shop import declare_shop

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Answer:
    """What one run of the tool said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Tool: TypeAlias = Callable[..., Answer]


@pytest.fixture
def tideview(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Tool:
    """Runs the tool in this process, where Spark is up already."""

    def run(*arguments: object) -> Answer:
        capsys.readouterr()
        code = main([str(each) for each in arguments])
        said = capsys.readouterr()
        return Answer(code, said.out, said.err)

    return run


@pytest.fixture(scope="session")
def ticked_shop(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    place = tmp_path_factory.mktemp("cli") / "flow"
    with IncrementalFlow.open(place, spark) as flow:
        declare_shop(flow)
        flow.tick({"orders": [(1, "ann", 20), (2, "bob", 3)], "customers": [("ann", "Rome")]})
        flow.tick("orders", DeltaBatch.upserts([(2, "ann", 7), (3, "bob", 9)]))
    return place


@pytest.fixture
def shop(ticked_shop: Path, tmp_path: Path) -> Path:
    """The folder of a flow that a test may change."""
    return shutil.copytree(ticked_shop, tmp_path / "shop" / "flow")
