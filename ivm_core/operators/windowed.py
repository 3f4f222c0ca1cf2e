"""Window functions: OVER (PARTITION BY … ORDER BY …).

    Δω(A) = Σ over partitions k in ΔA:  ω((A + ΔA) where key = k)  −  ω(A where key = k)

A window's values depend on the rows of its partition alone (`operators.partitioned`). Functions
of one node share the partition, each has its own order and frame. Without PARTITION BY, a change
reaches as far as the frames do, where that can be told (`operators.windowed_around`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.operators.partitioned import PartitionedOperator
from ivm_core.operators.sql import column, named, select, tree_of

if TYPE_CHECKING:
    from sqlglot import exp

    from ivm_core.plan.partitioned import Windowed


class WindowedOperator(PartitionedOperator):
    """Rows beside the values of window functions."""

    def over(self, node: Windowed, source: exp.Query, beside: tuple[str, ...] = ()) -> exp.Query:
        """SELECT *, f() OVER (…): one SELECT for the calls that need nothing but what is there.

        Columns `beside` the input's are handed on.
        """
        there = [*node.input.columns, *beside]
        waiting = list(node.calls)
        query = source
        while waiting:
            ready = [call for call in waiting if call[1].columns <= set(there)]
            added = [named(tree_of(scalar), name) for name, scalar in ready]
            query = select([*(column(name) for name in there), *added], query)
            there += [name for name, _ in ready]
            waiting = [call for call in waiting if call not in ready]
        return select([column(name) for name in (*node.columns, *beside)], query)
