"""The files of a Delta log: which are missing, and checkpoints made again from the commits.

A checkpoint says nothing that the commits up to it don't say. So where it is lost or damaged and
all commits from the first one on are there, the table is opened by these, and has one again.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from ivm_core.model.secrets import logger
from ivm_core.store.delta_actions import LOG, version_file
from ivm_core.store.delta_words import said

if TYPE_CHECKING:
    from ivm_core.store.location import Location

HINT = "_last_checkpoint"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*parquet")
log = logger(__name__)


class LogFiles:
    """What there is of a table's log."""

    def __init__(self, location: Location) -> None:
        """List it."""
        self._location = location
        entries = [each for each in location.list(LOG) if not each.is_dir]
        sizes = {entry.path.rpartition("/")[2]: entry.size for entry in entries}
        self.commits = {int(found[1]) for name in sizes if (found := _COMMIT.fullmatch(name))}
        self.empty = {name for name, size in sizes.items() if not size}
        self._checkpoints = {
            name: int(found[1]) for name in sizes if (found := _CHECKPOINT.fullmatch(name))
        }
        self._hinted = self._read_hint() if HINT in sizes else None
        self._derived = [*self._checkpoints, *([HINT] if HINT in sizes else [])]

    @property
    def missing(self) -> list[str]:
        """Files that are gone: a checkpoint that the hint names, commits after the newest one."""
        known = [*self._checkpoints.values(), -1]
        versions = [*known, *self.commits, -1 if self._hinted is None else self._hinted]
        gone = [n for n in range(max(known) + 1, max(versions) + 1) if n not in self.commits]
        is_hinted = self._hinted is None or self._hinted in known
        hinted = [] if is_hinted else [f"{self._hinted:020d}.checkpoint.parquet"]
        return [*hinted, *map(version_file, gone)]

    def open_by_commits(self) -> DeltaTable | None:
        """The table, with its checkpoint made again; None where its commits are not enough."""
        newest = max(self.commits, default=-1)
        later = [each for each in (*self._checkpoints.values(), self._hinted or 0) if each > newest]
        if not self._derived or later or self.empty & {*map(version_file, self.commits)}:
            return None
        if len(self.commits) != newest + 1:
            return None
        place = self._location
        try:
            self._try_commits()
            for name in self._derived:
                place.delete(f"{LOG}/{name}")
            table = DeltaTable(place.uri, storage_options=place.storage_options or None)
        except (DeltaError, OSError, ValueError):
            return None
        log.warning("%s is read by its commits: its checkpoint was lost or damaged", place)
        try:
            table.create_checkpoint()
        except (DeltaError, OSError) as error:
            log.warning("%s has no checkpoint of version %s: %s", place, newest, said(error))
        return table

    def _try_commits(self) -> None:
        """Read the commits elsewhere: nothing is deleted where they are damaged themselves."""
        with tempfile.TemporaryDirectory(prefix="tideview-log-") as folder:
            (Path(folder) / LOG).mkdir()
            for name in map(version_file, self.commits):
                content = self._location.read_bytes(f"{LOG}/{name}")
                (Path(folder) / LOG / name).write_bytes(content)
            DeltaTable(folder)

    def _read_hint(self) -> int | None:
        try:
            return int(json.loads(self._location.read_bytes(f"{LOG}/{HINT}"))["version"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
