"""Named points before and after each durable write, where a crash test ends the process.

`TIDEVIEW_KILL_AT=name` ends the process by SIGKILL the first time it passes that point,
`TIDEVIEW_KILL_AT=name:3` the third time, `TIDEVIEW_KILL_AT=any:40` at the fortieth point whatever
it is called. Without it a point costs one comparison.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from ivm_core.model.errors import InternalError, UserError

if TYPE_CHECKING:
    from collections.abc import Callable

KILL_AT = "TIDEVIEW_KILL_AT"
_WRITES = (
    "table.create",
    "table.columns",
    "table.draft",
    "table.checkpoint",
    "ticklog.create",
    "ticklog.entry_file",
    "ticklog.commit",
    "ticklog.fold",
    "ticklog.sweep",
    "trace.file",
    "trace.commit",
    "trace.adopt",
    "trace.compaction_file",
    "trace.compaction",
    "trace.sweep",
    "dedup.fold",
    "publish.file",
    "publish.commit",
    "checkpoint.part",
    "checkpoint.manifest",
    "restore.mark",
    "restore.trace",
    "restore.done",
    "views.leftovers",
)
ANY = "any"
FAULT_POINTS: tuple[str, ...] = tuple(
    f"{moment}:{write}" for write in _WRITES for moment in ("before", "after")
)

on_fault_point: Callable[[str], None] | None = None


def fault_point(name: str) -> None:
    """Pass a named point; a name that isn't in `FAULT_POINTS` is an `InternalError`."""
    if on_fault_point is not None:
        _check(name)
        on_fault_point(name)


def _check(name: str) -> None:
    if name not in FAULT_POINTS:
        raise InternalError(f"{name!r} is not a fault point")


class KillAt:
    """Ends this process by SIGKILL the n-th time it passes one point."""

    def __init__(self, setting: str) -> None:
        """Read `name`, `name:n` or `any:n`; anything else is a `UserError`."""
        moment, _, rest = setting.partition(":")
        write, _, count = rest.partition(":")
        self.name = f"{moment}:{write}"
        if moment == ANY:
            self.name, count = ANY, rest
        is_known = self.name == ANY or self.name in FAULT_POINTS
        if not is_known or (count and not count.isdigit()):
            raise UserError(
                f"{KILL_AT}={setting} names no fault point",
                fix=f"one of {', '.join((ANY, *FAULT_POINTS))}, and :n for the n-th time",
            )
        self.left = int(count or 1)

    def __call__(self, name: str) -> None:
        """Count the point, and end the process when it is time."""
        if self.name in (name, ANY):
            self.left -= 1
            if self.left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)


if os.environ.get(KILL_AT):
    on_fault_point = KillAt(os.environ[KILL_AT])
