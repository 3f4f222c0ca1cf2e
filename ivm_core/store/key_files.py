"""Keys that were seen, in sorted files that are searched where they lie.

    k<first>-<last>-<id>.keys    entries first to last, 32 bytes each: the key (16), the entry's
                                 number (8), the tick that had it (8), big-endian, sorted

On a local disk a search touches some twenty pages of a file, whatever its size; nothing is loaded.
Files are folded, sixty-four into one, so that there are few. They hold nothing that the tick log
has not: a file of the wrong size is left out, and the log is asked.
"""

from __future__ import annotations

import mmap
import os
import re
import uuid
from bisect import bisect_right
from typing import TYPE_CHECKING

from ivm_core.store.faults import fault_point

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ivm_core.store.location import Location

KEY_BYTES = 16
ENTRY_BYTES = 32
FOLD_EVERY = 4096
MERGE = 64
_NAME = re.compile(r"k(\d{15})-(\d{15})-[0-9a-f]{32}\.keys")


class KeyFiles:
    """The files in one folder; one process writes them at a time."""

    def __init__(self, location: Location) -> None:
        """Look which files there are."""
        self.location = location
        self._files: dict[str, tuple[int, int]] = {}
        self._content: dict[str, bytes | mmap.mmap] = {}
        for entry in location.list():
            found = _NAME.fullmatch(entry.path)
            if found and entry.size == (int(found[2]) - int(found[1]) + 1) * ENTRY_BYTES:
                self._files[entry.path] = (int(found[1]), int(found[2]))

    @property
    def last(self) -> int:
        """The largest number in them; 0 if there are none."""
        return max((last for _, last in self._files.values()), default=0)

    def first_missing(self, floor: int) -> int:
        """The first number from `floor` on that is in no file."""
        for first, last in sorted(self._files.values()):
            if first <= floor <= last:
                floor = last + 1
        return floor

    def find(self, key: bytes, floor: int) -> tuple[int, int] | None:
        """Number and tick of the newest entry with a key, from number `floor` on."""
        best: tuple[int, int] | None = None
        for path, (first, last) in self._files.items():
            if last < floor or (best is not None and last <= best[0]):
                continue
            found = _search(self._read(path), key, last - first + 1)
            if found is not None and found[0] >= floor and (best is None or found > best):
                best = found
        return best

    def add(self, entries: Iterable[tuple[bytes, int, int]], floor: int) -> None:
        """Keep entries (key, number, tick) with consecutive numbers; drop files below `floor`."""
        packed = [
            key + number.to_bytes(8, "big") + tick.to_bytes(8, "big")
            for key, number, tick in entries
        ]
        self._write(packed)
        small = {
            path: ends
            for path, ends in self._files.items()
            if ends[1] - ends[0] + 1 < FOLD_EVERY * MERGE
        }
        if len(small) >= MERGE:
            content = [bytes(self._read(path)) for path in small]
            self._write(
                [
                    each[at : at + ENTRY_BYTES]
                    for each in content
                    for at in range(0, len(each), ENTRY_BYTES)
                ]
            )
        self._sweep(floor)

    def _write(self, packed: list[bytes]) -> None:
        unique = sorted(set(packed))
        numbers = [int.from_bytes(each[KEY_BYTES : KEY_BYTES + 8], "big") for each in unique]
        first, last = min(numbers), max(numbers)
        if last - first + 1 != len(unique):
            return  # a damaged file is among them: what there is stays
        path = f"k{first:015d}-{last:015d}-{uuid.uuid4().hex}.keys"
        draft = f"{path}.draft"
        fault_point("before:dedup.fold")
        with self.location.open_output(draft if self.location.is_local else path) as stream:
            stream.write(b"".join(unique))
        if self.location.is_local:
            os.replace(self.location.resolve(draft), self.location.resolve(path))
        fault_point("after:dedup.fold")
        self._files[path] = (first, last)

    def _sweep(self, floor: int) -> None:
        """Delete files that are too old, or whose entries are all in another one."""
        for path, (first, last) in list(self._files.items()):
            is_held = any(
                other != path and ends[0] <= first and last <= ends[1]
                for other, ends in self._files.items()
            )
            if last < floor or is_held:
                del self._files[path]
                self._content.pop(path, None)
                self.location.delete(path)

    def _read(self, path: str) -> bytes | mmap.mmap:
        found = self._content.get(path)
        if found is None:
            if self.location.is_local:
                with open(self.location.resolve(path), "rb") as stream:
                    found = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            else:
                found = self.location.read_bytes(path)
            self._content[path] = found
        return found


def _search(content: bytes | mmap.mmap, key: bytes, count: int) -> tuple[int, int] | None:
    """Number and tick of the last of the sorted entries that have the key."""
    behind = bisect_right(
        range(count), key, key=lambda at: content[at * ENTRY_BYTES : at * ENTRY_BYTES + KEY_BYTES]
    )
    start = (behind - 1) * ENTRY_BYTES
    if behind == 0 or content[start : start + KEY_BYTES] != key:
        return None
    number, tick = content[start + 16 : start + 24], content[start + 24 : start + 32]
    return int.from_bytes(number, "big"), int.from_bytes(tick, "big")
