"""Checkpoints: what is new in the sources, or all that a flow has stored, as a folder elsewhere.

A delta checkpoint has the flow's definitions, certificates and pushed rows; from these a flow is
restored by replaying its ticks (`restoring.py`). A full one has the log and every trace as they
are. docs/checkpoints.md describes both.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from ivm_core.engine.definitions import FED
from ivm_core.engine.functions import python_functions
from ivm_core.engine.layout import FOLDERS
from ivm_core.engine.native_memory import give_back
from ivm_core.engine.opening import FORMAT
from ivm_core.engine.replaying import DEFINING
from ivm_core.model.errors import CheckpointError, IvmError, OutOfRange, UserError
from ivm_core.store.checkpoint_folder import (
    DELTA,
    FULL,
    CheckpointFolder,
    Manifest,
    Part,
    copied,
    in_parallel,
)
from ivm_core.store.checkpoint_folder import FORMAT as CHECKPOINT_FORMAT
from ivm_core.store.leases import claim_for_checkpoints
from ivm_core.store.ticklog import entries_as_parquet
from ivm_core.store.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import BinaryIO

    from ivm_core.engine.core import Engine
    from ivm_core.store.location import Location
    from ivm_core.store.ticklog import Entry
    from ivm_core.store.trace_files import TraceFile


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was made, or the one that was there already when nothing is new."""

    path: str
    number: int
    kind: str
    """`delta` or `full`."""
    tick: int
    """The newest tick that it has."""
    is_new: bool
    parts: int
    """Files that were written, without the manifest."""
    rows: int
    bytes: int
    functions: tuple[str, ...]
    """Python functions that views call: no checkpoint has them, they have to be registered."""

    def __str__(self) -> str:
        """For people."""
        if not self.is_new:
            return f"nothing is new since checkpoint {self.number} at {self.path}, tick {self.tick}"
        return (
            f"checkpoint {self.number} ({self.kind}) at {self.path}, tick {self.tick}: "
            f"{self.parts} parts, {self.rows} rows, {self.bytes:,} bytes"
        )


def checkpoint(engine: Engine, location: Location) -> Checkpoint:
    """Store what is new since the last checkpoint there; it needn't be the writer who does."""
    folder, previous = _opened(engine, location, DELTA)
    engine.refresh()
    entries = story(engine.log.entries)
    known, since = (previous.entries, previous.tick) if previous else (0, 0)
    if previous is not None and (
        len(entries) < known or _mark_at(engine, entries[:known], previous) != previous.mark
    ):
        raise CheckpointError(
            "the checkpoints here are of another flow", location.uri, "give a folder of its own"
        )
    root = engine.layout.root
    folder.check_present()
    if previous is not None and len(entries) == known:
        claim_for_checkpoints(root, location, previous.tick)
        return _told(folder, previous, is_new=False)
    if previous is None:  # counts from the moment on when the first checkpoint is there
        claim_for_checkpoints(root, location, engine.history.tick)
    number = previous.number + 1 if previous else 1
    writing = _Writing(folder, number)
    log = writing.add_bytes("log.parquet", entries_as_parquet(entries[known:]))
    tick = engine.history.tick
    sources: dict[str, list[int]] = {}
    for name, source in engine.history.sources.items():
        if source.kind != FED or not engine.layout.has_source_rows(name):
            continue
        trace = engine.layout.source_rows(name, source.schema, source.primary_key)
        try:
            files = trace.files(engine.history.committed, tick, since)
        except OutOfRange as error:
            raise CheckpointError(
                f"source {name}: {error.what}, so it can't be replayed",
                location.uri,
                "use checkpoint_full",
            ) from error
        for at, file in enumerate(files):
            path = f"sources/{len(sources)}/{at}.parquet"
            sources.setdefault(name, []).append(writing.add_rows(path, trace, file, since, tick))
    made = _finished(
        engine,
        writing,
        previous,
        kind=DELTA,
        entries=entries,
        log=log,
        sources=lambda parts: {
            name: tuple(parts[at] for at in numbers) for name, numbers in sources.items()
        },
    )
    claim_for_checkpoints(root, location, made.tick)
    return made


