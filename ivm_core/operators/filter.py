"""Filter.

    Δ σ(A) = σ(ΔA)        linear

Over a delta with phantom rows a predicate that may raise runs after netting, behind a test of
the net weight that Spark can't move below the netting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.operators.consolidation import guarded, settled
from ivm_core.operators.operator import Form
from ivm_core.operators.sql import column, select, tree_of, weight

if TYPE_CHECKING:
    from sqlglot import exp

    from ivm_core.operators.operator import Rendering
    from ivm_core.plan.nodes import Filter


class FilterOperator:
    """Keeps the rows for which the predicate is true."""

    def render(self, node: Filter, form: Form, rendering: Rendering) -> exp.Query | None:
        """SELECT … WHERE predicate."""
        source = rendering.render(node.input, form)
        if source is None:
            return None
        predicate = tree_of(node.predicate)
        if not rendering.is_total(node.predicate, node.input):
            source, was_settled = settled(source, node.input, form, rendering)
            predicate = guarded(predicate) if was_settled else predicate
        outputs: list[exp.Expr] = [column(name) for name in node.columns]
        if form is not Form.PLAIN:
            outputs.append(weight())
        return select(outputs, source).where(predicate, copy=False)
