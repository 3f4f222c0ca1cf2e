"""How long what a flow has not read yet of a followed table is sure to stay there.

Delta lets go of commits by `delta.logRetentionDuration`, and of files that a newer version has no
use for by `delta.deletedFileRetentionDuration`. Until the first commit that nobody has read is
older than the shorter of the two, nothing that the flow needs can go. That looks at one commit, so
a sensor can afford it; `followed_retention.deadline` looks for the first file that really goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ivm_core.store.delta_actions import version_file
from ivm_core.store.followed_retention import FILES, LOG, commit, interval

if TYPE_CHECKING:
    from ivm_core.store.followed import FollowedTable


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
    kept = {key: interval(configuration.get(key, "")) or usual for key, usual in (FILES, LOG)}
    by = min(kept, key=lambda key: kept[key])
    return HistoryLeft(since, head.version, _committed_at(table, since + 1), kept[by], by)


def _committed_at(table: FollowedTable, version: int) -> datetime:
    for action in commit(table, version):
        made = action.get("commitInfo", {})
        moment = made.get("inCommitTimestamp", made.get("timestamp"))
        if moment is not None:
            return datetime.fromtimestamp(moment / 1000, UTC)
    name = version_file(version)
    entries = table.location.list("_delta_log")
    modified = next(entry.modified for entry in entries if entry.path.endswith(name))
    return datetime.fromtimestamp(modified, UTC)
