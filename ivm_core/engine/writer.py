"""Being the one writer of a flow.

Correctness rests on the tick log alone: an entry is put at the expected version or not at all,
and whoever starts to write takes a higher epoch first. On a local disk a lock tells a second
writer sooner, and tells a killed one from one that is still at work.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ivm_core.model.errors import TickConflict

try:
    import fcntl
except ImportError:  # not on every platform; then the epochs alone decide
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from ivm_core.store.location import Location


class WriterLock:
    """An advisory lock that the operating system drops when its holder dies."""

    def __init__(self, root: Location) -> None:
        """Nothing is locked before `take`."""
        self._root = root
        self._descriptor: int | None = None
        self._holder = 0

    def take(self) -> None:
        """Become the writer; TickConflict while another one is alive."""
        if not self.try_take():
            raise TickConflict("another writer is at work on this flow", self._root.uri)

    def try_take(self) -> bool:
        """Become the writer if nobody else is; True where there are no locks at all."""
        if self._descriptor is not None or fcntl is None or not self._root.is_local:
            return True
        path = self._root.path / "writer.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        self._holder = os.getpid()
        return True

    @property
    def is_held(self) -> bool:
        """Whether this handle has the lock."""
        return self._descriptor is not None

    def release(self) -> None:
        """Let others write."""
        if self._descriptor is None:
            return
        if fcntl is not None and self._holder == os.getpid():
            # a process that was forked meanwhile has the descriptor too, and must not keep the lock
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)
        self._descriptor = None

    def __del__(self) -> None:
        """A flow that is dropped without `close` lets go as well."""
        self.release()
