"""Scan.

    Δ scan(R) = ΔR        NEW = OLD + Δ

The engine binds `R@old` and `R@delta` to what a tick needs of them: rows limited by keys on the
driver, or files of the trace. Joins are bilinear, so NEW need not be netted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.operators.operator import Form
from ivm_core.operators.sql import column, named, relation, select, union_all, weight

if TYPE_CHECKING:
    from sqlglot import exp

    from ivm_core.operators.operator import Rendering
    from ivm_core.plan.nodes import Scan


def bound_name(name: str, form: Form) -> str:
    """The temporary view that the engine binds for a relation's form."""
    return name if form is Form.PLAIN else f"{name}@{form.value}"


class ScanOperator:
    """Reads what the engine has bound."""

    def render(self, node: Scan, form: Form, rendering: Rendering) -> exp.Query | None:
        """SELECT the fields FROM the bound relation."""
        if form is Form.NEW:
            return self._new(node, rendering)
        if form is Form.DELTA and node.relation not in rendering.dirty:
            return None
        if form is Form.OLD and node.relation in rendering.empty:
            return None
        outputs = [
            named(column(field), name)
            for field, name in zip(node.fields, node.columns, strict=True)
        ]
        if form is not Form.PLAIN:
            outputs.append(weight())
        return select(outputs, relation(bound_name(node.relation, form)))

    def _new(self, node: Scan, rendering: Rendering) -> exp.Query | None:
        parts = [self.render(node, form, rendering) for form in (Form.OLD, Form.DELTA)]
        present = [part for part in parts if part is not None]
        return union_all(present) if present else None
