"""Project.

    Δ π(A) = π(ΔA)        linear

Over a delta with phantom rows expressions that may raise run after netting (see filter).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.operators.consolidation import guarded, settled
from ivm_core.operators.operator import Form
from ivm_core.operators.sql import named, select, tree_of, weight

if TYPE_CHECKING:
    from sqlglot import exp

    from ivm_core.operators.operator import Rendering
    from ivm_core.plan.nodes import Project


class ProjectOperator:
    """Computes one row from one row."""

    def render(self, node: Project, form: Form, rendering: Rendering) -> exp.Query | None:
        """SELECT expressions."""
        source = rendering.render(node.input, form)
        if source is None:
            return None
        total = {n: rendering.is_total(scalar, node.input) for n, scalar in node.outputs}
        was_settled = False
        if not all(total.values()):
            source, was_settled = settled(source, node.input, form, rendering)
        outputs = []
        for name, scalar in node.outputs:
            tree = tree_of(scalar)
            if was_settled and not total[name]:
                tree = guarded(tree)
            outputs.append(named(tree, name))
        if form is not Form.PLAIN:
            outputs.append(weight())
        return select(outputs, source)
