"""Consolidation: rows of the same identity become one, with the sum of their weights.

    net(A) = { (row, Σ weight) : Σ weight ≠ 0 }

Identity is that of bits, not SQL's equality: floating-point columns and maps are grouped by their
encoding, because GROUP BY takes −0.0 for 0.0, and no heed of the order of a map's entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.model.names import WEIGHT
from ivm_core.model.types import has_float, has_map
from ivm_core.operators.operator import Form
from ivm_core.operators.row_identity import encoded_column
from ivm_core.operators.sql import column, named, number, select, weight

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.model.types import DataType
    from ivm_core.operators.operator import Rendering
    from ivm_core.plan.nodes import Node


def goes_by_bits(data_type: DataType) -> bool:
    """Whether SQL has no equality of values of this type, or one coarser than that of bits."""
    return has_float(data_type) or has_map(data_type)


def consolidated(query: exp.Query, types: Mapping[str, DataType]) -> exp.Query:
    """Net the rows of a weighted query whose columns have these types."""
    outputs: list[exp.Expr] = []
    groups: list[exp.Expr] = []
    for name, data_type in types.items():
        if goes_by_bits(data_type):
            groups.append(encoded_column(column(name), data_type))
            outputs.append(named(exp.AnyValue(this=column(name)), name))
        else:
            groups.append(column(name))
            outputs.append(column(name))
    outputs.append(named(exp.Sum(this=weight()), WEIGHT))
    netted = select(outputs, query)
    if groups:
        netted = netted.group_by(*groups, copy=False)
    return select([exp.Star()], netted).where(
        exp.NEQ(this=weight(), expression=number(0)), copy=False
    )


def settled(
    query: exp.Query, node: Node, form: Form, rendering: Rendering
) -> tuple[exp.Query, bool]:
    """The query netted if it may hold phantom rows, and whether it was."""
    if form is Form.PLAIN or not rendering.has_phantoms(node, form):
        return query, False
    return consolidated(query, rendering.types(node)), True


def guarded(tree: exp.Expr) -> exp.Expr:
    """The expression where the net weight is not zero; keeps Spark from evaluating it earlier."""
    return exp.case().when(exp.NEQ(this=weight(), expression=number(0)), tree)
