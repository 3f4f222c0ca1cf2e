"""A Delta table that only the flow writes, committed at exactly the next version or not at all.

On a local disk a commit is one file linked into place: the link fails when the version is taken,
between processes too. Elsewhere `deltalake` puts it there if absent, with no retries. Either way
a writer that has not seen the newest version gets `VersionTaken` and nothing is rebased.
"""

from __future__ import annotations

import errno
import json
import os
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, TableFeatures
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import (
    AddAction,
    CommitProperties,
    PostCommitHookProperties,
    RemoveAction,
)

from ivm_core.model.errors import CorruptStore, IvmError
from ivm_core.model.secrets import logger, masked
from ivm_core.store.delta_actions import (
    LOG,
    DataFile,
    commit_text,
    milliseconds,
    read_actions,
    version_file,
)
from ivm_core.store.delta_words import cause, said
from ivm_core.store.faults import fault_point
from ivm_core.store.log_files import LogFiles
from ivm_core.store.syncing import sync_folder, sync_stream
from ivm_core.store.table_description import described, with_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ivm_core.store.location import Location

CHECKPOINT_EVERY = 16
"""Commits between Delta's checkpoints: `deltalake` reads them in as many threads at once."""
_FOREVER = "interval 36500 days"
_REMOVED_FILES_KEPT = "interval 30 days"
OWN_PROPERTIES = {
    "delta.logRetentionDuration": _FOREVER,
    "delta.deletedFileRetentionDuration": _REMOVED_FILES_KEPT,
    "delta.enableExpiredLogCleanup": "false",
    "delta.checkpointInterval": str(CHECKPOINT_EVERY),
}
log = logger(__name__)
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


class VersionTaken(IvmError):
    """Another writer has committed the version that this one was about to."""


class NoTable(IvmError):
    """There is no Delta table at the place."""


