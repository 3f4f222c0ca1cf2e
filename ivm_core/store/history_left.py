"""How long what a flow has not read yet of a followed table is sure to stay there.

Delta lets go of commits by `delta.logRetentionDuration`, and of files that a newer version has no
use for by `delta.deletedFileRetentionDuration`. Until the first commit that nobody has read is
older than the shorter of the two, nothing that the flow needs can go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ivm_core.model.errors import HistoryLost
from ivm_core.store.delta_actions import read_actions, version_file

if TYPE_CHECKING:
    from ivm_core.store.followed import FollowedTable

DEFAULTS = {
    "delta.logRetentionDuration": timedelta(days=30),
    "delta.deletedFileRetentionDuration": timedelta(days=7),
}
UNITS = {
    "millisecond": timedelta(milliseconds=1),
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
    "month": timedelta(days=30),
    "year": timedelta(days=365),
}
_PART = re.compile(r"(\d+)\s*([a-z]+?)s?\b")


@dataclass(frozen=True)
class HistoryLeft:
    """What of a table is not read yet, and until when it is sure to be there."""

    since: int
    """The version that was read."""
    newest: int
    unread_since: datetime
    """When the first commit that was not read was made."""
    kept: timedelta
    by: str
    """The table's property that says how long it is kept."""

    @property
    def until(self) -> datetime:
        """From then on it may be gone."""
        return self.unread_since + self.kept


def history_left(table: FollowedTable, since: int) -> HistoryLeft | None:
    """What is not read after a version; None for nothing, `HistoryLost` where it is gone."""
    head = table.head()
    if head.version <= since:
        return None
    configuration = table.opened(since).metadata().configuration
    kept = {key: _duration(configuration.get(key), usual) for key, usual in DEFAULTS.items()}
    by = min(kept, key=lambda key: kept[key])
    return HistoryLeft(since, head.version, _committed_at(table, since + 1), kept[by], by)


def _committed_at(table: FollowedTable, version: int) -> datetime:
    try:
        actions = read_actions(table.location, version)
    except FileNotFoundError as error:
        raise HistoryLost(
            f"version {version} is gone from the log of the table before it was read",
            table.location.uri,
        ) from error
    for action in actions:
        made = action.get("commitInfo", {})
        moment = made.get("inCommitTimestamp", made.get("timestamp"))
        if moment is not None:
            return datetime.fromtimestamp(moment / 1000, UTC)
    name = version_file(version)
    entries = table.location.list("_delta_log")
    modified = next(entry.modified for entry in entries if entry.path.endswith(name))
    return datetime.fromtimestamp(modified, UTC)


def _duration(text: str | None, usual: timedelta) -> timedelta:
    """An interval as Delta writes it, such as `interval 1 week`; the usual one if it is none."""
    parts = _PART.findall((text or "").lower())
    if not parts or any(unit not in UNITS for _, unit in parts):
        return usual
    return sum((int(count) * UNITS[unit] for count, unit in parts), timedelta())
