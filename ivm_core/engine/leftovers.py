"""What nobody needs any more: of views dropped or swapped away, of nodes, of killed restores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.engine.layout import FOLDERS
from ivm_core.engine.opening import RESTORING
from ivm_core.model.names import SHARED_PREFIX
from ivm_core.model.secrets import logger
from ivm_core.store.faults import fault_point

if TYPE_CHECKING:
    from ivm_core.engine.history import History
    from ivm_core.engine.layout import Layout
    from ivm_core.store.ticklog import TickLog

log = logger(__name__)


def delete_leftovers(layout: Layout, history: History) -> list[str]:
    """Delete what is left of former definitions; returns the paths. Nothing depends on it."""
    rows = {each.folder.casefold() for found in history.generations.values() for each in found}
    nodes = {view.kept_in.casefold() for view in history.views.values()}
    shared = {node.casefold() for node in history.shared}
    deleted = []
    for folder in sorted(history.folders):
        if folder.startswith(SHARED_PREFIX):
            inside, keeps_rows, keeps_nodes = layout.shared, folder in shared, folder in shared
            folder = folder.removeprefix(SHARED_PREFIX)
        else:
            inside, keeps_rows, keeps_nodes = layout.views, folder in rows, folder in nodes
        if keeps_rows and keeps_nodes:
            continue
        for entry in inside.list(folder):
            is_rows = entry.path.rsplit("/", 1)[-1] == "rows"
            if keeps_rows if is_rows else keeps_nodes:
                continue
            fault_point("before:views.leftovers")
            try:
                inside.delete(entry.path)
            except OSError as error:
                log.warning("%s is left for later: %s", entry.path, error)
            else:
                fault_point("after:views.leftovers")
                deleted.append(entry.path)
    return deleted


def delete_unfinished(layout: Layout, log: TickLog) -> None:
    """Delete what a restore left that didn't come to its end, or its mark if it did."""
    root = layout.root
    if not root.exists(RESTORING):
        return
    if is_empty(log):
        for name in FOLDERS:
            root.delete(name)
    fault_point("before:restore.done")
    root.delete(RESTORING)
    fault_point("after:restore.done")


def is_empty(log: TickLog) -> bool:
    """Whether a flow has neither definitions nor ticks."""
    return all(entry.kind == "epoch" for entry in log.entries)
