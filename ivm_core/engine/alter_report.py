"""What another definition makes of a view, as `alter_view` tells it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class AlterReport:
    """What another definition makes of a view."""

    view: str
    same_meaning: bool
    """Whether the text is another form of the stored one: then nothing is rebuilt."""
    fingerprint_before: str
    fingerprint: str
    tick: int | None = None
    """The tick that swapped; None where nothing was, or not yet."""
    prepared: str = ""
    """What the next definition is called until it is swapped, where it ticks beside the view."""
    columns_before: str = ""
    columns: str = ""
    rows_before: int = 0
    rows: int = 0
    inserted: int = 0
    """Rows that come, each as often as it is there; with other columns all are new."""
    deleted: int = 0
    sample: tuple[dict[str, Any], ...] = ()
    """Some of the rows that come and go, `_weight` says which."""
    digest_before: str = ""
    digest: str = ""
    downstream: Mapping[str, int] = field(default_factory=dict)
    """Changed rows of the views that read it, by name."""
    also: Mapping[str, AlterReport] = field(default_factory=dict)
    """The other views of the same call."""

    @property
    def swapped(self) -> bool:
        """Whether the view has the new definition now."""
        return self.tick is not None

    def __str__(self) -> str:
        """In a few lines."""
        if self.same_meaning:
            return f"view {self.view}: the same meaning ({self.fingerprint}), nothing is rebuilt"
        when = f"swapped in tick {self.tick}" if self.swapped else f"prepared as {self.prepared}"
        lines = [
            f"view {self.view}: {when}, {self.inserted} rows come, {self.deleted} go, "
            f"{self.rows_before} before, {self.rows} after"
        ]
        if self.columns != self.columns_before:
            lines.append(f"  columns: {self.columns}, before: {self.columns_before}")
        lines += [f"  {name}: {rows} changed rows" for name, rows in self.downstream.items()]
        return "\n".join([*lines, *(str(each) for each in self.also.values())])
