"""Batches that come again: known by their content, dropped whole, counted.

What a tick took and dropped stands in its intent and certificate, so that it is committed with the
tick and the same after a kill. The memory is what the certificates say; what they said long ago is
kept in sorted files beside the source (`store/key_files.py`), so that opening a flow loads nothing.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivm_core.model.digest import Digest
from ivm_core.model.names import WEIGHT
from ivm_core.model.schema import Schema
from ivm_core.operators.row_identity import digest_of
from ivm_core.store.key_files import FOLD_EVERY, KeyFiles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.engine.definitions import SourceDefinition
    from ivm_core.engine.history import History
    from ivm_core.engine.layout import Layout
    from ivm_core.operators.bound_batch import BoundBatch

CONTENT = "content"
CONSECUTIVE = "consecutive"
ENTRIES = 10_000_000
"""How many batches are remembered where nothing else is said."""


class Memories:
    """The memories of a flow's sources, each looked at when it is first needed."""

    def __init__(self, layout: Layout, history: History) -> None:
        """Nothing is read."""
        self._layout = layout
        self._history = history
        self._known: dict[str, Memory] = {}

    def of(self, source: SourceDefinition) -> Memory:
        """The memory of a source."""
        known = self._known.get(source.name)
        if known is None or known.entries != source.options["dedup_entries"]:
            files = KeyFiles(self._layout.root.child("sources", source.name.casefold(), "dedup"))
            self._known[source.name] = Memory(source, self._history, files)
        return self._known[source.name]

    def fold(self) -> None:
        """Move what has gathered in memory to files."""
        for each in self._known.values():
            each.fold()


class Memory:
    """Keys of the newest batches of one source."""

    def __init__(self, source: SourceDefinition, history: History, files: KeyFiles) -> None:
        """Read what the log has and the files have not."""
        self._name = source.name
        self.entries = int(source.options["dedup_entries"])
        self._history = history
        self._files = files
        self._recent: dict[bytes, tuple[int, int]] = {}
        """Number and tick of keys that are in no file yet."""
        self._seen = history.tick
        missing = files.first_missing(self.floor)
        for tick in range(history.tick, 0, -1):
            number = self._note(tick)
            if number is not None and number <= missing:
                break

    @property
    def number(self) -> int:
        """How many batches were taken."""
        known = self._history.dedup.get(self._name)
        return max(known.number if known else 0, self._files.last)

    @property
    def floor(self) -> int:
        """The number of the oldest entry that the memory holds."""
        return max(self._forgotten, self.number - self.entries) + 1

    @property
    def evicted(self) -> int:
        """How many are forgotten when the next is taken, also because fewer are held now."""
        return max(0, self.number + 1 - self.entries - self._forgotten)

    @property
    def _forgotten(self) -> int:
        known = self._history.dedup.get(self._name)
        return known.forgotten if known else 0

    def find(self, key: bytes) -> tuple[int, int] | None:
        """Number and tick of the batch with this content, if it is remembered."""
        self._catch_up()
        found = self._recent.get(key)
        if found is None:
            found = self._files.find(key, self.floor)
        return found if found is not None and found[0] >= self.floor else None

    def fold(self) -> None:
        """Put keys into a file when there are many, or forget them when all are too old."""
        self._catch_up()
        self._recent = {key: each for key, each in self._recent.items() if each[0] >= self.floor}
        if len(self._recent) < FOLD_EVERY:
            return
        entries = [(key, number, tick) for key, (number, tick) in self._recent.items()]
        self._files.add(entries, self.floor)
        self._recent = {}

    def _catch_up(self) -> None:
        for tick in range(self._seen + 1, self._history.tick + 1):
            self._note(tick)
        self._seen = self._history.tick

    def _note(self, tick: int) -> int | None:
        """Take in what a tick took; its number."""
        record = self._history.commits.get(tick, {}).get("dedup", {}).get(self._name)
        if record is None or record["dropped"]:
            return None
        number = int(record["number"])
        key = bytes.fromhex(record["key"])
        self._recent[key] = max((number, tick), self._recent.get(key, (0, 0)))
        return number


class Deduplication:
    """What one tick takes and drops."""

    def __init__(
        self, memories: Memories, history: History, recorded: Mapping[str, Any] | None = None
    ) -> None:
        """`recorded` is what a tick that is run again took and dropped; then nothing is asked."""
        self._memories = memories
        self._history = history
        self._is_replay = recorded is not None
        self.records: dict[str, dict[str, Any]] = dict(recorded or {})
        self.notes: list[str] = []

    def asks(self, source: SourceDefinition) -> bool:
        """Whether batches of the source are looked at."""
        return bool(source.options.get("dedup")) and not self._is_replay

    def drops(self, source: SourceDefinition, batch: BoundBatch) -> bool:
        """Whether the content of a batch was taken before; notes what becomes of it."""
        if not self.asks(source):
            return False
        rows = digest_of(batch.table, source.schema)
        upserts = keys = Digest.zero()
        if batch.upserts is not None:
            upserts = digest_of(_weighted(batch.upserts), source.schema)
        if batch.delete_keys is not None:
            key = Schema(tuple(source.schema.field(name) for name in source.primary_key))
            keys = digest_of(_weighted(batch.delete_keys), key)
        return self._drops(source, rows, upserts, keys)

    def drops_rows(self, source: SourceDefinition, digest: Digest) -> bool:
        """The same of rows by their digest, for a batch that has neither upserts nor keys."""
        return self.asks(source) and self._drops(source, digest, Digest.zero(), Digest.zero())

    def _drops(self, source: SourceDefinition, rows: Digest, upserts: Digest, keys: Digest) -> bool:
        if not (rows.value or upserts.value or keys.value):
            return False  # nothing is no content
        text = f"rows {rows.hex} upserts {upserts.hex} keys {keys.hex}"
        key = hashlib.sha256(text.encode()).digest()[:16]
        name = source.name
        last = self._history.dedup.get(name)
        if source.options["dedup"] == CONSECUTIVE:
            number = last.number if last else 0
            found = last.tick if last and last.key == key.hex() else None
            evicted = 0
        else:
            memory = self._memories.of(source)
            number = memory.number
            at = memory.find(key)
            found = None if at is None else at[1]
            evicted = memory.evicted if found is None else 0
        self.records[name] = {
            "key": key.hex(),
            "number": number if found is not None else number + 1,
            "dropped": found is not None,
            "evicted": evicted,
        }
        if found is not None:
            self.notes.append(f"the batch for {name} was taken by tick {found} already: dropped")
        return found is not None


def _weighted(table: pa.Table) -> pa.Table:
    """Rows that count once each."""
    return table.append_column(WEIGHT, pa.repeat(pa.scalar(1, pa.int64()), table.num_rows))
