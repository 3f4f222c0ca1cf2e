"""Memory of the libraries in C that a flow works with: what a tick has freed goes back.

Arrow's usual allocators keep what a thread has freed for that thread, and glibc has an arena for
each of its threads. A flow that lives long then holds tens of MiB that nothing uses, the more the
more threads ever read a file. With the system's allocator and few arenas its level stays, the more
so where large pieces never come to lie between small ones: glibc moves that bound up by itself with
every large piece that is freed. What `deltalake` allocates is limited in `ivm_core.store`, before
that library is loaded.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

ARROWS_CHOICE = "ARROW_DEFAULT_MEMORY_POOL"
ARENAS_CHOICE = "MALLOC_ARENA_MAX"
LARGE_CHOICE = "MALLOC_MMAP_THRESHOLD_"
_ARENAS = 2
_LARGE_BYTES = 1 << 20
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # malloc.h


@cache
def share_among_threads() -> None:
    """Let Arrow allocate as the process does, from few arenas, where no variable says otherwise."""
    if not os.environ.get(ARROWS_CHOICE):
        pa.set_memory_pool(pa.system_memory_pool())
    limit = _of_the_c_library("mallopt")
    if limit is not None and not os.environ.get(ARENAS_CHOICE):
        limit(_M_ARENA_MAX, _ARENAS)
    if limit is not None and not os.environ.get(LARGE_CHOICE):
        limit(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def give_back() -> None:
    """Return what is free to the system, where the C library can."""
    trim = _of_the_c_library("malloc_trim")
    if trim is not None:
        trim(0)


@cache
def _of_the_c_library(name: str) -> Callable[..., int] | None:
    """A function that glibc has; musl and macOS have not."""
    with suppress(OSError, AttributeError):
        function: Callable[..., int] = getattr(ctypes.CDLL(None), name)
        return function
    return None