class OwnedTable:
    """The files of one table at one version, and the only way to change them."""

    def __init__(self, location: Location, table: DeltaTable) -> None:
        """Hold an opened table; use `create` or `open`."""
        self.location = location
        self._load(table)

    @classmethod
    def create(
        cls, location: Location, schema: pa.Schema, properties: Mapping[str, str] | None = None
    ) -> OwnedTable:
        """Make an empty table with all columns nullable; `VersionTaken` where there is one."""
        location.make()
        fault_point("before:table.create")
        try:
            table = DeltaTable.create(
                location.uri,
                DeltaSchema.from_arrow(schema),
                mode="error",
                configuration={**OWN_PROPERTIES, **(properties or {})},
                storage_options=location.storage_options or None,
                raise_if_key_not_exists=False,
            )
        except DeltaError as error:
            if not cls.is_there(location):
                what = masked(f"a table can't be made: {said(error)}")
                raise OSError(errno.EIO, what, location.uri) from cause(error)
            raise VersionTaken(f"there is a table at {location.uri}") from cause(error)
        fault_point("after:table.create")
        return cls(location, table)

    @classmethod
    def open(cls, location: Location) -> OwnedTable:
        """Open the newest version; `NoTable` where there is none, `CorruptStore` if unreadable."""
        return cls(location, _open(location))

    @property
    def schema_json(self) -> str:
        """The columns as Delta writes them down."""
        return str(self._table.schema().to_json())

    @staticmethod
    def is_there(location: Location) -> bool:
        """Whether the first commit of a table is there."""
        return location.exists(f"{LOG}/{version_file(0)}")

    def _load(self, table: DeltaTable) -> None:
        self._table = table
        self.version = table.version()
        self.id = str(table.metadata().id)
        """Which no other table has, not even a later one at the same place."""
        self.properties: dict[str, str] = dict(table.metadata().configuration)
        self.schema = pa.schema(table.schema())
        self.files = _active_files(table)

    def refresh(self) -> bool:
        """Load what others have committed since; whether there was anything."""
        before = self.version
        if not self.location.is_local:
            self._table.update_incremental()
            if self._table.version() != before:
                self._load(self._table)
        else:
            while self._read_next_commit():
                pass
        return self.version != before

    def _read_next_commit(self) -> bool:
        try:
            actions = read_actions(self.location, self.version + 1)
        except FileNotFoundError:
            return False
        for action in actions:
            if "metaData" in action or "protocol" in action:
                self._load(_open(self.location))
                return True
            if "add" in action:
                added = action["add"]
                rows = json.loads(added.get("stats") or "{}").get("numRecords", -1)
                self.files[added["path"]] = DataFile(added["path"], added["size"], rows)
            elif "remove" in action:
                self.files.pop(action["remove"]["path"], None)
        self.version += 1
        return True

    def commit(
        self,
        add: Iterable[DataFile],
        remove: Iterable[DataFile] = (),
        *,
        data_change: bool = True,
        note: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> int:
        """Commit these files as the next version and return it; `VersionTaken` if it is taken.

        After `VersionTaken` the table is as before until `refresh`. With `properties` the table has
        these from then on: by the same commit on a local disk, by one right after it elsewhere.
        """
        added, removed = list(add), list(remove)
        if self.version and self.version % CHECKPOINT_EVERY == 0:
            self._checkpoint()
        wanted = {**self.properties, **(properties or {})}
        if self.location.is_local:
            head = [described(self._table, self.schema_json, wanted)] if properties else []
            self._link(added, removed, data_change, note or {}, head)
        elif added or removed or not properties:
            self._transact(added, removed, data_change, note or {})
            self._set(properties or {})
        else:
            self._set(properties)
            self.version -= 1
        self.properties = wanted
        for file in removed:
            self.files.pop(file.path, None)
        self.files.update((file.path, file) for file in added)
        self.version += 1
        return self.version

    def commit_anew(
        self, schema: pa.Schema, add: Iterable[DataFile], properties: Mapping[str, str]
    ) -> None:
        """Exchange columns and files for others in one commit; `VersionTaken` if it moved on."""
        added, removed = list(add), list(self.files.values())
        wanted = {**self.properties, **properties}
        if self.location.is_local:
            head = with_columns(self._table, schema, wanted)
            self._link(added, removed, True, properties, head, DeltaSchema.from_arrow(schema))
        else:
            if any(pa.types.is_timestamp(of) and of.tz is None for of in schema.types):
                without_zone = TableFeatures.TimestampWithoutTimezone
                self._table.alter.add_feature(without_zone, allow_protocol_versions_increase=True)
                self.version = self._table.version()
            self._transact(added, [], True, properties, DeltaSchema.from_arrow(schema))
            self._set(properties)
        self._load(_open(self.location))

    def _set(self, properties: Mapping[str, str]) -> None:
        """Another commit, of properties alone."""
        if not properties:
            return
        try:
            self._table.alter.set_table_properties(dict(properties), raise_if_not_exists=False)
        except (CommitFailedError, DeltaError) as error:
            raise VersionTaken(f"properties of {self.location.uri}: {said(error)}") from cause(
                error
            )
        self.version += 1

    @property
    def note(self) -> dict[str, Any]:
        """What the newest commit says about itself; nothing where only a checkpoint has it."""
        try:
            actions = read_actions(self.location, self.version)
        except FileNotFoundError:
            return {}
        return next((dict(each["commitInfo"]) for each in actions if "commitInfo" in each), {})

    def ranges(self) -> pa.Table:
        """A row for each file: `path`, `num_records`, and by column `min.…`, `max.…` if known."""
        actions = _open(self.location).get_add_actions(flatten=True)
        return pa.RecordBatchReader.from_stream(actions).read_all()

    def add_columns(self, fields: Iterable[pa.Field]) -> None:
        """Give the table those of the columns that it lacks; `VersionTaken` if it moved on."""
        fault_point("before:table.columns")
        table = _open(self.location)
        there = set(pa.schema(table.schema()).names)
        lacking = [each for each in fields if each.name not in there]
        wanted = DeltaSchema.from_arrow(pa.schema(lacking)).fields
        try:
            if lacking:
                table.alter.add_columns(wanted, post_commithook_properties=_NO_HOOKS)
        except (CommitFailedError, DeltaError) as error:
            if _open(self.location).version() == table.version():
                what = masked(f"columns can't be added: {said(error)}")
                raise OSError(errno.EIO, what, self.location.uri) from cause(error)
            raise VersionTaken(f"columns of {self.location.uri}: {said(error)}") from cause(error)
        fault_point("after:table.columns")
        self._load(_open(self.location))

    def removed_since(self, moment: float) -> set[str]:
        """Paths of files that were removed from the table after a POSIX time.

        Commits below one that is gone are not looked at: logs are cut off at their old end.
        """
        removed: set[str] = set()
        for version in range(self.version, 0, -1):
            try:
                actions = read_actions(self.location, version)
            except FileNotFoundError:
                break
            times = [each["commitInfo"]["timestamp"] for each in actions if "commitInfo" in each]
            if times and max(times) < moment * 1000:
                break
            removed |= {each["remove"]["path"] for each in actions if "remove" in each}
        return removed

    def _checkpoint(self) -> None:
        """Write Delta's checkpoint of this version, so that opening stays fast."""
        path = f"{LOG}/{self.version:020d}.checkpoint.parquet"
        if self.location.exists(path):
            return
        try:
            fault_point("before:table.checkpoint")
            table = _open(self.location)
            table.create_checkpoint()
            fault_point("after:table.checkpoint")
        except (DeltaError, OSError) as error:
            log.warning(
                "%s has no checkpoint of version %s: %s", self.location, self.version, said(error)
            )
            return
        if not self.location.is_local:
            self._table = table

    def _link(
        self,
        add: list[DataFile],
        remove: list[DataFile],
        data_change: bool,
        note: Mapping[str, str],
        head: list[dict[str, Any]],
        schema: DeltaSchema | None = None,
    ) -> None:
        final = self.location.resolve(f"{LOG}/{version_file(self.version + 1)}")
        draft = self.location.resolve(f"{LOG}/.{uuid.uuid4().hex}.draft")
        fault_point("before:table.draft")
        try:
            with open(draft, "w", encoding="utf-8") as stream:
                stream.write(commit_text(add, remove, data_change, note, head))
                sync_stream(stream)
            fault_point("after:table.draft")
            os.link(draft, final)
            sync_folder(os.path.dirname(final))
        except FileExistsError as error:
            raise VersionTaken(f"version {self.version + 1} of {self.location.uri}") from error
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
                raise
            self._transact(add, [] if schema else remove, data_change, note, schema)
            if head:
                self._set(head[0]["metaData"]["configuration"])
        finally:
            with suppress(OSError):  # it is linked by now, or never will be
                os.unlink(draft)

    def _transact(
        self,
        add: list[DataFile],
        remove: list[DataFile],
        data_change: bool,
        note: Mapping[str, str],
        schema: DeltaSchema | None = None,
    ) -> None:
        """Through `deltalake`; with other columns all files that were there go."""
        now = milliseconds()
        table = self._table
        if table.version() != self.version:
            table.load_as_version(self.version)
        actions: list[AddAction | RemoveAction] = [
            AddAction(file.path, file.size, {}, now, data_change, file.stats) for file in add
        ]
        actions += [RemoveAction(file.path, data_change, now, file.size, {}) for file in remove]
        try:
            table.create_write_transaction(
                actions,
                "append" if schema is None else "overwrite",
                schema or table.schema(),
                commit_properties=CommitProperties(
                    custom_metadata=dict(note), max_commit_retries=0
                ),
                post_commithook_properties=_NO_HOOKS,
            )
        except (CommitFailedError, DeltaError) as error:
            if not self._is_ours(self.version + 1, add, remove):
                raise VersionTaken(
                    f"version {self.version + 1} of {self.location.uri}: {said(error)}"
                ) from cause(error)
        table.load_as_version(self.version + 1)

    def _is_ours(self, version: int, add: list[DataFile], remove: list[DataFile]) -> bool:
        """Whether a commit that was reported as failed has arrived after all."""
        try:
            actions = read_actions(self.location, version)
        except OSError:
            return False
        written = {each["add"]["path"] for each in actions if "add" in each}
        gone = {each["remove"]["path"] for each in actions if "remove" in each}
        return written == {each.path for each in add} and gone == {each.path for each in remove}


def _open(location: Location) -> DeltaTable:
    try:
        return DeltaTable(location.uri, storage_options=location.storage_options or None)
    except TableNotFoundError as error:
        raise NoTable(f"there is no Delta table at {location.uri}") from error
    except (DeltaError, OSError, ValueError) as error:
        files = LogFiles(location)
        found = files.open_by_commits()
        if found is not None:
            return found
        gone = f"; {files.missing[0]} is gone from its log" if files.missing else ""
        what = f"the Delta table at {location.uri} can't be read: {said(error)}{gone}"
        raise CorruptStore(what, CorruptStore.repairable) from cause(error)


def schema_of_json(text: str) -> pa.Schema:
    """The columns that `schema_json` wrote; `ValueError` for anything else."""
    try:
        return pa.schema(DeltaSchema.from_json(text))
    except (DeltaError, TypeError) as error:
        raise ValueError(said(error)) from cause(error)


def _active_files(table: DeltaTable) -> dict[str, DataFile]:
    actions = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()
    columns: dict[str, list[Any]] = {
        name: actions[name].to_pylist() for name in ("path", "size_bytes", "num_records")
    }
    return {
        path: DataFile(path, size, -1 if rows is None else rows)
        for path, size, rows in zip(*columns.values(), strict=True)
    }
