"""The folder that keeps what is expensive to get: Delta's jars and the class archive."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CACHE_VARIABLE = "TIDEVIEW_CACHE"


def cache_folder() -> Path:
    """The cache: `TIDEVIEW_CACHE`, else `.cache/tideview` of a checkout, else in the user's cache.

    The folder need not exist yet.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").is_file():
        return checkout / ".cache" / "tideview"
    user_cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(user_cache, "tideview").absolute()


@contextlib.contextmanager
def only_one_process(lock: Path) -> Iterator[None]:
    """Hold `lock` against other processes, waiting for its turn; it falls with its process."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
