"""One row, what a SELECT without FROM reads.

    Δ = nothing: it is there from the first tick on and never changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.model.names import WEIGHT
from ivm_core.operators.operator import Form
from ivm_core.operators.sql import named, number, select

if TYPE_CHECKING:
    from sqlglot import exp

    from ivm_core.operators.operator import Rendering
    from ivm_core.plan.nodes import Constant


class ConstantOperator:
    """Renders the row that has no columns."""

    def render(self, node: Constant, form: Form, rendering: Rendering) -> exp.Query | None:
        """SELECT 1 AS _weight."""
        if form is Form.DELTA:
            return None
        return select([named(number(1), WEIGHT)], None)
