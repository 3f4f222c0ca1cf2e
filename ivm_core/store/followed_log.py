"""What happened to a followed table between two versions, by the actions in its Delta log.

Operation names are not looked at: a commit that says `dataChange: false` (OPTIMIZE) changes
nothing, whatever it is called, and one that adds and removes is a change (RESTORE, overwrite).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

from ivm_core.model.errors import HistoryLost
from ivm_core.store.delta_actions import read_actions

if TYPE_CHECKING:
    from ivm_core.store.location import Location

Kind = Literal["nothing", "insert_only", "changed", "schema_changed", "replaced"]
CHANGE_FEED = "delta.enableChangeDataFeed"


@dataclass(frozen=True, slots=True)
class SourceVersion:
    """A version of a followed table; a table that was made again has another id."""

    table_id: str
    version: int


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file that a commit added; `removed_at` is set where a later one rewrote it."""

    path: str
    version: int
    rows: int
    size: int
    removed_at: int | None = None


@dataclass
class Feed:
    """Where the change data feed of a range has its rows."""

    files: list[str] = field(default_factory=list)
    """Those that are only the feed's."""
    rows: int | None = 0
    """Of files that are the table's too, since their commit has no others; None if unknown."""

    def add(self, actions: list[dict[str, Any]]) -> None:
        """Take in a commit."""
        own = [unquote(each["cdc"]["path"]) for each in actions if "cdc" in each]
        self.files += own
        for each in () if own else actions:
            body = each.get("add") or each.get("remove")
            if body is not None and body.get("dataChange", True):
                rows = _row_count(body)
                self.rows = None if rows is None or self.rows is None else self.rows + rows


@dataclass(frozen=True, slots=True)
class Change:
    """What to expect between two versions.

    `until` is the last version that can be read as deltas: where the schema changed, the one
    before, and `stopped_by` says why. `change_feed`: all of the range has a change data feed.
    """

    kind: Kind
    since: int
    until: int
    added: tuple[AddedFile, ...] = ()
    change_feed: bool = False
    deletion_vectors: bool = False
    rows_added: int = 0
    stopped_by: str = ""
    feed: Feed = field(default_factory=Feed, compare=False, repr=False)


def classify_commits(
    location: Location,
    since: int,
    until: int,
    schema: str,
    table_id: str,
    change_feed: bool,
    known: frozenset[str] = frozenset(),
) -> Change:
    """Read the commits after `since` up to `until`; `HistoryLost` where one is missing.

    Schema (as in the log), id and change data feed are those at `since`. A column that is added
    and may be NULL doesn't stop it if it is `known`.
    """
    files: dict[str, AddedFile] = {}
    removed = vectors = False
    feed, changes = change_feed, Feed()
    columns = _columns(schema)
    for version in range(since + 1, until + 1):
        actions = list(_actions(location, version))
        for body in (each["metaData"] for each in actions if "metaData" in each):
            if body["id"] != table_id:
                return Change("replaced", since, since, stopped_by=f"replaced at version {version}")
            before, columns = columns, _columns(body["schemaString"])
            if columns != before and not set(added_columns(before, columns) or "?") <= known:
                partial = _change(files, removed, since, version - 1, feed, vectors)
                why = f"the schema changed at version {version}"
                kind = "schema_changed" if version - 1 == since else partial.kind
                return replace(partial, kind=kind, stopped_by=why, feed=changes)
            feed = feed and body.get("configuration", {}).get(CHANGE_FEED, "").lower() == "true"
        for body in (each["remove"] for each in actions if "remove" in each):
            removed = removed or body.get("dataChange", True)
            vectors = vectors or bool(body.get("deletionVector"))
            path = unquote(body["path"])
            if path in files:
                files[path] = replace(files[path], removed_at=version)
        for body in (each["add"] for each in actions if "add" in each):
            vectors = vectors or bool(body.get("deletionVector"))
            if body.get("dataChange", True):
                rows = _row_count(body)
                path = unquote(body["path"])
                files[path] = AddedFile(path, version, -1 if rows is None else rows, body["size"])
        changes.add(actions)
    return replace(_change(files, removed, since, until, feed, vectors), feed=changes)


def added_columns(before: Any, after: Any) -> list[str]:
    """Names of the columns that a schema has more than another; none where anything else differs.

    They must be able to be NULL, which is what rows from before have in them.
    """
    old = {each["name"]: each for each in before["fields"]}
    new = {each["name"]: each for each in after["fields"]}
    more = [name for name in new if name not in old]
    is_same = all(new.get(name) == each for name, each in old.items())
    return more if is_same and all(new[name]["nullable"] for name in more) else []


def first_missing_file(location: Location, change: Change) -> str:
    """A file that the range's change data feed needs and that is not there; empty for none."""
    for version in range(change.since + 1, change.until + 1):
        actions = list(_actions(location, version))
        needed = [each["cdc"] for each in actions if "cdc" in each] or [
            each[kind]
            for each in actions
            for kind in ("add", "remove")
            if kind in each and each[kind].get("dataChange", True)
        ]
        for body in needed:
            path = unquote(body["path"])
            if "://" not in path and not location.exists(path):
                return path
    return ""


def _change(
    files: dict[str, AddedFile], removed: bool, since: int, until: int, feed: bool, vectors: bool
) -> Change:
    kind: Kind = "changed" if removed else "insert_only" if files else "nothing"
    rows = sum(max(file.rows, 0) for file in files.values())
    return Change(kind, since, until, tuple(files.values()), feed, vectors, rows)


def _actions(location: Location, version: int) -> list[dict[str, Any]]:
    try:
        return read_actions(location, version)
    except FileNotFoundError as error:
        raise HistoryLost(
            f"version {version} is gone from the log of the table before it was read",
            location.uri,
        ) from error


def _row_count(body: dict[str, Any]) -> int | None:
    """Rows of a file that was added or removed, where its statistics say it."""
    found: int | None = json.loads(body.get("stats") or "{}").get("numRecords")
    return found


def _columns(schema: str) -> Any:
    """The schema without what doesn't change rows: comments, defaults and the like."""
    return bare_schema(json.loads(schema))


def bare_schema(node: Any) -> Any:
    """A schema, or a part of one, as JSON, without what doesn't change rows."""
    if isinstance(node, list):
        return [bare_schema(each) for each in node]
    if not isinstance(node, dict):
        return node
    bare = {key: bare_schema(value) for key, value in node.items() if key != "metadata"}
    column = node.get("metadata", {}).get("delta.columnMapping.id")
    return bare if column is None else {**bare, "column": column}
