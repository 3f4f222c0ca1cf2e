"""Recompute and compare: a stage over all rows, before and after the tick, and their difference.

    Δ f(A) = f(A + ΔA) − f(A)

It is what the delta rules have to give, row by row and bit by bit. It reads everything, so it is
taken where a flow asks for it as a reference, and where the delta would read even more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.engine.high_gear import HighGearRun
from ivm_core.engine.layout import weighted
from ivm_core.operators.operator import Form
from ivm_core.operators.scan import bound_name
from ivm_core.operators.sql import column, negated, relation, select, union_all, weight
from ivm_core.plan.nodes import Join, Kept

if TYPE_CHECKING:
    from sqlglot import exp

    from ivm_core.compile.program import StageProgram
    from ivm_core.engine.evaluation import ViewEvaluation
    from ivm_core.plan.nodes import Node

ASKED_FOR = "asked for by force_diff_based()"


class WholeRun(HighGearRun):
    """On all files, before and after."""

    def __init__(self, view: ViewEvaluation, stage: StageProgram, dirty: frozenset[str]) -> None:
        """Prepare to render the stage over all rows of these relations."""
        super().__init__(view, stage, dirty)
        self.way = "recomputed and compared"

    def _whole(self) -> Node | None:
        return self.stage.stage.body

    def _execute_rows(self) -> None:
        statement = self._rendered("rows", lambda: self._final(self._compared()))
        if statement is not None:
            reads = self._inputs(statement, self._reach())
            reads[self._own] = self._stored(self._rows_trace(), weighted(self.stage.output))
            self._emit(statement, reads)

    @property
    def _own(self) -> str:
        return bound_name(self.stage.stage.relation, Form.OLD)

    def _compared(self) -> exp.Query:
        """All rows of the view's query, without those that it has."""
        names = self.stage.output.names
        own = select([*(column(name) for name in names), weight()], relation(self._own))
        after = self.lowering.render(self.stage.stage.body, Form.NEW)
        return union_all([*([] if after is None else [after]), negated(own)])


def why_whole(view: ViewEvaluation, stage: StageProgram, dirty: frozenset[str]) -> str:
    """Why all rows are fewer than those that the delta in files would read; else nothing."""
    if not view.knows_before(stage):
        return ""
    rows = {name: view.relations.row_count(name, view.upto) for name in stage.stage.body.relations}
    by_delta = _read_by_delta(stage.stage.body, rows, dirty)
    compares_own = stage.stage.top is None or isinstance(stage.stage.top, Kept)
    whole = (1 if compares_own else 2) * _scanned(stage.stage.body, rows)
    if compares_own:
        whole += view.relations.row_count(stage.stage.relation, view.upto)
    return f"{whole} rows to read, by delta {by_delta}" if whole < by_delta else ""


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
