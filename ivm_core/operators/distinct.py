"""SELECT DISTINCT.

    Δδ(A) = { (row, +1) : count(A) = 0 < count(A + ΔA) }
          + { (row, −1) : count(A) > 0 = count(A + ΔA) }

It is the grouping by all columns without aggregates (`compile.stages.as_aggregate`): the hidden
count of rows is its state, and old and new row of a group cancel while the count stays positive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.operators.operator import Form
from ivm_core.operators.sql import column, select

if TYPE_CHECKING:
    from sqlglot import exp

    from ivm_core.operators.operator import Rendering
    from ivm_core.plan.nodes import Distinct


class DistinctOperator:
    """The plain form, for the normalised query."""

    def render(self, node: Distinct, form: Form, rendering: Rendering) -> exp.Query | None:
        """SELECT DISTINCT."""
        if form is not Form.PLAIN:
            raise TypeError("a DISTINCT's delta needs its state")
        source = rendering.render(node.input, Form.PLAIN)
        return select([column(name) for name in node.columns], source).distinct(copy=False)
