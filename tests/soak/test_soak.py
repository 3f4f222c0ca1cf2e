"""A soak of 2,000 ticks, in a process of its own: `python -m tests.soak.soaking` with its figures."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.processes import ENVIRONMENT, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

TICKS = 2_000


@pytest.mark.nightly
@pytest.mark.timeout(14_400)
def test_a_long_life_needs_no_more_memory_or_time(
    record_property: Callable[[str, object], None],
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak.soaking", "--ticks", str(TICKS)],
        env=ENVIRONMENT,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    record_property("covered", done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
