"""The tick log: one Delta commit an entry, put at the expected version or refused.

Entries are rows of a small Delta table. Files of single entries are folded, sixty-four of them
into one and sixty-four such into a larger one, so that opening a long log reads few files; a fold
is a commit of its own that changes no row.
"""

from __future__ import annotations

import json
import sys
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import pyarrow as pa
from pyarrow import parquet

from ivm_core.model.errors import CorruptStore, NewerFormat, NotAFlow, TickConflict
from ivm_core.model.secrets import logger
from ivm_core.store.delta_actions import DataFile
from ivm_core.store.faults import fault_point
from ivm_core.store.owned_table import NoTable, OwnedTable, VersionTaken
from ivm_core.store.packed_body import PackedBody, pack_together

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ivm_core.store.location import Location

FORMAT = "tideview.format"
META = "tideview.meta"
FOLD_EVERY = 64
IN_CHECKPOINTS = (
    "nothing, if something else has removed or changed the file: put it back from a copy, or "
    "restore the flow from a checkpoint (flow.restore) into a new directory"
)
"""The report of a damaged tick log, which nothing else in the flow has."""
log = logger(__name__)
_UTC = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("seq", pa.int64()),
        ("kind", pa.string()),
        ("tick", pa.int64()),
        ("epoch", pa.int64()),
        ("at", _UTC),
        ("body", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Entry:
    """One entry of the log; `at` is the UTC time of writing, for people and retention only."""

    seq: int
    kind: str
    tick: int
    epoch: int
    at: datetime
    packed: PackedBody

    @property
    def body(self) -> dict[str, Any]:
        """What it says; to be read only."""
        return self.packed.body


_HELD: WeakValueDictionary[tuple[str, int], Entry] = WeakValueDictionary()
"""Entries by table and place: readers and watchers of one flow in one process share them."""


class TickLog:
    """All entries in order, and the one way to add the next."""

    def __init__(self, table: OwnedTable) -> None:
        """Read every entry; `CorruptStore` where some are missing. Use `create` or `open`."""
        self._table = table
        self._read: set[str] = set()
        self._swept: list[DataFile] = []
        self.entries: list[Entry] = []
        self._packed = 0
        self._read_new_files()

    @classmethod
    def create(cls, location: Location, format_version: int, meta: Mapping[str, Any]) -> TickLog:
        """Make an empty log; `TickConflict` where there is one already."""
        fault_point("before:ticklog.create")
        properties = {
            FORMAT: str(format_version),
            META: json.dumps(dict(meta), sort_keys=True, separators=(",", ":")),
        }
        try:
            table = OwnedTable.create(location, SCHEMA, properties)
        except VersionTaken as error:
            raise TickConflict("a flow was made here in the meantime", location.uri) from error
        fault_point("after:ticklog.create")
        return cls(table)

    @classmethod
    def open(cls, location: Location, newest_format: int | None = None) -> TickLog:
        """Open a log: `NotAFlow` where there is none, `NewerFormat` past `newest_format`."""
        try:
            table = OwnedTable.open(location)
        except NoTable as error:
            raise NotAFlow("there is no flow here", location.uri) from error
        except CorruptStore as error:
            raise CorruptStore(error.what, IN_CHECKPOINTS) from error
        if not table.properties.get(FORMAT, "").isdigit() or table.schema.names != SCHEMA.names:
            raise NotAFlow("the Delta table here is not a flow's tick log", location.uri)
        written = int(table.properties[FORMAT])
        if newest_format is not None and written > newest_format:
            raise NewerFormat(
                f"the flow has format {written}, this version knows formats up to {newest_format}",
                location.uri,
            )
        return cls(table)

    @property
    def version(self) -> int:
        """The Delta version that this handle has seen."""
        return self._table.version

    @property
    def format_version(self) -> int:
        """The format that the flow was made with."""
        return int(self._table.properties[FORMAT])

    @property
    def meta(self) -> dict[str, Any]:
        """What `create` was given."""
        read: dict[str, Any] = json.loads(self._table.properties[META])
        return read

    def refresh(self) -> bool:
        """Read entries that others have written since; whether there were any."""
        before = len(self.entries)
        if self._table.refresh():
            self._read_new_files()
        return len(self.entries) != before

    def append(self, kind: str, tick: int, epoch: int, body: Mapping[str, Any]) -> Entry:
        """Write the next entry; `TickConflict` when another writer was first.

        `body` is JSON: values that JSON can't carry (NaN among them) are a `ValueError`.
        """
        return self.extend(tick, epoch, [(kind, body)])[0]

    def extend(
        self, tick: int, epoch: int, bodies: Iterable[tuple[str, Mapping[str, Any]]]
    ) -> list[Entry]:
        """Write the next entries, given as kinds and bodies, all of them or none; as `append`."""
        at = datetime.now(UTC)
        return self._put(
            [Entry(0, kind, tick, epoch, at, PackedBody.of(body)) for kind, body in bodies]
        )

    def adopt(self, entries: Iterable[Entry]) -> list[Entry]:
        """Write entries of another log behind those that are here, in one commit; as they are then.

        `TickConflict` when another writer was first.
        """
        return self._put(entries)

    def _put(self, entries: Iterable[Entry]) -> list[Entry]:
        before = len(self.entries)
        added = [replace(entry, seq=before + at) for at, entry in enumerate(entries)]
        fault_point("before:ticklog.entry_file")
        file = self._write(added)
        fault_point("after:ticklog.entry_file")
        fault_point("before:ticklog.commit")
        try:
            self._table.commit([file])
        except VersionTaken as error:
            self._table.location.delete(file.path)
            raise TickConflict(
                f"another writer has added to this flow since entry {before}",
                self._table.location.uri,
            ) from error
        fault_point("after:ticklog.commit")
        self._take(added)
        self._read.add(file.path)
        if before // FOLD_EVERY != len(self.entries) // FOLD_EVERY:
            try:
                self._fold(before)
            except OSError as error:  # the entries themselves are there
                log.warning("folding the tick log is left for later: %s", error)
        return added

    def _fold(self, before: int) -> None:
        """Replace the newest run of small files by one; a lost race leaves them as they are.

        `before` is how many entries there were when it was looked last.
        """
        size = FOLD_EVERY
        while before // (size * FOLD_EVERY) != len(self.entries) // (size * FOLD_EVERY):
            size *= FOLD_EVERY
        small: list[DataFile] = []
        for file in sorted(self._table.files.values(), key=lambda file: file.path, reverse=True):
            if file.rows >= size:
                break
            small.append(file)
        if len(small) < 2:
            return
        fault_point("before:ticklog.fold")
        folded = self._write(self.entries[-sum(file.rows for file in small) :])
        try:
            self._table.commit([folded], small, data_change=False)
        except VersionTaken:
            self._table.location.delete(folded.path)
            return
        fault_point("after:ticklog.fold")
        self._read = set(self._table.files)
        for file in self._swept:
            fault_point("before:ticklog.sweep")
            self._table.location.delete(file.path)
            fault_point("after:ticklog.sweep")
        self._swept = small

    def _write(self, entries: list[Entry]) -> DataFile:
        path = f"n{entries[0].seq:012d}-{len(entries):06d}-{uuid.uuid4().hex}.parquet"
        content = entries_as_parquet(entries)
        with self._table.location.writing(path) as stream:
            stream.write(content)
        return DataFile(path, content.size, len(entries))

    def _read_new_files(self) -> None:
        """Take in files that were not read yet; a writer may fold them away meanwhile."""
        while True:
            fresh = [file for path, file in self._table.files.items() if path not in self._read]
            try:
                found = {each.seq: each for file in fresh for each in self._rows(file)}
                break
            except CorruptStore:
                if not self._table.refresh():
                    raise
        self._take(found[seq] for seq in sorted(found) if seq >= len(self.entries))
        self._read = set(self._table.files)
        if any(entry.seq != at for at, entry in enumerate(self.entries)):
            what = f"entries are missing from the tick log {self._table.location.uri}"
            raise CorruptStore(what, IN_CHECKPOINTS)

    def _take(self, entries: Iterable[Entry]) -> None:
        """Have these too, packed; one that another handle has already is not held twice."""
        for entry in entries:
            held = _HELD.setdefault((self._table.id, entry.seq), entry)
            self.entries.append(held if held == entry else entry)
        while len(self.entries) - self._packed >= FOLD_EVERY:
            run = self.entries[self._packed : self._packed + FOLD_EVERY]
            pack_together([entry.packed for entry in run])
            self._packed += FOLD_EVERY

    def _rows(self, file: DataFile) -> list[Entry]:
        try:
            with self._table.location.open_input(file.path) as stream:
                return entries_of_parquet(stream)
        except (OSError, pa.ArrowInvalid) as error:
            what = f"the tick log's file {file.path} can't be read: {error}"
            raise CorruptStore(what, IN_CHECKPOINTS) from error


def entries_as_parquet(entries: list[Entry]) -> pa.Buffer:
    """Entries as the content of a file."""
    rows = {name: [getattr(each, name) for each in entries] for name in SCHEMA.names[:4]}
    rows["at"] = [each.at for each in entries]
    rows["body"] = [each.packed.text for each in entries]
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(rows, schema=SCHEMA), sink, compression="zstd")
    return sink.getvalue()


def entries_of_parquet(stream: pa.NativeFile) -> list[Entry]:
    """Read back what `entries_as_parquet` wrote; `OSError`, `ArrowInvalid` for something else."""
    columns = parquet.ParquetFile(stream).read().to_pydict()
    return [
        Entry(seq, sys.intern(kind), tick, epoch, at, PackedBody(body))
        for seq, kind, tick, epoch, at, body in zip(
            *(columns[name] for name in SCHEMA.names), strict=True
        )
    ]
