"""An aggregate over all rows that there are now, less the state that it had.

    acc(ΔA) = acc(A′) − acc(A)

It is what a full refresh reads, so it is taken where most of an input changes. Both runs do the
same; one goes on on the driver, for few groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.engine.costs import WHOLE
from ivm_core.engine.high_gear import HighGearRun, OnFiles
from ivm_core.engine.relations import LOCAL_ROWS
from ivm_core.engine.stage_run import statements_of
from ivm_core.engine.two_gears import FoldedBySparkRun
from ivm_core.operators.aggregate import state_name
from ivm_core.operators.operator import Form
from ivm_core.operators.scan import bound_name
from ivm_core.plan.nodes import CLOCKS

if TYPE_CHECKING:
    from ivm_core.compile.program import StageProgram
    from ivm_core.engine.evaluation import ViewEvaluation
    from ivm_core.engine.gears import Rows
    from ivm_core.engine.stage_run import StageRun, Statement
    from ivm_core.operators.aggregate import AggregateStatements


def is_refoldable(view: ViewEvaluation, stage: StageProgram) -> bool:
    """Whether a stage is an aggregate over relations that are all there as they are now."""
    if view.hydrates or stage.stage.aggregate is None:
        return False
    unread = {*view.inner, *view.inlined, *CLOCKS}
    return stage.stage.body.relations.isdisjoint(unread) and statements_of(stage).is_refoldable


def refolding_run(view: ViewEvaluation, stage: StageProgram, dirty: frozenset[str]) -> StageRun:
    """The run that fits the number of groups before the tick."""
    run = RefoldedToFewRun(view, stage, dirty)
    return run if run.groups_before <= LOCAL_ROWS else RefoldedRun(view, stage, dirty)


class _Refolding(OnFiles):
    """What the two have in common."""

    cost_way = WHOLE

    def __init__(self, view: ViewEvaluation, stage: StageProgram, dirty: frozenset[str]) -> None:
        """Prepare to render the stage over all rows."""
        super().__init__(view, stage, dirty)
        self.way = "recomputed from all rows"
        self._gone = self._with_gone_rows(self.relations.tick)

    @property
    def groups_before(self) -> int:
        """Rows of the state, as an upper bound of the groups."""
        trace = self._state_trace(statements_of(self.stage))
        return trace.rows_estimate(self.relations.history.committed, self.view.upto)

    def _fold_statement(self, aggregate: AggregateStatements) -> Statement | None:
        body = self.stage.stage.body
        lowering = self.view.lowering(frozenset(), self._gone)
        return self._rendered(
            f"refold {sorted(self._gone)}",
            lambda: aggregate.refold(lowering, lowering.types(body)),
        )

    def _fold_inputs(self, aggregate: AggregateStatements, fold: Statement) -> dict[str, Rows]:
        bound = {bound_name(name, Form.OLD): name for name in self.stage.stage.body.relations}
        reads = {
            name: self.relations.all_for_spark(relation)
            for name, relation in bound.items()
            if name in fold.names
        }
        state = self._stored(self._state_trace(aggregate), aggregate.state_schema)
        return {**reads, state_name(aggregate.output, Form.OLD): state}


class RefoldedRun(_Refolding, HighGearRun):
    """For many groups."""


class RefoldedToFewRun(_Refolding, FoldedBySparkRun):
    """For few groups; `TooLarge` where they have become many."""
