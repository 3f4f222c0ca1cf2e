"""FROM: relations, joins and generators, put together from left to right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

from ivm_core.frontend.outer import is_parenthesis, outer_names
from ivm_core.frontend.scalars import internal, with_clocks
from ivm_core.frontend.spelling import column_list, plan_column
from ivm_core.frontend.subqueries import QueryBuilder, Subqueries
from ivm_core.frontend.subquery_parts import (
    BELOW_THE_JOIN,
    NOT_IN_OF_ROWS_THAT_STAY,
    TAKEN_FOR_TRUE,
    bare,
    conjuncts,
    has_subquery,
    is_not_in,
    renamed,
)
from ivm_core.model.errors import Unsupported
from ivm_core.operators.sql import column as column_tree
from ivm_core.operators.sql import column_scalar, scalar_of, unchanged
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

    @property
    def node(self) -> Node:
        """What there is so far, without the conditions that wait."""
        return self._parts[0] if len(self._parts) == 1 else Join(tuple(self._parts), ())

    def begin(self, values: Node) -> None:
        """The values of an outer query, beside all that is read."""
        self._parts.append(values)

    def add(self, relation: exp.Expr) -> None:
        """A relation, or a parenthesis with joins of its own."""
        if self._parts and _keeps_right_rows(relation):
            # rows that stay without a match do so among what is in the parenthesis
            own = Sources(self._builder, self._ctes, self._spelled)
            own.add(relation)
            self._parts.append(own._settled())
            return
        is_query = isinstance(relation, exp.Subquery)
        if is_parenthesis(relation):
            self.add(relation.this)
        elif isinstance(relation, exp.Lateral) or (is_query and outer_names(relation.this)):
            self._beside_each(relation, None)
        else:
            self._parts.append(self._builder.relation(relation, self._ctes, self._spelled))
        if is_query or isinstance(relation, exp.Table):
            self.join(relation.args.get("joins"))

    def join(self, joins: list[exp.Join] | None) -> None:
        """The relations that are joined, one after the other."""
        for join in joins or ():
            on = join.args.get("on")
            if join.kind in ("SEMI", "ANTI"):
                self._semi(join, conjuncts(on))
            elif not join.side:
                self.add(join.this)
                self.conditions += [] if on is None else [on]
            elif join.side == "LEFT" and isinstance(join.this, exp.Lateral):
                self._beside_each(join.this, conjuncts(on))
            else:
                self._outer(join, conjuncts(on))

    def _outer(self, join: exp.Join, on: list[exp.Expr]) -> None:
        other = Sources(self._builder, self._ctes, self._spelled)
        other.add(join.this)
        left, right = self._settled(), other._settled()
        columns = (*left.columns, *right.columns)
        staying = {"LEFT": left.columns, "RIGHT": right.columns}.get(join.side, columns)
        self._refuse_not_in(on, frozenset(staying))
        left, right, bound = self._answered(left, right, on)
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
        asks = any(map(has_subquery, on))
        self._parts = [Project(matched, unchanged(columns)) if asks else matched]

    def _semi(self, join: exp.Join, on: list[exp.Expr]) -> None:
        other = Sources(self._builder, self._ctes, self._spelled)
        other.add(join.this)
        left, right = self._settled(), other._settled()
        columns = left.columns
        left, right, bound = self._answered(left, right, on)
        left = with_clocks(left, bound)
        matched = Match(left, right, join.kind, tuple(scalar_of(each) for each in bound))
        self._parts = [Project(matched, unchanged(columns))]

    def _answered(
        self, left: Node, right: Node, on: list[exp.Expr]
    ) -> tuple[Node, Node, list[exp.Expr]]:
        """Both sides of an outer join, with what the subqueries of its conditions ask of them."""
        subqueries = Subqueries(self._builder, self._ctes)
        bound: list[exp.Expr] = []
        for each in on:
            asked = set(outer_names(each))
            if not has_subquery(each):
                bound.append(internal(each))
            elif asked <= set(left.columns):
                left, value = subqueries.joined(left, each)
                bound.append(value)
            elif asked <= set(right.columns):
                right, value = subqueries.joined(right, each)
                bound.append(value)
            else:
                tree = exp.paren(each.copy())
                while (part := subqueries.first(tree)) is not None:
                    theirs = set(outer_names(part))
                    if theirs <= set(left.columns):
                        left, value = subqueries.joined(left, part)
                    elif theirs <= set(right.columns):
                        right, value = subqueries.joined(right, part)
                    else:
                        raise self._refusal("a subquery that asks of both sides of an outer join")
                    part.replace(value)
                bound.append(internal(tree))
        return left, right, bound

    def _refuse_not_in(self, on: list[exp.Expr], staying: frozenset[str]) -> None:
        """`Unsupported` for NOT IN of a side whose rows stay: Spark doesn't know NULLs there."""
        for each in on:
            if is_not_in(each) and staying & set(outer_names(each)):
                raise Unsupported(
                    NOT_IN_OF_ROWS_THAT_STAY,
                    position=self._builder.where,
                    reason=TAKEN_FOR_TRUE,
                    rewrite=BELOW_THE_JOIN,
                )

    def _beside_each(self, relation: exp.Expr, on: list[exp.Expr] | None) -> None:
        """A relation that reads those before it; with `on` by LEFT JOIN."""
        if not isinstance(relation.this, exp.Query):
            is_outer = on is not None
            if is_outer and any(not _is_true(each) for each in on or ()):
                raise self._refusal("LEFT JOIN LATERAL of a generator ON a condition")
            self.generate(relation, is_outer=is_outer)
            return
        query = bare(relation.this)
        if not outer_names(query):
            derived = exp.Subquery(this=query, alias=relation.args.get("alias"))
            derived.meta.update(relation.meta)
            join = exp.Join(this=derived, side="LEFT", on=exp.and_(*on) if on else exp.true())
            self.add(derived) if on is None else self._outer(join, on)
            return
        left = self._settled()
        outer, rows = Subqueries(self._builder, self._ctes).for_each(left, query, is_named=True)
        own = [name for name in rows.columns if name not in outer.names]
        columns = []
        for written in column_list(relation) or own:
            columns.append(plan_column(relation.alias, written))
            self._spelled[columns[-1]] = written
        hidden = {name: f"{name}.{relation.alias}" for name in outer.names}
        names = [*zip(columns, own, strict=True), *((new, old) for old, new in hidden.items())]
        right = Project(rows, tuple((new, column_scalar(old)) for new, old in names))
        conditions = [renamed(each, hidden) for each in outer.conditions()]
        if on is None:
            node = filtered(Join((left, right), ()), conditions)
        else:
            conditions += [internal(each) for each in on]
            left = with_clocks(left, conditions)
            node = Match(left, right, "LEFT", tuple(scalar_of(each) for each in conditions))
        self._parts = [Project(node, unchanged([*left.columns, *columns]))]

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

    def generate(self, lateral: exp.Expr, *, is_outer: bool = False) -> None:
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
        is_outer = is_outer or bool(lateral.args.get("outer"))
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


def _keeps_right_rows(relation: exp.Expr) -> bool:
    """Whether a RIGHT or FULL JOIN stands in a parenthesis."""
    if not isinstance(relation, exp.Subquery | exp.Table):
        return False
    joins = relation.args.get("joins") or ()
    inside = [each.this for each in joins]
    inside += [relation.this] if is_parenthesis(relation) else []
    return any(each.side in ("RIGHT", "FULL") for each in joins) or any(
        _keeps_right_rows(each) for each in inside
    )


def filtered(node: Node, conditions: list[exp.Expr]) -> Node:
    """WHERE and ON conditions above the product; rewrites place them."""
    for condition in conditions:
        node = Filter(node, scalar_of(condition))
    return node


def _is_true(condition: exp.Expr) -> bool:
    return isinstance(condition.unnest(), exp.Boolean) and bool(condition.unnest().this)
