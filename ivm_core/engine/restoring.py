"""Restoring a flow from a checkpoint: ticks replayed and compared, or traces copied as they are.

Either way traces are written first, where no log knows of them, and one commit to the flow's log
makes all of it visible. What a killed attempt leaves is deleted by the next writer: a file in the
flow's folder, put there first and deleted last, says that there may be something.
"""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from ivm_core.engine.catalog import Catalog
from ivm_core.engine.checkpointing import digests_of, story_mark
from ivm_core.engine.definitions import ViewDefinition
from ivm_core.engine.functions import Functions, python_functions
from ivm_core.engine.history import History
from ivm_core.engine.layout import FOLDERS
from ivm_core.engine.leftovers import delete_unfinished, is_empty
from ivm_core.engine.opening import FORMAT, RESTORING
from ivm_core.engine.replaying import DEFINING, replay_tick
from ivm_core.model.errors import CheckpointError, IvmError, NewerFormat, TickConflict
from ivm_core.model.names import TICK, check_relation_name
from ivm_core.store.checkpoint_folder import DELTA, CheckpointFolder, in_parallel
from ivm_core.store.delta_actions import DataFile
from ivm_core.store.faults import fault_point
from ivm_core.store.leases import claim_for_checkpoints
from ivm_core.store.location import Location
from ivm_core.store.owned_table import schema_of_json
from ivm_core.store.ticklog import entries_of_parquet
from ivm_core.store.trace import Trace
from ivm_core.store.trace_files import parse_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ivm_core.engine.core import Engine
    from ivm_core.store.checkpoint_folder import Manifest, Part
    from ivm_core.store.ticklog import Entry

NODE = re.compile(r"node_\d+")


@dataclass(frozen=True)
class Restored:
    """What was restored."""

    path: str
    number: int
    """Of the checkpoint."""
    kind: str
    tick: int
    made_at: str
    replayed: int
    """Ticks that were run again and compared; 0 for a full checkpoint."""
    functions: tuple[str, ...]
    """Python functions that views call: to be registered in every process that ticks them."""

    def __str__(self) -> str:
        """For people."""
        how = f"{self.replayed} ticks replayed, digests equal" if self.replayed else "not replayed"
        said = f"checkpoint {self.number} ({self.kind}) of {self.made_at}: tick {self.tick}, {how}"
        if self.functions:
            said += f"\n  register again to tick: {', '.join(self.functions)}"
        return said


def restore(engine: Engine, location: Location) -> Restored:
    """Restore the newest checkpoint into an empty flow; what is refused changes nothing."""
    engine.refresh()
    _refuse_unless_empty(engine)
    folder = CheckpointFolder(location)
    manifests = folder.chain()
    if not manifests:
        raise CheckpointError(
            "there is no checkpoint here", location.uri, "give the folder of a checkpoint"
        )
    newest = manifests[-1]
    if newest.flow_format > FORMAT:
        raise NewerFormat(
            f"the checkpoint is of a flow of format {newest.flow_format}, this version knows "
            f"formats up to {FORMAT}",
            location.uri,
        )
    used = manifests if newest.kind == DELTA else [newest]
    entries = [entry for each in used for entry in _entries(folder, each)]
    if len(entries) != newest.entries:
        raise folder.refusal(f"it has {len(entries)} entries of the log, not {newest.entries}")
    if newest.kind == DELTA:
        restored = _replaying(engine, folder, manifests, entries)
    else:
        restored = _copying(engine, folder, newest, entries)
    engine.begin_writing()
    _refuse_unless_empty(engine)
    fault_point("before:restore.mark")
    with engine.layout.root.open_output(RESTORING) as stream:
        stream.write(b"")
    fault_point("after:restore.mark")
    try:
        found = restored()
        engine.adopt(found)
    except TickConflict:
        raise
    except Exception as error:
        delete_unfinished(engine.layout, engine.log)
        if isinstance(error, IvmError):
            raise
        raise folder.refusal(f"{type(error).__name__}: {error}") from error
    delete_unfinished(engine.layout, engine.log)
    if newest.kind == DELTA:
        claim_for_checkpoints(engine.layout.root, location, engine.history.tick)
    return Restored(
        location.uri,
        newest.number,
        newest.kind,
        engine.history.tick,
        newest.made_at,
        engine.history.tick if newest.kind == DELTA else 0,
        tuple(sorted(newest.functions)),
    )


