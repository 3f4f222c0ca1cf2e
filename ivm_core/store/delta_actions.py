"""The actions of Delta's transaction log that the flow's own tables consist of."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ivm_core.store.location import Location

LOG = "_delta_log"


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Parquet file of a table; `path` is relative to the table."""

    path: str
    size: int
    rows: int
    stats: str = ""


def read_actions(location: Location, version: int) -> list[dict[str, Any]]:
    """The actions of one commit; `FileNotFoundError` where there is none."""
    text = location.read_bytes(f"{LOG}/{version_file(version)}").decode()
    # not splitlines: statistics have texts, and these may have separators of Unicode in them
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def commit_text(
    add: list[DataFile],
    remove: list[DataFile],
    data_change: bool,
    note: Mapping[str, str],
    head: Sequence[dict[str, Any]] = (),
) -> str:
    """One commit as Delta stores it; `head` are actions that come before its files."""
    now = milliseconds()
    info = {
        "timestamp": now,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": "[]"},
        "engineInfo": "tideview",
        **note,
    }
    actions: list[dict[str, Any]] = [{"commitInfo": info}, *head]
    actions += [
        {
            "remove": {
                "path": file.path,
                "deletionTimestamp": now,
                "dataChange": data_change,
                "extendedFileMetadata": True,
                "partitionValues": {},
                "size": file.size,
            }
        }
        for file in remove
    ]
    actions += [
        {
            "add": {
                "path": file.path,
                "partitionValues": {},
                "size": file.size,
                "modificationTime": now,
                "dataChange": data_change,
                "stats": file.stats or json.dumps({"numRecords": file.rows}),
            }
        }
        for file in add
    ]
    return "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)


def version_file(version: int) -> str:
    """The name of a commit's file."""
    return f"{version:020d}.json"


def milliseconds() -> int:
    """Now, as Delta writes times."""
    return int(time.time() * 1000)
