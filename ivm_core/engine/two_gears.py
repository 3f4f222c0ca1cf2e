"""Both gears in one stage: Spark folds a large change to groups, which go on on the driver if few.

A stream of millions of events that is counted by minute changes some thousand groups. Folding the
events is work for all of Spark; bringing the groups up to date is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.engine.costs import HIGH
from ivm_core.engine.fetching import TooLarge
from ivm_core.engine.gears import LocalRows
from ivm_core.engine.high_gear import OnFiles
from ivm_core.engine.low_gear import LowGearRun
from ivm_core.engine.relations import LOCAL_ROWS, written_rows
from ivm_core.engine.stage_run import statements_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.compile.program import StageProgram
    from ivm_core.engine.evaluation import ViewEvaluation
    from ivm_core.engine.gears import Rows
    from ivm_core.engine.stage_run import Statement
    from ivm_core.operators.aggregate import AggregateStatements
    from ivm_core.plan.nodes import Node
    from ivm_core.store.trace import Trace


def is_chain(body: Node) -> bool:
    """Whether a change goes through one node after the other: there is nothing to look up."""
    return all(len(node.inputs) < 2 for node in body.walk())


class FoldedBySparkRun(OnFiles, LowGearRun):
    """A large change, folded in the high gear; `TooLarge` for many groups."""

    gear = "folded in high gear"
    cost_way = HIGH
    _folded_into: Trace | None = None

    @staticmethod
    def is_for(view: ViewEvaluation, stage: StageProgram, dirty: frozenset[str]) -> bool:
        """Whether the stage folds a change, and the driver needs nothing else for its groups."""
        if stage.stage.aggregate is None:
            return False
        # an extreme that is deleted has to be looked for in all rows of its group
        return not statements_of(stage).is_extremal or view.is_insert_only(stage, dirty)

    def execute(self) -> None:
        """Run the stage's statements and store what comes out."""
        super().execute()
        if self._folded_into is not None:
            self._folded_into.adopt(self.relations.tick, self.relations.epoch)

    def _without_statement(self, _node: Node) -> None:
        """The change is Spark's to fold."""

    def _fold(
        self, aggregate: AggregateStatements, statement: Statement, reads: Mapping[str, Rows]
    ) -> Rows | None:
        trace, schema = self._state_trace(aggregate), aggregate.state_schema
        target = trace.spark_target(self.relations.tick, self.relations.epoch)
        written = self._write(statement, reads, schema, target)
        if written.rows > LOCAL_ROWS:
            raise TooLarge(f"{written.rows} groups change")
        self._folded_into = trace
        return LocalRows(written_rows(target, schema), schema) if written.rows else None
