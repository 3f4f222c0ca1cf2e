"""When a followed table may let go of what a flow has yet to read, by its own settings.

A file that a later version removed, and the file of a change data feed, may be deleted by VACUUM
once `delta.deletedFileRetentionDuration` is over (a week); a commit may leave the log once
`delta.logRetentionDuration` is (30 days).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from ivm_core.model.errors import HistoryLost
from ivm_core.store.delta_actions import read_actions

if TYPE_CHECKING:
    from ivm_core.store.followed import FollowedTable

FILES = ("delta.deletedFileRetentionDuration", timedelta(days=7))
LOG = ("delta.logRetentionDuration", timedelta(days=30))
NEAR = 0.25
"""A warning comes when less than this share of a retention is left."""
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+?)s?\b")
_INTERVAL = re.compile(rf"(?:interval\s+)?(?:{_PART.pattern}\s*)+")
_SECONDS = {
    "millisecond": 0.001,
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86_400,
    "week": 604_800,
    "month": 2_592_000,
    "year": 31_536_000,
}


@dataclass(frozen=True)
class Deadline:
    """From `at` on something may be gone; `warn_from` is somewhat earlier."""

    at: datetime
    warn_from: datetime
    by: str
    """What takes it: VACUUM, or the cleaning of the log."""


def deadline(table: FollowedTable, version: int) -> Deadline | None:
    """When something may be gone that reading on from a version needs; None: nothing is at stake.

    `HistoryLost` where it is gone by now.
    """
    head = table.head().version
    if version >= head:
        return None
    settings = table.opened(head).metadata().configuration
    begun = _first(_committed_at(commit(table, version + 1)))
    removed = None
    for number in range(version + 1, head + 1):  # times grow with versions
        removed = _first(_removed_at(commit(table, number)))
        if removed is not None:
            break
    found = [
        _deadline(at, settings, setting, by)
        for at, setting, by in ((removed, FILES, "VACUUM"), (begun, LOG, "the table's log"))
        if at is not None
    ]
    return min(found, key=lambda each: each.at, default=None)


def commit(table: FollowedTable, version: int) -> list[dict[str, Any]]:
    """The actions of a commit; `HistoryLost` where it is gone."""
    try:
        return read_actions(table.location, version)
    except FileNotFoundError as error:
        raise HistoryLost(
            f"version {version} is gone from the log of the table before it was read",
            table.location.uri,
        ) from error


def _first(times: list[float]) -> float | None:
    return min(times, default=None)


def _removed_at(actions: list[dict[str, Any]]) -> list[float]:
    """When a commit let go of files, and when it wrote such that VACUUM takes in any case."""
    removed = [
        each["remove"]["deletionTimestamp"] / 1000
        for each in actions
        if each.get("remove", {}).get("deletionTimestamp")
    ]
    return removed + (_committed_at(actions) if any("cdc" in each for each in actions) else [])


def _committed_at(actions: list[dict[str, Any]]) -> list[float]:
    return [
        each["commitInfo"]["timestamp"] / 1000
        for each in actions
        if each.get("commitInfo", {}).get("timestamp")
    ]


def _deadline(
    since: float, settings: dict[str, str], setting: tuple[str, timedelta], by: str
) -> Deadline:
    name, usual = setting
    kept = interval(settings.get(name, "")) or usual
    begin = datetime.fromtimestamp(since, UTC)
    return Deadline(begin + kept, begin + kept * (1 - NEAR), by)


def interval(text: str) -> timedelta | None:
    """A duration as Delta writes it (`interval 30 days`); None for anything else."""
    words = text.strip().lower()
    parts = _PART.findall(words) if _INTERVAL.fullmatch(words) else []
    if not parts or any(unit not in _SECONDS for _, unit in parts):
        return None
    return timedelta(seconds=sum(float(count) * _SECONDS[unit] for count, unit in parts))
