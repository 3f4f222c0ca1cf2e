"""Recompute and compare: a stage over all rows, before and after the tick, and their difference.

    Δ f(A) = f(A + ΔA) − f(A)

It is what the delta rules have to give, row by row and bit by bit. It reads everything, so it is
taken where a flow asks for it as a reference, and where the delta would read even more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.engine.costs import WHOLE
from ivm_core.engine.high_gear import HighGearRun
from ivm_core.engine.layout import weighted
from ivm_core.operators.operator import Form
from ivm_core.operators.scan import bound_name
from ivm_core.operators.sql import column, negated, relation, select, union_all, weight

if TYPE_CHECKING:
    from sqlglot import exp

    from ivm_core.compile.program import StageProgram
    from ivm_core.engine.evaluation import ViewEvaluation
    from ivm_core.plan.nodes import Node

ASKED_FOR = "asked for by force_diff_based()"


class WholeRun(HighGearRun):
    """On all files, before and after."""

    cost_way = WHOLE

    def __init__(self, view: ViewEvaluation, stage: StageProgram, dirty: frozenset[str]) -> None:
        """Prepare to render the stage over all rows of these relations."""
        super().__init__(view, stage, dirty)
        self.way = "recomputed and compared"

    def _is_insert_only(self) -> bool:
        """Not asked: all rows are compared, as a reference for the rules."""
        return False

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
