"""LATERAL VIEW [OUTER] explode, posexplode, inline, stack, json_tuple.

Δ gen(A) = gen(ΔA)        linear: each row makes its own rows
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.operators.consolidation import settled
from ivm_core.operators.operator import Form
from ivm_core.operators.sql import column, select, tree_of, weight

if TYPE_CHECKING:
    from ivm_core.operators.operator import Rendering
    from ivm_core.plan.nodes import Generate


class GenerateOperator:
    """Many rows from one."""

    def render(self, node: Generate, form: Form, rendering: Rendering) -> exp.Query | None:
        """SELECT … FROM input LATERAL VIEW generator."""
        source = rendering.render(node.input, form)
        if source is None:
            return None
        # a generator may raise on its argument, so it never sees rows that are not there
        source, _ = settled(source, node.input, form, rendering)
        outputs: list[exp.Expr] = [column(name) for name in node.columns]
        if form is not Form.PLAIN:
            outputs.append(weight())
        names = [exp.to_identifier(name, quoted=True) for name in node.names]
        alias = exp.TableAlias(this=exp.to_identifier("g", quoted=True), columns=names)
        lateral = exp.Lateral(
            this=tree_of(node.generator), view=True, outer=node.is_outer or None, alias=alias
        )
        query = select(outputs, source)
        query.set("laterals", [lateral])
        return query
