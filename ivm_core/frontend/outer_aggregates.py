"""Aggregates of a query that its subqueries call.

    SELECT k FROM t GROUP BY k HAVING EXISTS (SELECT 1 FROM u WHERE u.y > MAX(t.x))

MAX(t.x) is over the groups of the query around the subquery. It becomes a column of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.aggregates import aggregate_calls, text
from ivm_core.frontend.outer import outer_columns
from ivm_core.frontend.spelling import plan_column
from ivm_core.operators.sql import scalar_of, unchanged
from ivm_core.plan.nodes import Project

if TYPE_CHECKING:
    from ivm_core.plan.nodes import Node

TABLE = "?aggregates"


class OuterAggregates:
    """The aggregates of one SELECT that its subqueries call."""

    def __init__(self) -> None:
        self._found: dict[str, exp.Expr] = {}

    @property
    def calls(self) -> list[exp.Expr]:
        """Each once."""
        return list(self._found.values())

    def taken_from(self, tree: exp.Expr) -> exp.Expr:
        """The expression with columns in place of such calls in its subqueries."""
        queries = [each for each in tree.find_all(exp.Query) if not _is_inner(each, tree)]
        for query in queries:
            outer = {id(each) for each in outer_columns(query)}
            for call in aggregate_calls([query]):
                columns = list(call.find_all(exp.Column))
                if columns and all(id(each) in outer for each in columns):
                    for same in [each for each in query.walk() if each == call]:
                        same.replace(self._column(call))
        return tree

    def _column(self, call: exp.Expr) -> exp.Column:
        self._found.setdefault(text(call), call.copy())
        return exp.column(self._name(list(self._found).index(text(call))), table=TABLE)

    @staticmethod
    def _name(place: int) -> str:
        return f"aggregate_{place}"

    def beside(self, node: Node, values: list[exp.Expr]) -> Node:
        """The groups with columns of these values, those of the calls."""
        if not values:
            return node
        named = [
            (plan_column(TABLE, self._name(place)), scalar_of(value))
            for place, value in enumerate(values)
        ]
        return Project(node, (*unchanged(node.columns), *named))


def _is_inner(query: exp.Expr, tree: exp.Expr) -> bool:
    """Whether a query stands in another one within an expression."""
    parent = query.parent
    while parent is not None and parent is not tree.parent:
        if isinstance(parent, exp.Query):
            return True
        parent = parent.parent
    return False
