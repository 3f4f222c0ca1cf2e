"""Other processes and threads, for tests."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

R = TypeVar("R")
ROOT = Path(__file__).parent.parent
ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
    "TIDEVIEW_DRIVER_MEMORY": "1g",
}


def in_thread(work: Callable[[], R]) -> R:
    """What the work gives, or raises, in a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()
