"""What readers of a flow still need: one small file each, and old ones count no more.

    <flow>/readers/<id>.json               {"tick": 12}: all after tick 12 must stay apart
    <flow>/readers/checkpoint-<id>.json    the same, for the next delta checkpoint in a folder

A process that holds leases touches them now and then. One that nobody has touched for a day is
taken for gone; that of checkpoints stands as long as there are checkpoints in their folder.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
import uuid
import weakref
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.model.errors import IvmError
from ivm_core.model.secrets import logger
from ivm_core.store.checkpoint_folder import CheckpointFolder
from ivm_core.store.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ivm_core.store.location import Entry

READERS = "readers"
LEASE_SECONDS = 86_400.0
RENEWED_AFTER = LEASE_SECONDS / 12
_CHECKPOINTS = "checkpoints"
log = logger(__name__)


@dataclass(frozen=True)
class Claim:
    """All after a tick must stay apart, for someone."""

    tick: int
    holder: str


class Lease:
    """One reader's claim; it ends with `close`, or when nobody has the object any more."""

    def __init__(self, root: Location, tick: int) -> None:
        """Claim all after a tick."""
        self._root = root
        self._path = f"{READERS}/{uuid.uuid4().hex}.json"
        self._finish = weakref.finalize(self, _end, root, self._path)
        self.move(tick)
        _renewals.add(self)

    def move(self, tick: int) -> None:
        """Claim all after a later tick only."""
        self._tick = tick
        try:
            with self._root.writing(self._path) as stream:
                stream.write(json.dumps({"tick": tick}).encode())
        except OSError as error:  # a reader may be allowed to read the flow only
            log.warning("ticks after %s may be folded while they are read: %s", tick, error)

    def renew(self) -> None:
        """Claim the same for another day."""
        if self._finish.alive:
            self.move(self._tick)

    def close(self) -> None:
        """Claim nothing any more."""
        self._finish()


@contextmanager
def all_ticks_kept(root: Location) -> Iterator[None]:
    """Nothing is folded as long as this is open."""
    lease = Lease(root, 0)
    try:
        yield
    finally:
        lease.close()


class _Renewals:
    """Renews the leases of this process, in a thread that is there while there are any."""

    def __init__(self) -> None:
        self._held: weakref.WeakSet[Lease] = weakref.WeakSet()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def add(self, lease: Lease) -> None:
        with self._lock:
            self._held.add(lease)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name="tideview-leases", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(RENEWED_AFTER)
            with self._lock:
                held = list(self._held)
                if not held:
                    self._thread = None
                    return
            for lease in held:
                lease.renew()
            del held


_renewals = _Renewals()


def claim_for_checkpoints(root: Location, folder: Location, tick: int) -> None:
    """Claim all after a tick for the next delta checkpoint in a folder."""
    name = hashlib.sha256(folder.uri.encode()).hexdigest()[:32]
    try:
        with root.writing(f"{READERS}/checkpoint-{name}.json") as stream:
            stream.write(json.dumps({"tick": tick, _CHECKPOINTS: folder.uri}).encode())
    except OSError as error:  # a backup may be allowed to read the flow only
        log.warning("ticks after %s may be folded before the next checkpoint: %s", tick, error)


def claims(root: Location) -> list[Claim]:
    """What readers and checkpoints claim, the oldest tick first."""
    found = []
    for entry in root.list(READERS):
        if not entry.is_dir and entry.path.endswith(".json"):
            with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
                found += _claims_of(root, entry)
    return sorted(found, key=lambda each: each.tick)


def _claims_of(root: Location, entry: Entry) -> list[Claim]:
    body = json.loads(root.read_bytes(entry.path))
    folder = body.get(_CHECKPOINTS)
    if folder is None:
        is_old = entry.modified < time.time() - LEASE_SECONDS
        return [] if is_old else [Claim(int(body["tick"]), "a watch, a replay or a pinned reader")]
    if not _has_checkpoints(str(folder)):
        return []
    return [Claim(int(body["tick"]), f"the next checkpoint in {folder}")]


def _has_checkpoints(folder: str) -> bool:
    """Whether there are any; a place that can't be looked at keeps its claim."""
    try:
        return CheckpointFolder(Location(folder)).is_begun
    except (IvmError, OSError):
        return True


def _end(root: Location, path: str) -> None:
    with suppress(OSError):
        root.delete(path)
