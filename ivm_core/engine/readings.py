"""How many rows each way of a step has to read, and which way that and earlier ticks speak for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ivm_core.engine.costs import LOW, WHOLE
from ivm_core.engine.refolding import is_refoldable
from ivm_core.plan.nodes import CLOCKS, Join, Kept

if TYPE_CHECKING:
    from ivm_core.compile.program import StageProgram
    from ivm_core.engine.evaluation import ViewEvaluation
    from ivm_core.plan.nodes import Node


class Readings:
    """The rows that a step reads by every way, counted when they are asked for."""

    def __init__(self, view: ViewEvaluation, stage: StageProgram, dirty: frozenset[str]) -> None:
        """For a step of a view and the relations that changed."""
        self._view = view
        self._stage = stage
        self._dirty = dirty
        self._costs = view.relations.history.costs

    @property
    def has_choice(self) -> bool:
        """Whether the step could recompute all rows: its inputs are there as they were."""
        return bool(self._dirty) and self._view.knows_before(self._stage)

    def rows(self, way: str) -> int:
        """What a way reads: of the change on the driver, else from files."""
        if way == LOW:
            return self._changed
        return self._whole if way == WHOLE else self._by_delta + self._changed

    def why_whole(self, way: str) -> str:
        """Why all rows are cheaper than the delta by a way; else nothing."""
        if not self.has_choice:
            return ""
        relation = self._stage.stage.relation
        if self._costs.expected_ms(relation, way, self.rows(way)) is not None:
            seen = self._costs.why_whole(relation, way, self.rows(way), self._whole)
            if seen is not None:
                return seen
        if way == LOW or self._whole >= self.rows(way):
            return ""
        return f"{self._whole} rows to read, by delta {self.rows(way)}"

    def why_not_low(self) -> str:
        """Why the driver need not try: it has met too many rows for a change like this one."""
        return self._costs.why_not_low(self._stage.stage.relation, self._changed)

    @cached_property
    def _changed(self) -> int:
        changes = (self._view.known_change(name) for name in self._dirty)
        return sum(change.count for change in changes if change is not None)

    @cached_property
    def _rows(self) -> dict[str, int]:
        names = self._stage.stage.body.relations - set(CLOCKS)
        return {name: self._view.relations.row_count(name, self._view.upto) for name in names}

    @cached_property
    def _rows_now(self) -> dict[str, int]:
        came = {name: self._view.known_change(name) for name in self._rows}
        return {
            name: rows + max(0, change.net if (change := came[name]) else 0)
            for name, rows in self._rows.items()
        }

    @cached_property
    def _by_delta(self) -> int:
        return _read_by_delta(self._stage.stage.body, self._rows, self._dirty)

    @cached_property
    def _whole(self) -> int:
        stage = self._stage.stage
        if is_refoldable(self._view, self._stage):
            return _scanned(stage.body, self._rows_now)
        compares_own = stage.top is None or isinstance(stage.top, Kept)
        rows = (1 if compares_own else 2) * _scanned(stage.body, self._rows_now)
        if compares_own:
            rows += self._view.relations.row_count(stage.relation, self._view.upto)
        return rows


def _scanned(node: Node, rows: dict[str, int]) -> int:
    """Rows of all relations below, as often as they are read."""
    if not node.inputs:
        return sum(rows.get(name, 0) for name in node.relations)
    return sum(_scanned(child, rows) for child in node.inputs)


def _read_by_delta(node: Node, rows: dict[str, int], dirty: frozenset[str]) -> int:
    """Rows that the terms of all joins read beside the change."""
    if not isinstance(node, Join):
        return sum(_read_by_delta(child, rows, dirty) for child in node.inputs)
    total = 0
    for part in node.parts:
        if part.relations & dirty:
            total += _read_by_delta(part, rows, dirty)
            total += sum(_scanned(other, rows) for other in node.parts if other is not part)
    return total
