"""LEFT SEMI, LEFT ANTI and LEFT OUTER join, by what the tick program makes of them.

    A ⋉ B = A ⋈ δ(π(B))                        on equal columns: each matching key once
    A ⋉ B = A ⋈ δ(π(δ(π(A)) ⋈ B))              on any condition: each matching left row once
    A ▷ B = A − A ⋉ B                          a Z-set subtracts
    A ⟕ B = A ⋈ B + (A ▷ B) × NULL

So the delta is that of joins, counts and sums (`compile.expansion`); here is the plain form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.operators.operator import Form
from ivm_core.operators.sql import column, select, tree_of

if TYPE_CHECKING:
    from ivm_core.operators.operator import Rendering
    from ivm_core.plan.nodes import Match

JOINS = {"SEMI": "LEFT SEMI", "ANTI": "LEFT ANTI", "LEFT": "LEFT OUTER"}


class MatchOperator:
    """The plain form, for the normalised query."""

    def render(self, node: Match, form: Form, rendering: Rendering) -> exp.Query | None:
        """SELECT … FROM left LEFT … JOIN right ON conditions."""
        if form is not Form.PLAIN:
            raise TypeError("a match is expanded before its delta is rendered")
        left = rendering.render(node.left, form)
        right = rendering.render(node.right, form)
        if left is None or right is None:
            return None
        conditions = [tree_of(condition) for condition in node.conditions] or [exp.true()]
        query = select([column(name) for name in node.columns], left.subquery("p0", copy=False))
        return query.join(
            right.subquery("p1", copy=False),
            on=exp.and_(*conditions),
            join_type=JOINS[node.kind],
            copy=False,
        )
