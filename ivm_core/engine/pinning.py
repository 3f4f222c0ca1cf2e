"""The followed tables of a flow, and the versions of them that its ticks read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ivm_core.engine.definitions import DELTA
from ivm_core.model.errors import IvmError, SourceReplaced
from ivm_core.store.followed import FollowedTable
from ivm_core.store.followed_log import SourceVersion
from ivm_core.store.location import Location

if TYPE_CHECKING:
    from ivm_core.engine.definitions import SourceDefinition
    from ivm_core.engine.history import History

Pin = dict[str, Any]  # table_id and version


class PinnedTables(Mapping[str, FollowedTable]):
    """The tables of one tick; one that was made again since it was pinned is `SourceReplaced`."""

    def __init__(self, tables: FollowedTables, pins: Mapping[str, Pin]) -> None:
        """Nothing is looked at before a table is asked for."""
        self._tables = tables
        self._pins = pins
        self._checked: dict[str, FollowedTable] = {}

    def __getitem__(self, name: str) -> FollowedTable:
        if name not in self._checked:
            self._checked[name] = self._tables.pinned(name, self._pins[name])
        return self._checked[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pins)

    def __len__(self) -> int:
        return len(self._pins)


class FollowedTables:
    """The tables of a flow's followed sources, by the sources' names."""

    def __init__(self, history: History, storage_options: Mapping[str, str] | None = None) -> None:
        """Tables are opened when they are asked for, those in object stores with the options."""
        self._history = history
        self._options = storage_options
        self._open: dict[str, FollowedTable] = {}

    def table(self, name: str) -> FollowedTable:
        """The table, whatever is there now."""
        source = self._history.sources[name]
        if name not in self._open:
            self._open[name] = FollowedTable(Location(source.options["table"], self._options))
        self._open[name].asked = source.schema
        return self._open[name]

    def pinned(self, name: str, pin: Mapping[str, Any]) -> FollowedTable:
        """The table, if it is the one that was pinned; else `SourceReplaced`."""
        table = self.table(name)
        if table.head().table_id != pin["table_id"]:
            raise _replaced(self._history.sources[name])
        return table

    def newest(
        self, needed: Collection[str], *, only_unread: bool = False, only_needed: bool = False
    ) -> tuple[dict[str, Pin], list[str]]:
        """The versions that a tick reads, and what is out of the ordinary about them.

        With `only_needed` all other tables stay where they are, whatever became of them.
        `SourceReplaced` for a needed table that was made again, or that can't be read on because
        its schema changed right after what was read last. Of others that is only told.
        """
        pins: dict[str, Pin] = {}
        notes: list[str] = []
        for name, source in self._history.sources.items():
            before = self._history.pins.get(name)
            if source.kind != DELTA or (only_unread and before is not None):
                continue
            if only_needed and name not in needed:
                continue
            try:
                if before is None:
                    pins[name] = self._first(source)
                else:
                    since = SourceVersion(before["table_id"], int(before["version"]))
                    pins[name] = self._next(source, since, notes)
            except IvmError as error:
                if name in needed:
                    raise
                notes.append(f"{name} is not read on: {str(error).splitlines()[0]}")
        return pins, notes

    def _first(self, source: SourceDefinition) -> Pin:
        table = self.table(source.name)
        head = table.head()
        columns = table.own_schema(head.version).ddl
        if columns != source.schema.ddl:
            raise SourceReplaced(
                f"the table of source {source.name} has the columns ({columns}), "
                f"it was registered with ({source.schema.ddl})",
                where=_place(source),
            )
        return {"table_id": head.table_id, "version": head.version}

    def _next(self, source: SourceDefinition, since: SourceVersion, notes: list[str]) -> Pin:
        name = source.name
        table = self.table(name)
        head = table.head()
        change = table.classify(since, head)
        if change.kind == "replaced":
            raise _replaced(source)
        if change.stopped_by:
            if change.until == since.version:
                raise SourceReplaced(
                    f"the table of source {name} changed: {change.stopped_by}",
                    where=f"source {name}, version {change.until + 1}",
                )
            notes.append(f"{name} is read up to version {change.until}: {change.stopped_by}")
        changes = change.kind in ("insert_only", "changed")
        if changes and table.way(change) == "snapshot difference":
            notes.append(
                f"{name}: versions {since.version} to {change.until} are compared as snapshots, "
                "because the table has no change data feed"
            )
        return {"table_id": head.table_id, "version": change.until}


def _place(source: SourceDefinition) -> str:
    return f"source {source.name}, {source.options['table']}"


def _replaced(source: SourceDefinition) -> SourceReplaced:
    return SourceReplaced(
        f"the table of source {source.name} was replaced by another one", where=_place(source)
    )
