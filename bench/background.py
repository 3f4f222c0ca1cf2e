"""Looking on in a thread of its own."""

from __future__ import annotations

import threading
from typing import Self


class Background:
    """Watches while it is open; `_watch` goes on until `_done` is set."""

    def __enter__(self) -> Self:
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        raise NotImplementedError