def _refuse_unless_empty(engine: Engine) -> None:
    root = engine.layout.root
    if not is_empty(engine.log):
        raise CheckpointError(
            f"the flow is not empty: it has {len(engine.history.sources)} sources, "
            f"{len(engine.history.live_views)} views and {engine.history.tick} ticks",
            root.uri,
            "restore into a new flow: IncrementalFlow.open on a folder that is not there yet",
        )
    strange = [
        name
        for name in FOLDERS
        if any(not entry.is_dir for entry in root.list(name, recursive=True))
    ]
    if strange and not root.exists(RESTORING):
        raise CheckpointError(
            f"the flow's folder has {', '.join(strange)}, of which its log knows nothing",
            root.uri,
            "restore into a new folder",
        )


def _entries(folder: CheckpointFolder, manifest: Manifest) -> list[Entry]:
    """The log of a checkpoint, of which nothing is believed that a flow couldn't have written."""
    folder.verify([manifest.log])
    try:
        with folder.open(manifest.log) as stream:
            entries = entries_of_parquet(stream)
        if not all(isinstance(entry.body, dict) for entry in entries):
            raise TypeError("an entry is no JSON object")
        return entries
    except (OSError, ValueError, TypeError, KeyError, RecursionError, pa.ArrowException) as error:
        raise folder.refusal(f"its log can't be read: {error}") from error


# --- a full checkpoint ---


def _copying(
    engine: Engine, folder: CheckpointFolder, manifest: Manifest, entries: list[Entry]
) -> Callable[[], list[Entry]]:
    _check_flow(folder, entries, manifest)
    tables: list[tuple[str, pa.Schema, str, tuple[Part, ...]]] = []
    for path, trace in manifest.traces.items():
        try:
            _check_folder(path)
            schema = schema_of_json(json.dumps(trace["schema"]))
            for part in trace["parts"]:
                parse_name(part.name)
                engine.layout.root.resolve(f"{path}/{part.name}")
            keys = str(trace["cluster_by"])
        except (ValueError, KeyError, TypeError, IvmError) as error:
            raise folder.refusal(f"its trace {path!r} can't be one: {error}") from error
        tables.append((path, schema, keys, trace["parts"]))

    def copy() -> list[Entry]:
        jobs = []
        for path, _, _, parts in tables:
            location = engine.layout.root.child(*path.split("/"))
            jobs += [_copy_job(folder, part, location) for part in parts]
        in_parallel(jobs)
        in_parallel([partial(_make_trace, engine, *table) for table in tables], "restore.trace")
        return entries

    return copy


def _make_trace(
    engine: Engine, path: str, schema: pa.Schema, keys: str, parts: tuple[Part, ...]
) -> None:
    """A trace of files that are copied."""
    location = engine.layout.root.child(*path.split("/"))
    bare = pa.schema([each for each in schema if each.name != TICK])
    made = Trace.open(location, bare, [key for key in keys.split(",") if key])
    files = [DataFile(part.name, part.bytes, part.rows) for part in parts]
    if files:
        made.adopt_files(files)


def _copy_job(folder: CheckpointFolder, part: Part, location: Location) -> Callable[[], None]:
    def copy() -> None:
        with location.open_output(part.name) as sink:
            folder.copy(part, sink)

    return copy


def _check_folder(path: str) -> None:
    """`ValueError` for a folder in which no flow keeps a trace."""
    kind, name, *inner = path.split("/")
    if kind not in FOLDERS or not name or not inner or inner[-1] not in ("rows", "state"):
        raise ValueError("no folder of a flow")
    nodes = inner[:-1]
    if len(nodes) > 1 or not all(NODE.fullmatch(each) for each in nodes):
        raise ValueError("no folder of a flow")


