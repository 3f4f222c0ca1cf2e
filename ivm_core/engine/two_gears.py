"""A large change folded to groups, which go on on the driver if they are few.

A stream of millions of events that is counted by minute changes some thousand groups. Folding the
events is work for all of Spark, unless they are on the driver and it can add them up; bringing the
groups up to date is not.
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
from ivm_core.operators.accumulator import OnlySpark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from ivm_core.compile.program import StageProgram
    from ivm_core.engine.evaluation import ViewEvaluation
    from ivm_core.engine.gears import Rows
    from ivm_core.engine.stage_run import Statement
    from ivm_core.operators.aggregate import AggregateStatements
    from ivm_core.plan.nodes import Node
    from ivm_core.store.trace import Trace


DRIVER_ROWS = 500_000
"""Beyond so many rows Spark's two or more cores are worth a statement."""


DRIVER_GROUPS = 200_000
"""Groups of such a change that go on on the driver: what is known of them comes in columns."""


def is_chain(body: Node) -> bool:
    """Whether a change goes through one node after the other: there is nothing to look up."""
    return all(len(node.inputs) < 2 for node in body.walk())


class FoldedOnDriverRun(LowGearRun):
    """A large change that is on the driver, folded there; `TooLarge` where that needs Spark."""

    @staticmethod
    def is_for(view: ViewEvaluation, stage: StageProgram, dirty: frozenset[str]) -> bool:
        """Whether the stage folds a change that goes through a chain, and has all its rows."""
        if view.hydrates or stage.stage.aggregate is None or not is_chain(stage.stage.body):
            return False
        if statements_of(stage).is_extremal:
            return False
        changes = [view.known_change(name) for name in dirty]
        if not all(change is not None and change.table is not None for change in changes):
            return False
        return sum(change.count for change in changes if change is not None) <= DRIVER_ROWS

    def _folded(self, aggregate: AggregateStatements) -> Rows | None:
        try:
            table = self._folded_on_driver(aggregate)
        except OnlySpark as error:
            raise TooLarge(f"only Spark can fold {error}") from error
        if table.num_rows > DRIVER_GROUPS:
            raise TooLarge(f"{table.num_rows} groups change")
        return self._with_state(aggregate, table)


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

    def _without_statement(
        self,
        _node: Node,
        _then: Callable[[pa.Table], pa.Table],
        _reads: Mapping[str, Rows] | None = None,
    ) -> None:
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
