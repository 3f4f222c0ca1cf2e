"""What the ways of a step have cost lately, and whether another one is the cheaper by that.

A step can fold a change on the driver (`low`), in files (`high`), or recompute all its rows and
compare (`whole`). The rows that each has to read are known before; what a row costs is not. So
certificates record time and rows of every step, and a way that was taken for work of a like size
is held to what it took. What is emitted is the same whichever way is taken.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

LOW, HIGH, WHOLE = "low", "high", "whole"
LIKE = 4.0
"""An observation speaks for work of up to so many times its size, and down to that part of it."""
REMEMBERED = 3
"""Observations of a way that are kept; the best of them counts, for the first ones are cold."""
FORGOTTEN_AFTER = 50
"""Ticks after which a way that was not taken is worth another try."""
MUCH = 1.5
"""How many times dearer a way must have been before another one is taken."""


@dataclass(frozen=True)
class Cost:
    """One run of a step."""

    way: str
    rows: int
    """Rows that the way had to read: of the change for `low`, from files for the others."""
    ms: float
    tick: int = 0
    beyond_low: tuple[int, str] | None = None
    """Where the driver was tried first and met too many rows: those of the change, and why."""

    @property
    def body(self) -> dict[str, Any]:
        """As a certificate records it."""
        body: dict[str, Any] = {"way": self.way, "rows": self.rows, "ms": round(self.ms, 1)}
        return body if self.beyond_low is None else {**body, "beyond_low": list(self.beyond_low)}


class Costs:
    """The last costs of every step, by the step's relation."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._seen: dict[tuple[str, str], deque[Cost]] = {}
        self._beyond_low: dict[str, tuple[int, int, str]] = {}
        self._newest = 0

    def add(self, tick: int, costs: Mapping[str, Mapping[str, Any]]) -> None:
        """Take in what a certificate says of a view's steps."""
        self._newest = max(self._newest, tick)
        for relation, each in costs.items():
            seen = self._seen.setdefault((relation, each["way"]), deque(maxlen=REMEMBERED))
            seen.append(Cost(each["way"], each["rows"], each["ms"], tick))
            if "beyond_low" in each:
                rows, reason = each["beyond_low"]
                self._beyond_low[relation] = (rows, tick, reason)

    def forget(self, view: str) -> None:
        """A view or node that is gone, or that is another one from now on."""
        self._seen = {key: each for key, each in self._seen.items() if not _is_of(key[0], view)}
        self._beyond_low = {n: each for n, each in self._beyond_low.items() if not _is_of(n, view)}

    def rename(self, old: str, new: str) -> None:
        """The last step of a view is called otherwise; the others keep their names."""
        for way in (LOW, HIGH, WHOLE):
            if (old, way) in self._seen:
                self._seen[new, way] = self._seen.pop((old, way))
        if old in self._beyond_low:
            self._beyond_low[new] = self._beyond_low.pop(old)

    def last(self, relation: str) -> Cost | None:
        """The newest cost of a step."""
        seen = (self._seen.get((relation, way)) for way in (LOW, HIGH, WHOLE))
        newest = [each[-1] for each in seen if each]
        return max(newest, key=lambda cost: cost.tick, default=None)

    def expected_ms(self, relation: str, way: str, rows: int) -> float | None:
        """What so many rows would take; None where nothing of that size was seen lately."""
        found = [
            cost.ms * max(1.0, rows / max(1, cost.rows))
            for cost in self._seen.get((relation, way), ())
            if cost.rows / LIKE <= rows <= cost.rows * LIKE
            and self._newest - cost.tick <= FORGOTTEN_AFTER
        ]
        return min(found, default=None)

    def why_not_low(self, relation: str, rows: int) -> str:
        """Why a change of so many rows is not tried on the driver; else nothing."""
        met, tick, reason = self._beyond_low.get(relation, (0, 0, ""))
        is_like = met <= LIKE * rows and self._newest - tick <= FORGOTTEN_AFTER
        return f"as in tick {tick}: {reason}" if reason and is_like else ""

    def why_whole(self, relation: str, way: str, rows: int, whole_rows: int) -> str | None:
        """Why all rows are cheaper than a way, empty where they are not, None for not known."""
        ours = self.expected_ms(relation, way, rows)
        all_rows = self.expected_ms(relation, WHOLE, whole_rows)
        if ours is None or all_rows is None:
            return None
        if ours <= MUCH * all_rows:
            return ""
        return f"the delta took {ours:,.0f} ms lately, all rows {all_rows:,.0f} ms"


def _is_of(relation: str, view: str) -> bool:
    return relation == view or relation.startswith(f"{view}#")