def _check_flow(folder: CheckpointFolder, entries: list[Entry], manifest: Manifest) -> None:
    """Fold the log and compile every view, as opening and ticking the flow will."""
    try:
        history = History()
        history.catch_up([replace(entry, seq=at) for at, entry in enumerate(entries)])
        if history.pending is not None or history.tick != manifest.tick:
            raise ValueError(f"it ends at tick {history.tick}, not at {manifest.tick}")
        for name in history.sources:
            check_relation_name(name, "source")
        for name in history.live_views:
            check_relation_name(name, "view")
        catalog = Catalog(history)
        for name in (*history.views, *history.shared):
            catalog.program(name)
    except Exception as error:
        raise folder.refusal(f"its log makes no flow: {error}") from error


# --- a delta checkpoint ---


def _replaying(
    engine: Engine, folder: CheckpointFolder, manifests: list[Manifest], entries: list[Entry]
) -> Callable[[], list[Entry]]:
    newest = manifests[-1]
    if entries and story_mark(entries, newest.format) != newest.mark:
        raise folder.refusal("its log is not the one that was stored")
    folder.verify(part for manifest in manifests for part in manifest.parts)
    _check_functions(engine.functions, folder, entries)
    rows = _StoredRows(folder, manifests)

    def run() -> list[Entry]:
        with tempfile.TemporaryDirectory(prefix="tideview-restore-") as place:
            log = Location(Path(place) / "ticks")
            shadow = engine.shadow(engine.layout.root, log_at=log)
            shadow.history.epoch = engine.history.epoch
            try:
                for entry in entries:
                    if entry.kind in DEFINING:
                        shadow.append(entry.kind, entry.body)
                    elif entry.kind == "commit":
                        replay_tick(shadow, entry, rows)
                        _compare(folder, entry, shadow.history.commits[entry.tick])
                    else:
                        raise folder.refusal(f"its log has an entry of kind {entry.kind!r}")
                return list(shadow.log.entries)
            finally:
                shadow.close()

    return run


def _check_functions(functions: Functions, folder: CheckpointFolder, entries: list[Entry]) -> None:
    """Every function that any definition calls, also of views that were dropped since."""
    bodies: list[Mapping[str, Any]] = []
    for entry in entries:
        if entry.kind == "view":
            bodies.append(entry.body)
        elif entry.kind == "commit":
            bodies += entry.body.get("altered", {}).values()
    try:
        views = [ViewDefinition.parse(body) for body in bodies]
    except (KeyError, TypeError, ValueError, IvmError) as error:
        raise folder.refusal(f"its log makes no flow: {error}") from error
    # a view has with it what its SQL functions were
    functions.check(replace(view, functions=python_functions(view)) for view in views)


def _compare(folder: CheckpointFolder, entry: Entry, again: Mapping[str, Any]) -> None:
    recorded, replayed = digests_of(entry.body), digests_of(again)
    for kind, found in recorded.items():
        for name, digests in found.items():
            again_has = replayed[kind].get(name)
            if again_has == digests:
                continue
            what, had, has = "digest", digests[0], again_has[0] if again_has else "none"
            if again_has is not None and has == had:
                what, had, has = "rows with the digest", digests[1], again_has[1]
            raise folder.refusal(
                f"tick {entry.tick} comes out differently: {kind.rstrip('s')} {name} has the "
                f"{what} {has} instead of {had}"
            )


class _StoredRows:
    """The pushed rows of a delta checkpoint, tick by tick; asked for ticks in their order."""

    def __init__(self, folder: CheckpointFolder, manifests: list[Manifest]) -> None:
        self._folder = folder
        self._parts: dict[str, list[Part]] = {}
        for manifest in manifests:
            for name, parts in manifest.sources.items():
                self._parts.setdefault(name, []).extend(parts)
        self._read: dict[str, pa.Table] = {}

    def __call__(self, source: str, tick: int, columns: Sequence[str]) -> pa.Table | None:
        """Rows of one tick, with these columns."""
        parts = self._parts.get(source, [])
        for part in [each for each in parts if each.last_tick < tick]:
            self._read.pop(part.path, None)
        found = []
        for part in parts:
            if part.first_tick <= tick <= part.last_tick:
                rows = self._rows(part)
                found.append(rows.filter(pc.equal(rows[TICK], tick)).select(columns))
        if not found:
            return None
        return pa.concat_tables(found)

    def _rows(self, part: Part) -> pa.Table:
        if part.path not in self._read:
            with self._folder.open(part) as stream:
                self._read[part.path] = parquet.ParquetFile(stream).read()
        return self._read[part.path]
