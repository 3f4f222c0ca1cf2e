"""Changing how far recursions that are there may go: what they mean stays."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ivm_core.plan.recursion import Limits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ivm_core.engine.core import Engine


def set_limits(
    engine: Engine, views: Iterable[str], iterations: int | None, rows: int | None
) -> None:
    """Let the components of views go this far, from the next tick on; None for as far as before."""
    stored = engine.history.views
    tied = {
        member: stored[member]
        for name in views
        for member in stored[engine.catalog.view_name(name)].component
    }
    wanted = {}
    for name, view in tied.items():
        before = Limits(*view.limits)
        now = (iterations or before.iterations, rows or before.rows)
        if now != view.limits:
            wanted[name] = now
    if wanted:
        engine.begin_writing()
        views_now = [replace(engine.history.views[n], limits=now) for n, now in wanted.items()]
        engine.extend([("text", {"view": view.body}) for view in views_now])
