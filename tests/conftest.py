"""What every test may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from ivm_core.engine.local_spark import local_spark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytest_plugins = ["tests.resuming"]

# how long an example takes says more about the machine than about the code
settings.register_profile("tideview", deadline=None)
settings.load_profile("tideview")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark for all tests of a worker, with a warehouse of its own."""
    session = local_spark("tideview-tests", cores=2)
    yield session
    session.stop()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What long suites compared, as their tests recorded it."""
    found = [
        str(value)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == "covered"
    ]
    if found:
        terminalreporter.section("covered")
        for line in sorted(found):
            terminalreporter.write_line(line)
