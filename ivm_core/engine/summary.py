"""What a tick tells about itself; the certificate in the tick log says the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


@dataclass(frozen=True)
class ViewSummary:
    """One view, or node that views share, in one tick."""

    rows_out: int
    """Rows of the emitted delta, each row once whatever its weight."""
    deletions: int
    rows: int
    """Rows of the view after the tick."""
    skipped: bool
    digest: str
    """Digest of the emitted delta."""
    state_digest: str
    """Digest of the view after the tick."""
    duration_ms: float
    ways: Mapping[str, str]
    """How each node was evaluated, and why so."""


@dataclass(frozen=True)
class SourceSummary:
    """One source in one tick."""

    rows_in: int
    digest: str
    version: int | None = None
    way: str = "pushed"


@dataclass(frozen=True)
class StepSummary:
    """A committed tick."""

    tick: int
    logical_time: datetime
    rows_in: int
    rows_out: int
    duration_ms: float
    views: Mapping[str, ViewSummary]
    sources: Mapping[str, SourceSummary]
    shared: Mapping[str, ViewSummary] = field(default_factory=dict)
    """Nodes that several views read, each evaluated once for all of them."""
    statements: int = 0
    """Spark statements that ran."""
    commits: int = 0
    """Delta commits that were made."""
    phases_ms: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What was out of the ordinary: announced snapshot differences, repeated batches."""
    dropped: tuple[str, ...] = ()
    """Sources whose batch was dropped because its content was taken before."""
    recovered: bool = False
    """Whether this finished a tick that was killed."""

    def __str__(self) -> str:
        """For people: what came in, and a line for each view."""
        lines = [
            f"tick {self.tick} at {self.logical_time.isoformat(sep=' ')}: {self.rows_in} rows in, "
            f"{self.rows_out} out, {self.duration_ms:,.0f} ms"
        ]
        width = max((len(name) for name in self.views), default=0)
        for name, view in self.views.items():
            said = "skipped" if view.skipped else f"{view.rows_out} rows out"
            lines.append(f"  {name.ljust(width)}  {said}, {view.rows} rows, digest {view.digest}")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])