def checkpoint_full(engine: Engine, location: Location) -> Checkpoint:
    """Store everything as it is, as the writer: state is folded while ticks run."""
    folder, previous = _opened(engine, location, FULL)
    engine.begin_writing()
    writing = _Writing(folder, previous.number + 1 if previous else 1)
    entries = engine.log.entries
    log = writing.add_bytes("log.parquet", entries_as_parquet(entries))
    found: dict[str, tuple[Trace, list[int]]] = {}
    for path, trace in _traces(engine.layout.root):
        files = trace.files(engine.history.committed)
        start = f"traces/{len(found)}"
        numbers = [
            writing.add_file(f"{start}/{at}.parquet", trace, file) for at, file in enumerate(files)
        ]
        found[path] = (trace, numbers)
    return _finished(
        engine,
        writing,
        previous,
        kind=FULL,
        entries=entries,
        log=log,
        traces=lambda parts: {
            path: {
                "schema": json.loads(trace.table.schema_json),
                "cluster_by": ",".join(trace.cluster_by),
                "parts": tuple(parts[at] for at in numbers),
            }
            for path, (trace, numbers) in found.items()
        },
    )


def story(entries: list[Entry]) -> list[Entry]:
    """Definitions and committed ticks: all that a replay needs of the log."""
    return [entry for entry in entries if entry.kind in DEFINING or entry.kind == "commit"]


def story_mark(
    entries: Sequence[Entry],
    written_as: int = CHECKPOINT_FORMAT,
    known: tuple[int, str] = (0, ""),
) -> str:
    """A fingerprint of all that entries of the story say; a replayed flow has the same.

    Format 1 has that of the last entry alone. `known` is the number of the first entries whose
    fingerprint is known, and that.
    """
    if written_as < 2:
        return _mark_of(entries[-1]) if entries else ""
    count, mark = known
    for entry in entries[count:]:
        mark = hashlib.sha256(f"{mark}{_mark_of(entry)}".encode()).hexdigest()
    return mark


def _mark_at(engine: Engine, entries: Sequence[Entry], of: Manifest | None = None) -> str:
    """The fingerprint of the first entries, without reading again what was marked before."""
    if of is not None and of.format < CHECKPOINT_FORMAT:
        return story_mark(entries, of.format)
    known = engine.marked if engine.marked[0] <= len(entries) else (0, "")
    mark = story_mark(entries, known=known)
    engine.marked = (len(entries), mark)
    return mark


