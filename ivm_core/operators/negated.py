"""The negative of a relation, and rows repeated by a count.

    Δ(−A) = −ΔA        Δ repeat(A) = repeat(ΔA)        both linear

A negative has no rows of its own in SQL: it stands in sums, next to what it subtracts from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.model.names import WEIGHT
from ivm_core.operators.operator import Form
from ivm_core.operators.sql import column, named, negated, select, weight

if TYPE_CHECKING:
    from ivm_core.operators.operator import Rendering
    from ivm_core.plan.nodes import Negated, Repeated


class NegatedOperator:
    """Turns the sign of weights."""

    def render(self, node: Negated, form: Form, rendering: Rendering) -> exp.Query | None:
        """SELECT …, −weight; the plain form is there for the types of its columns."""
        source = rendering.render(node.input, form)
        if source is None or form is Form.PLAIN:
            return source
        return negated(source)


class RepeatedOperator:
    """Multiplies weights by a column."""

    def render(self, node: Repeated, form: Form, rendering: Rendering) -> exp.Query | None:
        """SELECT …, weight × times; the plain form is there for the types of its columns."""
        source = rendering.render(node.input, form)
        if source is None:
            return None
        outputs: list[exp.Expr] = [column(name) for name in node.columns]
        if form is Form.PLAIN:
            return select(outputs, source)
        product = exp.Mul(this=weight(), expression=column(node.times))
        outputs.append(named(product, WEIGHT))
        return select(outputs, source)
