"""ORDER BY … LIMIT … OFFSET.

    Δτ(A) = τ(A + ΔA) − τ(A)
    τ(A + ΔA) = τ(τ(A) + ΔA)      if as many rows of τ(A) + ΔA as the limit says sort up to the
                                  last of τ(A), or if τ(A) was all of A

So the input is asked again only where rows within the limit go and those behind them move up. The
order is total, so that the first rows are always the same ones (`compile.orders`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ivm_core.model.names import INTERNAL_PREFIX, PLACE
from ivm_core.model.schema import Field, Schema
from ivm_core.model.types import BIGINT
from ivm_core.operators.consolidation import consolidated
from ivm_core.operators.operator import Form
from ivm_core.operators.partitioned import PartitionedOperator, PartitionedStatements, repeated
from ivm_core.operators.scan import bound_name
from ivm_core.operators.sql import (
    column,
    named,
    number,
    relation,
    select,
    tree_of,
    union_all,
    weight,
)
from ivm_core.plan.partitioned import Top

if TYPE_CHECKING:
    from ivm_core.operators.operator import Rendering
    from ivm_core.plan.partitioned import Partitioned

IS_LAST = f"{INTERNAL_PREFIX}is_last"
COUNT = f"{INTERNAL_PREFIX}count"


class TopOperator(PartitionedOperator):
    """The first rows in an order."""

    def over(self, node: Top, source: exp.Query) -> exp.Query:
        """SELECT * ORDER BY … LIMIT n OFFSET m; with keys, the rows at these places of each."""
        if node.partition:
            return self._by_place(node, source)
        query: exp.Query = select([column(name) for name in node.columns], source)
        query = query.order_by(*[tree_of(scalar) for scalar in node.order], copy=False)
        if node.limit is not None:
            query = query.limit(number(node.limit), copy=False)
        return query.offset(number(node.offset), copy=False) if node.offset else query

    def _by_place(self, node: Top, source: exp.Query) -> exp.Query:
        order = [tree_of(scalar) for scalar in node.order]
        place = _row_number(order, [column(name) for name in node.partition])
        placed = select([exp.Star(), named(place, PLACE)], source)
        rows = select([column(name) for name in node.columns], placed)
        behind = exp.GT(this=column(PLACE), expression=number(node.offset))
        rows = rows.where(behind, copy=False)
        if node.limit is None:
            return rows
        last = number(node.offset + node.limit)
        return rows.where(exp.LTE(this=column(PLACE), expression=last), copy=False)


class Candidates:
    """The statement that finds the first rows among those that are known and those that came."""

    def __init__(self, parts: PartitionedStatements) -> None:
        """`parts` is the node without an offset."""
        node = parts.node
        if not isinstance(node, Top) or node.limit is None or not self.has_boundary(node):
            raise TypeError("only a LIMIT of all rows has one boundary")
        self._parts = parts
        self._node: Top = node
        self.limit: int = node.limit

    @staticmethod
    def has_boundary(node: Partitioned) -> bool:
        """Whether one row is the last of the first ones."""
        return Candidates.is_first(node) and not node.partition

    @staticmethod
    def is_first(node: Partitioned) -> bool:
        """Whether the node's rows are the first ones of every part: what comes can only add."""
        return isinstance(node, Top) and node.limit is not None and not node.offset

    @property
    def schema(self) -> Schema:
        """The node's columns, a mark for the row that was the last, and places in the order."""
        extra = (Field(IS_LAST, BIGINT), Field(PLACE, BIGINT))
        return Schema((*self._parts.schema, *extra), internal=True)

    def query(self, rendering: Rendering) -> exp.Query | None:
        """τ(A) + ΔA in order, and among it once more the last row of τ(A)."""
        delta = rendering.render(self._node.input, Form.DELTA)
        if delta is None:
            return None
        types = rendering.types(self._node.input)
        known = consolidated(union_all([self._first(), delta]), types)
        there = exp.GT(this=weight(), expression=number(0))
        known = select([exp.Star()], known).where(there, copy=False)
        columns: list[exp.Expr] = [column(name) for name in self._node.columns]
        rows = select([*columns, _flag(0)], repeated(known, types))
        marked = union_all([rows, self._last()])
        order = [*self._order(), column(IS_LAST)]
        placed = named(_row_number(order), PLACE)
        pairs = zip(self._node.columns, self._parts.schema.names, strict=True)
        stored: list[exp.Expr] = [named(column(ours), theirs) for ours, theirs in pairs]
        return select([*stored, column(IS_LAST), placed], marked)

    def _first(self) -> exp.Query:
        """τ(A), from the node's own trace."""
        pairs = zip(self._node.columns, self._parts.schema.names, strict=True)
        outputs: list[exp.Expr] = [named(column(theirs), ours) for ours, theirs in pairs]
        own = relation(bound_name(self._parts.output, Form.OLD))
        return select([*outputs, weight()], own)

    def _last(self) -> exp.Query:
        """The last row of τ(A)."""
        columns: list[exp.Expr] = [column(name) for name in self._node.columns]
        places = [named(_row_number(self._order()), PLACE)]
        counted = named(exp.Window(this=exp.Count(this=exp.Star()), over="OVER"), COUNT)
        numbered = select([*columns, *places, counted], self._first())
        is_last = exp.EQ(this=column(PLACE), expression=column(COUNT))
        return select([*columns, _flag(1)], numbered).where(is_last, copy=False)

    def _order(self) -> list[Any]:
        return [tree_of(scalar) for scalar in self._node.order]


def _row_number(order: list[Any], partition: list[Any] | None = None) -> exp.Expr:
    call = exp.Anonymous(this="ROW_NUMBER")
    window = exp.Window(
        this=call, partition_by=partition, order=exp.Order(expressions=order), over="OVER"
    )
    return exp.cast(window, "BIGINT", dialect="spark")


def _flag(value: int) -> exp.Expr:
    return named(exp.cast(number(value), "BIGINT", dialect="spark"), IS_LAST)
