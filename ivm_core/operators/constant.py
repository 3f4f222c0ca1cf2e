"""One row, what a SELECT without FROM reads.

Δ = nothing: it is there from the first tick on and never changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.model.names import WEIGHT
from ivm_core.operators.operator import Form
from ivm_core.operators.sql import named, number, select
from ivm_core.plan.nodes import PRESENT

if TYPE_CHECKING:
    from ivm_core.operators.operator import Rendering
    from ivm_core.plan.nodes import Constant


class ConstantOperator:
    """Renders the one row."""

    def render(self, node: Constant, form: Form, rendering: Rendering) -> exp.Query | None:
        """SELECT TRUE AS present."""
        if form is Form.DELTA:
            return None
        outputs = [named(exp.true(), PRESENT)]
        if form is not Form.PLAIN:
            outputs.append(named(exp.cast(number(1), "BIGINT", dialect="spark"), WEIGHT))
        return select(outputs, None)
