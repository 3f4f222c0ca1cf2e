r"""INTERSECT and EXCEPT [ALL].

    count(A ∩ B) = least(count(A), count(B))        count(A \ B) = greatest(count(A) − count(B), 0)

Rows are counted on both sides and repeated as often as that says (`compile.expansion`); without
ALL they are semi and anti joins of distinct rows. Here is the plain form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.operators.operator import Form
from ivm_core.operators.sql import column, named, select

if TYPE_CHECKING:
    from ivm_core.operators.operator import Rendering
    from ivm_core.plan.nodes import SetOperation


class SetOperationOperator:
    """The plain form, for the normalised query."""

    def render(self, node: SetOperation, form: Form, rendering: Rendering) -> exp.Query | None:
        """SELECT … FROM left EXCEPT ALL SELECT … FROM right."""
        if form is not Form.PLAIN:
            raise TypeError("a set operation is expanded before its delta is rendered")
        sides = []
        for side in (node.left, node.right):
            query = rendering.render(side, form)
            if query is None:
                return None
            pairs = zip(side.columns, node.columns, strict=True)
            sides.append(select([named(column(theirs), ours) for theirs, ours in pairs], query))
        name, _, every = node.kind.partition(" ")
        kind = exp.Intersect if name == "INTERSECT" else exp.Except
        whole = kind(this=sides[0], expression=sides[1], distinct=not every)
        return select([column(name) for name in node.columns], whole)
