"""Inner and cross join of n inputs.

    Δ(A₁ ⋈ … ⋈ Aₙ) = Σᵢ  A₁′ ⋈ … ⋈ Aᵢ₋₁′ ⋈ ΔAᵢ ⋈ Aᵢ₊₁ ⋈ … ⋈ Aₙ        (′ is NEW)

Bilinear: multiplication of weights distributes over their addition. Only terms with a changed
input are rendered. The terms together can hold pairs that exist in neither state; their weights
cancel (see `has_phantoms`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.model.names import WEIGHT
from ivm_core.operators.operator import Form
from ivm_core.operators.sql import column, named, select, tree_of, union_all, weight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ivm_core.operators.operator import Rendering
    from ivm_core.plan.nodes import Join
    from ivm_core.plan.scalar import Scalar


class JoinOperator:
    """Joins all inputs, starting with the one that changed."""

    def render(self, node: Join, form: Form, rendering: Rendering) -> exp.Query | None:
        """One product for a state, one term per changed input for the delta."""
        if form is not Form.DELTA:
            return self._product(node, [form] * len(node.parts), 0, rendering)
        terms = [
            self._product(node, forms, forms.index(Form.DELTA), rendering)
            for forms in terms_of(node, rendering.dirty)
        ]
        there = [term for term in terms if term is not None]
        return union_all(there) if there else None

    def _product(
        self, node: Join, forms: list[Form], first: int, rendering: Rendering
    ) -> exp.Query | None:
        queries = []
        for part, form in zip(node.parts, forms, strict=True):
            query = rendering.render(part, form)
            if query is None:
                return None
            queries.append(query)
        outputs: list[exp.Expr] = [column(name) for name in node.columns]
        if forms[0] is not Form.PLAIN:
            product: exp.Expr = weight("p0")
            for i in range(1, len(queries)):
                product = exp.Mul(this=product, expression=weight(f"p{i}"))
            outputs.append(named(product, WEIGHT))
        query = select(outputs, queries[first].subquery(f"p{first}", copy=False))
        placed = {first}
        waiting = list(node.conditions)
        for position in _order(node, first)[1:]:
            placed.add(position)
            ready = [c for c in waiting if {node.part_of(x) for x in c.columns} <= placed]
            waiting = [c for c in waiting if c not in ready]
            query = query.join(
                queries[position].subquery(f"p{position}", copy=False),
                on=exp.and_(*[tree_of(c) for c in ready]) if ready else None,
                join_type="INNER" if ready else "CROSS",
                copy=False,
            )
        if waiting:
            query = query.where(*[tree_of(c) for c in waiting], copy=False)
        return query


def terms_of(node: Join, dirty: frozenset[str]) -> Iterator[list[Form]]:
    """The forms of all parts, once for each part that has changed."""
    for changed, part in enumerate(node.parts):
        if not part.relations.isdisjoint(dirty):
            behind = len(node.parts) - changed - 1
            yield [*[Form.NEW] * changed, Form.DELTA, *[Form.OLD] * behind]


def is_dirty(relations: frozenset[str], rendering: Rendering) -> bool:
    """Whether any of the relations changed."""
    return not relations.isdisjoint(rendering.dirty)


def _order(node: Join, first: int) -> list[int]:
    """Positions of the parts, each connected to one before it where there is a condition."""
    order = [first]
    left = [i for i in range(len(node.parts)) if i != first]
    while left:
        chosen = next((i for i in left if _is_connected(node.conditions, node, order, i)), left[0])
        order.append(chosen)
        left.remove(chosen)
    return order


def _is_connected(
    conditions: tuple[Scalar, ...], node: Join, placed: list[int], candidate: int
) -> bool:
    for condition in conditions:
        owners = {node.part_of(name) for name in condition.columns}
        if candidate in owners and owners - {candidate} and owners <= {*placed, candidate}:
            return True
    return False
