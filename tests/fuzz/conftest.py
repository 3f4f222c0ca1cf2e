"""Adds up what the random stories of a run covered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.fuzz.coverage import Coverage

if TYPE_CHECKING:
    import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    total = Coverage()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                for name, value in report.user_properties:
                    if name == "random stories":
                        total += Coverage.of(json.loads(str(value)))
    if total.stories:
        terminalreporter.section("random stories")
        terminalreporter.write_line(total.told())
