"""`--resume`: a long run that was stopped goes on where it was, for as long as the code is the same.

What has passed is written down test by test, in a file named after the commit and what is changed
on top of it. The next run with `--resume` leaves those out and says so.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / ".tideview" / "passed"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--resume",
        action="store_true",
        help="leave out what has passed since the code last changed (.tideview/passed)",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--resume"):
        config.pluginmanager.register(_Resuming(config), "tideview-resuming")


class _Resuming:
    def __init__(self, config: pytest.Config) -> None:
        given: dict[str, Any] | None = getattr(config, "workerinput", None)
        self._is_worker = given is not None
        self._file = FOLDER / f"{_code()}.txt"
        if given is not None:
            self._passed = set(given["passed"])
        else:
            there = self._file.exists()
            self._passed = set(self._file.read_text().splitlines()) if there else set()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """All workers of a run leave out the same tests."""
        node.workerinput["passed"] = sorted(self._passed)

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        left_out = [item for item in items if item.nodeid.split("@")[0] in self._passed]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item not in left_out]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._is_worker or report.when != "call" or not report.passed:
            return
        FOLDER.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(report.nodeid.split("@")[0] + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Nothing left to run is not a failure."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._passed:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._is_worker and self._passed:
            terminalreporter.write_line(
                f"{len(self._passed)} tests had passed before with this code; "
                f"remove {self._file.relative_to(FOLDER.parents[1])} to run them again"
            )


def _code() -> str:
    """The commit, and what is changed on top of it."""

    def git(*words: str) -> bytes:
        return subprocess.run(
            ["git", *words], cwd=FOLDER.parents[1], capture_output=True, check=False
        ).stdout

    changed = hashlib.sha256(git("diff", "HEAD")).hexdigest()[:8]
    return f"{git('rev-parse', '--short=12', 'HEAD').decode().strip() or 'no-commit'}-{changed}"