def _mark_of(entry: Entry) -> str:
    body: Any = entry.body
    if entry.kind == "commit":
        body = [body["logical_time"], body.get("batch_id"), digests_of(body)]
    text = json.dumps([entry.kind, entry.tick, body], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def digests_of(body: Mapping[str, Any]) -> dict[str, dict[str, tuple[str, str, int]]]:
    """Digests and rows of sources, shared nodes and views in a certificate."""
    return {
        kind: {
            name: (each["digest"], each["state_digest"], each["rows"])
            for name, each in body.get(kind, {}).items()
        }
        for kind in ("sources", "shared", "views")
    }


def _opened(
    engine: Engine, location: Location, kind: str
) -> tuple[CheckpointFolder, Manifest | None]:
    """The folder, if checkpoints of this kind can be put there."""
    if location.is_entwined_with(engine.layout.root):
        raise UserError(
            "a flow and its checkpoints can't be inside of each other",
            location.uri,
            "give a folder elsewhere, on another disk if you can",
        )
    folder = CheckpointFolder(location)
    folder.check_usable()
    previous = folder.newest()
    if previous is not None and previous.kind != kind:
        raise CheckpointError(
            f"the folder has {previous.kind} checkpoints, this would be a {kind} one",
            location.uri,
            "give a folder of its own",
        )
    location.make()
    return folder, previous


def _traces(root: Location) -> list[tuple[str, Trace]]:
    """Every trace of a flow by its folder."""
    found = []
    waiting = [entry.path for name in FOLDERS for entry in root.list(name) if entry.is_dir]
    while waiting:
        path = waiting.pop()
        location = root.child(*path.split("/"))
        if location.exists("_delta_log"):
            found.append((path, Trace.open(location)))
        else:
            waiting += [entry.path for entry in root.list(path) if entry.is_dir]
    return sorted(found)


class _Writing:
    """Collects what has to be written, then writes it several files at once."""

    def __init__(self, folder: CheckpointFolder, number: int) -> None:
        self.folder = folder
        self.number = number
        self._start = folder.new_parts(number)
        self._jobs: list[Callable[[], Part]] = []

    def add_bytes(self, path: str, content: pa.Buffer) -> int:
        return self._add(lambda: self._copied(path, pa.BufferReader(content)))

    def add_file(self, path: str, trace: Trace, file: TraceFile) -> int:
        """The file as it is."""

        def copy() -> Part:
            with trace.location.open_input(file.path) as stream:
                return self._copied(path, stream, file)

        return self._add(copy)

    def add_rows(self, path: str, trace: Trace, file: TraceFile, since: int, tick: int) -> int:
        """The file as it is if all its ticks are asked for, else the rows of those that are."""
        if file.first_tick > since and file.last_tick <= tick:
            return self.add_file(path, trace, file)

        def extract() -> Part:
            rows = trace.rows_between(file, since, tick)
            with self.folder.location.open_output(f"{self._start}/{path}") as stream:
                parquet.write_table(rows, stream, compression="snappy")
            with self.folder.location.open_input(f"{self._start}/{path}") as stream:
                size, checksum = copied(stream, None)
            return Part(
                f"{self._start}/{path}", size, checksum, rows.num_rows, since + 1, file.last_tick
            )

        return self._add(extract)

    def written(self) -> list[Part]:
        """All parts, on disk now, in the order in which they were added."""
        return in_parallel(self._jobs, "checkpoint.part")

    @contextmanager
    def whole(self) -> Iterator[None]:
        """What is written in here becomes a checkpoint, or nothing of it stays."""
        try:
            yield
        except Exception as error:
            with suppress(OSError, IvmError):
                self.folder.location.delete(self._start)
            if not isinstance(error, OSError):
                raise
            raise CheckpointError(
                f"the checkpoint can't be written: {error}",
                self.folder.location.uri,
                "see to it that the folder can be written to and has room, and checkpoint again; "
                "the checkpoints that are there are as they were",
            ) from error

    def _add(self, job: Callable[[], Part]) -> int:
        self._jobs.append(job)
        return len(self._jobs) - 1

    def _copied(
        self, path: str, stream: BinaryIO | pa.NativeFile, file: TraceFile | None = None
    ) -> Part:
        full = f"{self._start}/{path}"
        with self.folder.location.open_output(full) as sink:
            size, checksum = copied(stream, sink)
        if file is None:
            return Part(full, size, checksum)
        return Part(full, size, checksum, file.rows, file.first_tick, file.last_tick, file.path)


def _finished(
    engine: Engine,
    writing: _Writing,
    previous: Manifest | None,
    *,
    kind: str,
    entries: list[Entry],
    log: int,
    sources: Callable[[list[Part]], dict[str, tuple[Part, ...]]] = lambda _: {},
    traces: Callable[[list[Part]], dict[str, dict[str, Any]]] = lambda _: {},
) -> Checkpoint:
    with writing.whole():
        parts = writing.written()
        history = engine.history
        functions = [python_functions(each) for each in history.views.values()]
        functions += [python_functions(each) for each in history.shared.values()]
        manifest = Manifest(
            number=writing.number,
            kind=kind,
            tick=history.tick,
            entries=len(entries),
            mark=_mark_at(engine, entries) if kind == DELTA else "",
            log=parts[log],
            sources=sources(parts),
            traces=traces(parts),
            digests={
                "sources": dict(history.source_digests),
                "views": {name: state.digest for name, state in history.states.items()},
            },
            functions={name: known for each in functions for name, known in each.items()},
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            flow_format=FORMAT,
            previous=previous.checksum if previous else "",
        )
        writing.folder.put(manifest)
    give_back()
    return _told(writing.folder, manifest, is_new=True)


def _told(folder: CheckpointFolder, manifest: Manifest, *, is_new: bool) -> Checkpoint:
    parts = manifest.parts if is_new else []
    return Checkpoint(
        folder.location.uri,
        manifest.number,
        manifest.kind,
        manifest.tick,
        is_new,
        len(parts),
        sum(part.rows for part in parts),
        sum(part.bytes for part in parts),
        tuple(sorted(manifest.functions)),
    )
