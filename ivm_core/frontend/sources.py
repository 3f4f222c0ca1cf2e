"""FROM: relations, joins and generators, put together from left to right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

from ivm_core.frontend.scalars import internal, with_clocks
from ivm_core.frontend.spelling import column_list, plan_column
from ivm_core.frontend.subqueries import QueryBuilder, Subqueries, conjuncts, has_subquery
from ivm_core.model.errors import Unsupported
from ivm_core.operators.sql import column as column_tree
from ivm_core.operators.sql import scalar_of
from ivm_core.plan.nodes import Filter, Generate, Join, Match, Node, Project, UnionAll

if TYPE_CHECKING:
    from collections.abc import Mapping


class RelationBuilder(QueryBuilder, Protocol):
    """What is needed of the builder of whole queries."""

    def relation(self, tree: exp.Expr, ctes: Mapping[str, Node], spelled: dict[str, str]) -> Node:
        """A named relation, a common table expression or a derived table."""


class Sources:
    """What stands in FROM, put together from left to right.

    Inner joins are one product, whose conditions wait until all is there or an outer join wants
    what there is so far.
    """

    def __init__(
        self, builder: RelationBuilder, ctes: Mapping[str, Node], spelled: dict[str, str]
    ) -> None:
        """`spelled` learns how the columns of generators are written."""
        self._builder = builder
        self._ctes = ctes
        self._spelled = spelled
        self._parts: list[Node] = []
        self.conditions: list[exp.Expr] = []
        self._has_product = False

    @property
    def node(self) -> Node:
        """What there is so far, without the conditions that wait."""
        return self._parts[0] if len(self._parts) == 1 else Join(tuple(self._parts), ())

    def add(self, relation: exp.Expr) -> None:
        """A relation, or a parenthesis with joins of its own."""
        if isinstance(relation, exp.Subquery) and isinstance(relation.this, exp.Table):
            self.add(relation.this)
            self.join(relation.args.get("joins"))
            return
        self._parts.append(self._builder.relation(relation, self._ctes, self._spelled))
        if isinstance(relation, exp.Table):
            self.join(relation.args.get("joins"))

    def join(self, joins: list[exp.Join] | None) -> None:
        """The relations that are joined, one after the other."""
        for join in joins or ():
            on = join.args.get("on")
            if not join.side:
                self._has_product = self._has_product or on is None
                self.add(join.this)
                self.conditions += [] if on is None else [on]
            else:
                self._outer(join, conjuncts(on))

    def _outer(self, join: exp.Join, on: list[exp.Expr]) -> None:
        if any(has_subquery(each) for each in on):
            raise self._refusal(f"a subquery in the condition of a {join.side} JOIN")
        if self._has_product and join.side != "LEFT":
            # a comma binds less than JOIN does, CROSS JOIN does not: the tree says neither
            raise self._refusal(f"{join.side} JOIN after a comma or CROSS JOIN")
        other = Sources(self._builder, self._ctes, self._spelled)
        other.add(join.this)
        left, right = self._settled(), other._settled()
        bound = [internal(each) for each in on]
        left = with_clocks(left, bound)
        conditions = tuple(scalar_of(each) for each in bound)
        if join.side == "RIGHT":
            left, right = right, left
        matched: Node = Match(left, right, "LEFT", conditions)
        if join.side == "FULL":
            lonely = Match(right, left, "ANTI", conditions)
            nulls = [(name, scalar_of(exp.null())) for name in left.columns]
            kept = [(name, scalar_of(column_tree(name))) for name in right.columns]
            matched = UnionAll((matched, Project(lonely, (*nulls, *kept))))
        self._parts = [matched]

    def _settled(self) -> Node:
        """What there is so far, with its conditions applied."""
        node, conditions = self.node, [part for each in self.conditions for part in conjuncts(each)]
        bound = [internal(each) for each in conditions if not has_subquery(each)]
        node = filtered(with_clocks(node, bound), bound)
        subqueries = Subqueries(self._builder, self._ctes)
        for each in conditions:
            if has_subquery(each):
                node = subqueries.filtered(node, each)
        self.conditions = []
        return node

    def generate(self, lateral: exp.Lateral) -> None:
        """LATERAL VIEW: what a generator makes of each row."""
        alias = lateral.args.get("alias")
        names = column_list(lateral)
        if alias is None or not names:
            raise self._refusal("LATERAL VIEW without names for its columns")
        columns = []
        for name in names:
            column = plan_column(lateral.alias, name)
            self._spelled[column] = name
            columns.append(column)
        node = self._settled()
        call = internal(lateral.this)
        is_outer = bool(lateral.args.get("outer"))
        self._parts = [
            Generate(with_clocks(node, [call]), scalar_of(call), is_outer, tuple(columns))
        ]

    def _refusal(self, construct: str) -> Unsupported:
        return Unsupported(
            construct,
            position=self._builder.where,
            reason="this version does not join in that way",
            rewrite="write one of the sides as a derived table",
        )


def filtered(node: Node, conditions: list[exp.Expr]) -> Node:
    """WHERE and ON conditions above the product; rewrites place them."""
    for condition in conditions:
        node = Filter(node, scalar_of(condition))
    return node
