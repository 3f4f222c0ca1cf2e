"""The files of a trace, what their names say, and which of them count.

    t000000000012-e000003-<id>.parquet          rows of tick 12, written by attempt (epoch) 3
    t000000000012-e000003-spark/part-….parquet  the same, written by Spark
    b000000000040-e000003-<id>.parquet          base: everything up to tick 40, folded
    m000000000041-000000000044-<id>.parquet     rows of ticks 41 to 44, each with its own tick

A file of a tick counts only if that tick was committed by exactly that epoch; bases and merged
files hold committed ticks only. So what a killed attempt left behind is never seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ivm_core.model.errors import CorruptStore

_TICK = re.compile(r"t(\d{12})-e(\d{6,})-[^/]+(?:/[^/]+)?\.parquet")
_BASE = re.compile(r"b(\d{12})-e(\d{6,})-[^/]+(?:/[^/]+)?\.parquet")
_OURS = re.compile(r"[tb]\d{12}-e\d{6,}-|m\d{12}-\d{12}-")
_MERGED = re.compile(r"m(\d{12})-(\d{12})-[^/]+\.parquet")


class Committed:
    """Which ticks were committed, and by which epoch; ticks count from 1."""

    def __init__(self, epochs: dict[int, int] | None = None) -> None:
        """Start from `tick -> epoch`; the mapping is copied."""
        self._epochs = dict(epochs or {})
        self.newest = max(self._epochs, default=0)

    def add(self, tick: int, epoch: int) -> None:
        """Note one more committed tick."""
        self._epochs[tick] = epoch
        self.newest = max(self.newest, tick)

    def epoch_of(self, tick: int) -> int | None:
        """The epoch that committed the tick; None if it isn't committed."""
        return self._epochs.get(tick)


@dataclass(frozen=True, slots=True)
class FileName:
    """What a file's name says; `epoch` is None where the file counts by being in the table."""

    first_tick: int
    last_tick: int
    epoch: int | None
    is_base: bool


@dataclass(frozen=True, slots=True)
class TraceFile:
    """One file that counts: `path` below the trace, `uri` as Spark and Arrow open it."""

    path: str
    uri: str
    first_tick: int
    last_tick: int
    rows: int
    bytes: int
    is_base: bool


def parse_name(path: str) -> FileName:
    """Read a file's name; one that no trace writes is `CorruptStore`."""
    if found := _TICK.fullmatch(path):
        tick = int(found[1])
        return FileName(tick, tick, int(found[2]), is_base=False)
    if found := _BASE.fullmatch(path):
        return FileName(0, int(found[1]), None, is_base=True)
    if found := _MERGED.fullmatch(path):
        return FileName(int(found[1]), int(found[2]), None, is_base=False)
    raise CorruptStore(f"the file {path!r} is not one that a trace writes")


def is_ours(path: str) -> bool:
    """Whether a path below a trace is one that the trace (or Spark for it) writes."""
    return _OURS.match(path) is not None


def tick_name(tick: int, epoch: int, mark: str) -> str:
    """The name, without suffix, of what one attempt at a tick writes."""
    return f"t{tick:012d}-e{epoch:06d}-{mark}"


def base_name(tick: int, epoch: int, mark: str) -> str:
    """The name, without suffix, of a base."""
    return f"b{tick:012d}-e{epoch:06d}-{mark}"


def merged_name(first: int, last: int, mark: str) -> str:
    """The name, without suffix, of several ticks in one file."""
    return f"m{first:012d}-{last:012d}-{mark}"
