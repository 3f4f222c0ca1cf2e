"""Folders of views that no definition needs any more: of views dropped or swapped away."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ivm_core.engine.history import History
    from ivm_core.engine.layout import Layout

log = logging.getLogger(__name__)


def delete_leftovers(layout: Layout, history: History) -> list[str]:
    """Delete what is left of former definitions; returns the paths. Nothing depends on it."""
    rows = {each.folder.casefold() for found in history.generations.values() for each in found}
    nodes = {view.kept_in.casefold() for view in history.views.values()}
    shared = {node.casefold() for node in history.shared}
    rows, nodes = rows | shared, nodes | shared
    deleted = []
    for folder in sorted(history.folders):
        if folder in rows and folder in nodes:
            continue
        root = layout.root.child("views")
        for entry in root.list(folder):
            is_rows = entry.path.rsplit("/", 1)[-1] == "rows"
            if folder in (rows if is_rows else nodes):
                continue
            try:
                root.delete(entry.path)
            except OSError as error:
                log.warning("%s is left for later: %s", entry.path, error)
            else:
                deleted.append(entry.path)
    return deleted
