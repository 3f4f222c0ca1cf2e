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
from ivm_core.plan.nodes import Filter

if TYPE_CHECKING:
    from sqlglot import exp

    from ivm_core.operators.operator import Rendering


class FilterOperator:
    """Keeps the rows for which the predicate is true."""

    def render(self, node: Filter, form: Form, rendering: Rendering) -> exp.Query | None:
        """SELECT … WHERE predicate."""
        filters = _together(node, rendering)
        below = filters[0].input
        source = rendering.render(below, form)
        if source is None:
            return None
        predicates = [tree_of(each.predicate) for each in filters]
        if not rendering.is_total(filters[0].predicate, below):
            source, was_settled = settled(source, below, form, rendering)
            predicates = [guarded(each) if was_settled else each for each in predicates]
        outputs: list[exp.Expr] = [column(name) for name in node.columns]
        if form is not Form.PLAIN:
            outputs.append(weight())
        return select(outputs, source).where(*predicates, copy=False)


def _together(node: Filter, rendering: Rendering) -> list[Filter]:
    """Filters that can be one WHERE, the lowest first: none of several may raise."""
    found = [node]
    while rendering.is_total(found[-1].predicate, found[-1].input):
        below = found[-1].input
        if not isinstance(below, Filter) or not rendering.is_total(below.predicate, below.input):
            break
        found.append(below)
    return found[::-1]
