"""Waiting for servers that tests have started."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 1200.0


def wait_until(is_so: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        time.sleep(2)
        try:
            if is_so():
                return
        except OSError:
            continue  # it is not up yet
    pytest.fail(f"waited too long for {what}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
