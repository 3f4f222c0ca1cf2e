"""What readers of a flow still need: one small file each, and old ones count no more.

    <flow>/readers/<id>.json   {"tick": 12}: all after tick 12 must stay apart

Whoever holds a lease touches it by moving on. One that has not moved for a day is taken for gone.
"""

from __future__ import annotations

import json
import time
import uuid
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ivm_core.store.location import Location

READERS = "readers"
LEASE_SECONDS = 86_400.0


class Lease:
    """One reader's claim; it ends with `close`, or when nobody has the object any more."""

    def __init__(self, root: Location, tick: int) -> None:
        """Claim all after a tick."""
        self._root = root
        self._path = f"{READERS}/{uuid.uuid4().hex}.json"
        self._finish = weakref.finalize(self, _end, root, self._path)
        self.move(tick)

    def move(self, tick: int) -> None:
        """Claim all after a later tick only."""
        with self._root.writing(self._path) as stream:
            stream.write(json.dumps({"tick": tick}).encode())

    def close(self) -> None:
        """Claim nothing any more."""
        self._finish()


def leased_ticks(root: Location) -> list[int]:
    """The ticks that readers claim."""
    found = []
    oldest = time.time() - LEASE_SECONDS
    for entry in root.list(READERS):
        if entry.is_dir or not entry.path.endswith(".json") or entry.modified < oldest:
            continue
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
            found.append(int(json.loads(root.read_bytes(entry.path))["tick"]))
    return found


def _end(root: Location, path: str) -> None:
    with suppress(OSError):
        root.delete(path)
