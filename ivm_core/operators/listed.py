"""VALUES: rows that are written out.

Δ = nothing: they are there from the first tick on and never change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.model.names import WEIGHT
from ivm_core.operators.operator import Form
from ivm_core.operators.sql import column, named, number, select, tree_of

if TYPE_CHECKING:
    from ivm_core.operators.operator import Rendering
    from ivm_core.plan.nodes import Listed


class ListedOperator:
    """Renders the rows."""

    def render(self, node: Listed, form: Form, rendering: Rendering) -> exp.Query | None:
        """SELECT columns FROM VALUES (…), (…)."""
        if form is Form.DELTA:
            return None
        rows = [exp.Tuple(expressions=[tree_of(each) for each in row]) for row in node.rows]
        names = [exp.to_identifier(name, quoted=True) for name in node.names]
        alias = exp.TableAlias(this=exp.to_identifier("rows"), columns=names)
        outputs: list[exp.Expr] = [column(name) for name in node.names]
        if form is not Form.PLAIN:
            outputs.append(named(exp.cast(number(1), "BIGINT", dialect="spark"), WEIGHT))
        return select(outputs, exp.Values(expressions=rows, alias=alias))
