"""Finding the tick log of a flow, or making one where there is nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.model.errors import NotAFlow, TickConflict
from ivm_core.store.ticklog import TickLog

if TYPE_CHECKING:
    from ivm_core.engine.layout import Layout

FORMAT = 1
FIRST_COMMIT = "_delta_log/00000000000000000000.json"
RESTORING = "restoring"
"""A file that is there while a checkpoint is restored."""
KNOWN = {"ticks", "sources", "views", "shared", "readers", "published", "writer.lock", RESTORING}


def open_log(layout: Layout) -> TickLog:
    """The tick log; `NotAFlow` where there is something else, `NewerFormat` for a newer one."""
    root = layout.root
    if layout.log.exists(FIRST_COMMIT):
        return TickLog.open(layout.log, FORMAT)
    if root.is_local and root.exists() and not root.path.is_dir():
        raise NotAFlow("this is a file", where=root.uri)
    # a process that was killed while it made a flow leaves the log's folder without a commit
    found = [entry.path for entry in root.list()]
    strange = sorted(name for name in found if name not in KNOWN)
    strange += [f"ticks/{each.path}" for each in layout.log.list() if each.path != "_delta_log"]
    if strange:
        raise NotAFlow(
            f"the directory holds something else: {', '.join(strange[:5])}", where=root.uri
        )
    root.make()
    try:
        return TickLog.create(layout.log, FORMAT, {})
    except TickConflict:
        return TickLog.open(layout.log, FORMAT)
