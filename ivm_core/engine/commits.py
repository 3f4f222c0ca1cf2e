"""The certificates of committed ticks, held packed: there are many, and few are read again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ivm_core.store.packed_body import PackedBody

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ivm_core.store.ticklog import Entry


class Commits(Mapping[int, dict[str, Any]]):
    """Bodies of commit entries; what is read is not to be changed, but put in anew."""

    def __init__(self) -> None:
        """Empty."""
        self._held: dict[int, PackedBody] = {}

    def add(self, entry: Entry) -> None:
        """Take a commit as the log has it."""
        self._held[entry.tick] = entry.packed

    def __getitem__(self, tick: int) -> dict[str, Any]:
        return self._held[tick].body

    def __setitem__(self, tick: int, body: dict[str, Any]) -> None:
        self._held[tick] = PackedBody.of(body)

    def __iter__(self) -> Iterator[int]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)
