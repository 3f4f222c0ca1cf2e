"""Folders that no definition needs any more: of views dropped or swapped away, and their nodes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ivm_core.model.names import SHARED_PREFIX
from ivm_core.store.faults import fault_point

if TYPE_CHECKING:
    from ivm_core.engine.history import History
    from ivm_core.engine.layout import Layout

log = logging.getLogger(__name__)


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
