"""What every test may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core.engine.local_spark import local_spark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark for all tests of a worker, with a warehouse of its own."""
    session = local_spark("tideview-tests", cores=2)
    yield session
    session.stop()
