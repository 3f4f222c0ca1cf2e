"""GROUP BY with any deterministic aggregate: lists, percentiles, moments, a user's own.

    Δγ(A) = Σ over groups k in ΔA:  γ((A + ΔA) where key = k)  −  γ(A where key = k)

For aggregates that can't be folded; those that can are in `operators.aggregate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.operators.partitioned import PartitionedOperator
from ivm_core.operators.sql import column, named, select, tree_of

if TYPE_CHECKING:
    from sqlglot import exp

    from ivm_core.plan.partitioned import Grouped


class GroupedOperator(PartitionedOperator):
    """One row a group."""

    def over(self, node: Grouped, source: exp.Query) -> exp.Query:
        """SELECT keys, f(…) GROUP BY keys."""
        keys = [column(name) for name in node.partition]
        values = [named(tree_of(scalar), name) for name, scalar in node.calls]
        query = select([*keys, *values], source)
        return query.group_by(*[key.copy() for key in keys], copy=False) if keys else query
