"""UNION ALL.

    Δ(A + B) = ΔA + ΔB        linear

Branches have been cast to common types before, so that one branch alone has the types of all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.operators.operator import Form
from ivm_core.operators.sql import column, named, select, union_all, weight

if TYPE_CHECKING:
    from sqlglot import exp

    from ivm_core.operators.operator import Rendering
    from ivm_core.plan.nodes import UnionAll


class UnionAllOperator:
    """Adds its branches."""

    def render(self, node: UnionAll, form: Form, rendering: Rendering) -> exp.Query | None:
        """The branches that are not empty, one after the other."""
        queries: list[exp.Query] = []
        for branch in node.branches:
            query = rendering.render(branch, form)
            if query is None:
                continue
            pairs = zip(branch.columns, node.columns, strict=True)
            outputs = [named(column(theirs), ours) for theirs, ours in pairs]
            if form is not Form.PLAIN:
                outputs.append(weight())
            queries.append(select(outputs, query))
        return union_all(queries) if queries else None
