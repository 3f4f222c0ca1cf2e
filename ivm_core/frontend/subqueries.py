"""Subqueries in expressions become joins.

    WHERE EXISTS (q), x IN (q)           a semi join          NOT EXISTS, NOT IN      an anti join
    a value: (SELECT …)                  a left join with one row a key, or a product with one row
    a truth value elsewhere              a left join with the keys, each once

What a subquery asks of the query around it stands in the conditions of its WHERE; those become
the conditions of the join. The value of a subquery that is correlated by equalities is that of
its group; for a row without a group it is what the expression gives over no rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sqlglot import exp
from sqlglot.optimizer.scope import build_scope

from ivm_core.frontend.aggregates import (
    OF_NO_ROWS,
    aggregate_calls,
    simplified,
)
from ivm_core.frontend.grouping import aggregated
from ivm_core.frontend.scalars import internal
from ivm_core.model.errors import Unsupported
from ivm_core.operators.calls import function_name
from ivm_core.operators.sql import column, column_scalar, scalar_of, unchanged
from ivm_core.plan.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
    Join,
    Match,
    Node,
    Project,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CLAUSES = ("group", "having", "qualify", "distinct", "limit", "offset", "with_", "with")
"""What a correlated subquery can't have."""
TOO_MANY = "a scalar subquery gave more than one row"


class QueryBuilder(Protocol):
    """What is needed of the builder of whole queries."""

    where: str

    def query(self, tree: exp.Expr, ctes: Mapping[str, Node], *, is_named: bool = True) -> Node:
        """The plan of a query."""

    def read(
        self, tree: exp.Select, ctes: Mapping[str, Node], conditions: list[exp.Expr]
    ) -> tuple[Node, dict[str, str]]:
        """What a SELECT reads, kept where the conditions hold."""


@dataclass(frozen=True)
class _Inner:
    """A subquery taken apart: its rows, what it selects, and what it asks of the outer query."""

    node: Node
    outputs: list[exp.Expr]
    conditions: list[exp.Expr]


def conjuncts(tree: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that are joined by AND."""
    if tree is None:
        return []
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        return [*conjuncts(tree.left), *conjuncts(tree.right)]
    return [tree]


def has_subquery(tree: exp.Expr) -> bool:
    """Whether a query stands in an expression."""
    return any(isinstance(node, exp.Query) for node in tree.walk())


class Subqueries:
    """Joins the subqueries of one query into its plan."""

    def __init__(self, builder: QueryBuilder, ctes: Mapping[str, Node]) -> None:
        """`ctes` are those that the query sees."""
        self._builder = builder
        self._ctes = ctes
        self._count = 0
        self._waiting: list[tuple[str, exp.Expr]] = []

    def filtered(self, node: Node, condition: exp.Expr) -> Node:
        """Rows for which a condition with subqueries is true."""
        tree, positive = condition.unnest(), True
        while isinstance(tree, exp.Not):
            tree, positive = tree.this.unnest(), not positive
        if isinstance(tree, exp.Exists) or (_is_membership(tree) and not has_subquery(tree.this)):
            return self._matched(node, tree, positive=positive)
        node, value = self.joined(node, condition)
        return _only(Filter(node, scalar_of(value)), node)

    def joined(self, node: Node, tree: exp.Expr) -> tuple[Node, exp.Expr]:
        """The node with a column for each subquery of an expression, and the expression over it."""
        value = self.extracted(tree)
        return self.attached(node), value

    def extracted(self, tree: exp.Expr) -> exp.Expr:
        """The expression with a column in place of each subquery; `attached` makes the columns."""
        tree = tree.copy()
        found = self._first(tree)
        while found is not None:
            self._count += 1
            name = f"?subquery_{self._count}"
            self._waiting.append((name, found))
            place = exp.column(exp.to_identifier(name, quoted=True))
            if found is tree:
                tree = place
            else:
                found.replace(place)
            found = self._first(tree)
        return internal(tree)

    def attached(self, node: Node) -> Node:
        """The node with the columns of all subqueries that were extracted."""
        waiting, self._waiting = self._waiting, []
        for name, found in waiting:
            node = self._with_value(node, found, name)
        return node

    @staticmethod
    def _first(tree: exp.Expr) -> exp.Expr | None:
        for node in tree.walk():
            if isinstance(node, exp.Exists) or _is_membership(node):
                return node
            if isinstance(node, exp.Not) and _is_membership(node.this.unnest()):
                return node
            if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
                return node
        return None

    # --- as a condition of WHERE ---

    def _matched(self, node: Node, tree: exp.Expr, *, positive: bool) -> Node:
        query = tree.args["query"].this if isinstance(tree, exp.In) else tree.this
        inner = self._taken_apart(query)
        conditions = list(inner.conditions)
        if isinstance(tree, exp.In):
            same = _same(tree.this, inner.outputs)
            conditions.append(same if positive else _or_unknown(same))
        return self._match(node, inner.node, "SEMI" if positive else "ANTI", conditions)

    def _match(
        self,
        node: Node,
        right: Node,
        kind: str,
        conditions: Sequence[exp.Expr],
        keep: tuple[str, ...] = (),
    ) -> Node:
        """A match whose right columns are renamed, for both sides may scan the same relation."""
        self._count += 1
        mark = f"?{self._count}."
        names = {name: name if name in keep else mark + name for name in right.columns}
        renamed = [_renamed(condition, names) for condition in conditions]
        right = Project(right, tuple((names[name], column_scalar(name)) for name in right.columns))
        self._check(renamed, (*node.columns, *right.columns))
        return Match(node, right, kind, tuple(scalar_of(each) for each in renamed))

    # --- as a value ---

    def _with_value(self, node: Node, tree: exp.Expr, name: str) -> Node:
        if isinstance(tree, exp.Exists):
            return self._with_existence(node, tree.this, name)
        if isinstance(tree, exp.Not):
            return self._with_membership(node, tree.this.unnest(), name, positive=False)
        if isinstance(tree, exp.In):
            return self._with_membership(node, tree, name, positive=True)
        query = _bare(tree.this)
        inner = self._correlated(query)
        if inner is None:
            rows = self._builder.query(query, self._ctes, is_named=False)
            one = rows if _is_one_row(query) else _checked(rows, ())
            value = Project(one, ((name, column_scalar(one.columns[-1])),))
            return Join((node, value), ())
        return self._with_group_value(node, query, inner, name)

    def _with_group_value(self, node: Node, query: exp.Expr, inner: _Inner, name: str) -> Node:
        pairs = [self._sides(condition, inner.node) for condition in inner.conditions]
        keys = [ours for ours, _ in pairs]
        output = inner.outputs[0]
        calls = aggregate_calls([output])
        empty: exp.Expr = exp.null()
        if calls:
            grouped, replace = aggregated(inner.node, keys, calls)
            value = replace(output)
            empty = replace(output).transform(_over_nothing, _of_no_rows(calls))
            key_names = [replace(key).name for key in keys]
        else:
            key_names = [f"?key_{number}" for number in range(1, len(keys) + 1)]
            outputs = [(n, scalar_of(key)) for n, key in zip(key_names, keys, strict=True)]
            flat = Project(inner.node, (*outputs, ("?value", scalar_of(output))))
            grouped = _checked(flat, tuple(key_names))
            value = column(grouped.columns[-1])
        kept = unchanged(dict.fromkeys(key_names))
        found = f"{name}_found"
        extra = [(f"{name}_value", scalar_of(value)), (found, scalar_of(exp.true()))]
        right = Project(grouped, (*kept, *extra))
        conditions = [
            exp.EQ(this=column(key), expression=theirs)
            for key, (_, theirs) in zip(key_names, pairs, strict=True)
        ]
        matched = self._match(node, right, "LEFT", conditions, (f"{name}_value", found))
        there = column(found).is_(exp.null()).not_()
        result = exp.case().when(there, column(f"{name}_value")).else_(empty)
        outer = unchanged(node.columns)
        return Project(matched, (*outer, (name, scalar_of(result))))

    def _with_existence(self, node: Node, query: exp.Expr, name: str) -> Node:
        inner = self._correlated(query)
        if inner is None:
            rows = self._builder.query(query, self._ctes, is_named=False)
            count = Aggregate(rows, (), (AggregateCall("?rows", "COUNT_STAR", None),))
            some = exp.GT(this=column("?rows"), expression=exp.Literal.number(0))
            return Join((node, Project(count, ((name, scalar_of(some)),))), ())
        return self._with_mark(node, inner.node, inner.conditions, name)

    def _with_mark(
        self, node: Node, right: Node, conditions: Sequence[exp.Expr], name: str
    ) -> Node:
        """A column that says whether equal keys are there."""
        pairs = [self._sides(condition, right) for condition in conditions]
        names = [f"?key_{number}" for number in range(1, len(pairs) + 1)]
        outputs = [(key, scalar_of(ours)) for key, (ours, _) in zip(names, pairs, strict=True)]
        found = f"{name}_found"
        keys = Distinct(Project(right, tuple(outputs)))
        kept = unchanged(names)
        marked = Project(keys, (*kept, (found, scalar_of(exp.true()))))
        same = [
            exp.EQ(this=column(key), expression=theirs)
            for key, (_, theirs) in zip(names, pairs, strict=True)
        ]
        matched = self._match(node, marked, "LEFT", same, (found,))
        is_there = column(found).is_(exp.null()).not_()
        outer = unchanged(node.columns)
        return Project(matched, (*outer, (name, scalar_of(is_there))))

    def _with_membership(self, node: Node, tree: exp.In, name: str, *, positive: bool) -> Node:
        """`x IN (q)` as Spark takes it where it is a value: whether an equal one is there.

        `x NOT IN (q)` is true where no comparison is true or unknown. Neither is ever NULL.
        """
        query = tree.args["query"].this
        if self._correlated(query) is not None or isinstance(tree.this.unnest(), exp.Tuple):
            raise self._refusal("IN with a correlated or tuple subquery outside of WHERE's AND")
        rows = self._builder.query(query, self._ctes, is_named=False)
        value = internal(tree.this)
        item = rows.columns[0]
        same = exp.EQ(this=column(item), expression=value)
        if positive:
            return self._with_mark(node, rows, [same], name)
        counts = Aggregate(
            rows,
            (),
            (
                AggregateCall(f"{name}_rows", "COUNT_STAR", None),
                AggregateCall(f"{name}_known", "COUNT", item),
            ),
        )
        outer = unchanged(node.columns)
        node = Join((self._with_mark(node, rows, [same], f"{name}_mark"), counts), ())
        total, known = column(f"{name}_rows"), column(f"{name}_known")
        unknown = exp.or_(value.copy().is_(exp.null()), exp.GT(this=total.copy(), expression=known))
        result = (
            exp.case()
            .when(exp.EQ(this=total, expression=exp.Literal.number(0)), exp.true())
            .when(exp.or_(column(f"{name}_mark"), unknown), exp.false())
            .else_(exp.true())
        )
        return Project(node, (*outer, (name, scalar_of(result))))

    # --- taking a subquery apart ---

    def _correlated(self, query: exp.Expr) -> _Inner | None:
        """The parts of a query that asks something of the outer one; None for one that doesn't."""
        scope = build_scope(query.copy())
        if scope is None or not scope.external_columns:
            return None
        return self._taken_apart(query)

    def _taken_apart(self, query: exp.Expr) -> _Inner:
        query = _bare(query)
        scope = build_scope(query.copy())
        outer = {(c.table, c.name) for c in scope.external_columns} if scope else set()
        if not outer:
            rows = self._builder.query(query, self._ctes, is_named=False)
            return _Inner(rows, [column(name) for name in rows.columns], [])
        if not isinstance(query, exp.Select) or any(query.args.get(key) for key in CLAUSES):
            raise self._refusal("a correlated subquery with GROUP BY, DISTINCT, LIMIT or UNION")
        if query.find(exp.Window):
            raise self._refusal("a correlated subquery with window functions")
        where = query.args.get("where")
        plain, asking = [], []
        for condition in conjuncts(where.this if where is not None else None):
            if any((c.table, c.name) in outer for c in condition.find_all(exp.Column)):
                asking.append(condition)
            else:
                plain.append(condition)
        if any(has_subquery(each) for each in asking):
            raise self._refusal("a subquery that is correlated over two levels")
        node, _ = self._builder.read(query, self._ctes, plain)
        outputs = [internal(simplified(item.unalias())) for item in query.expressions]
        return _Inner(node, outputs, [internal(each) for each in asking])

    def _sides(self, condition: exp.Expr, inner: Node) -> tuple[exp.Expr, exp.Expr]:
        """The inner and the outer side of an equality."""
        tree = condition.unnest()
        if isinstance(tree, exp.EQ):
            for ours, theirs in ((tree.left, tree.right), (tree.right, tree.left)):
                mine = {c.name for c in ours.find_all(exp.Column)}
                others = {c.name for c in theirs.find_all(exp.Column)}
                if mine and mine <= set(inner.columns) and not others & set(inner.columns):
                    return ours.unnest(), theirs.unnest()
        raise self._refusal("a value of a subquery that is correlated by more than equalities")

    def _check(self, conditions: list[exp.Expr], there: tuple[str, ...]) -> None:
        for condition in conditions:
            missing = {c.name for c in condition.find_all(exp.Column)} - set(there)
            if missing:
                raise self._refusal("a subquery that reads columns of a query two levels up")

    def _refusal(self, construct: str) -> Unsupported:
        return Unsupported(
            construct,
            position=self._builder.where,
            reason="this version joins subqueries that are correlated by their WHERE",
            rewrite="write the subquery as a derived table and join it",
        )


def _bare(query: exp.Expr) -> exp.Expr:
    """The query without parentheses that say nothing."""
    while isinstance(query, exp.Subquery) and not any(
        query.args.get(key) for key in ("limit", "offset")
    ):
        query = query.this
    return query


def _is_membership(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.In) and bool(tree.args.get("query"))


def _same(value: exp.Expr, outputs: list[exp.Expr]) -> exp.Expr:
    """`value = output`, column by column for a tuple."""
    tree = value.unnest()
    values = tree.expressions if isinstance(tree, exp.Tuple) else [tree]
    pairs = zip(values, outputs, strict=True)
    return exp.and_(*[exp.EQ(this=internal(ours), expression=theirs) for ours, theirs in pairs])


def _or_unknown(same: exp.Expr) -> exp.Expr:
    """NOT IN is not true where the comparison is not known."""
    return exp.Coalesce(this=same, expressions=[exp.true()])


def _renamed(tree: exp.Expr, names: Mapping[str, str]) -> exp.Expr:
    def one(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in names:
            return column(names[node.name])
        return node

    return tree.copy().transform(one)


def _is_one_row(query: exp.Expr) -> bool:
    """An aggregate without GROUP BY and HAVING has one row, whatever there is."""
    if not isinstance(query, exp.Select):
        return False
    if any(
        query.args.get(key) for key in ("group", "having", "qualify", "distinct", "limit", "offset")
    ):
        return False
    return bool(aggregate_calls(list(query.expressions)))


def _checked(rows: Node, keys: tuple[str, ...]) -> Node:
    """The one value a key; two rows of a key raise."""
    item = rows.columns[-1]
    calls = (AggregateCall("?one", "MAX", item), AggregateCall("?rows", "COUNT_STAR", None))
    counted = Aggregate(rows, tuple((key, key) for key in keys), calls)
    message = exp.Anonymous(this="RAISE_ERROR", expressions=[exp.Literal.string(TOO_MANY)])
    many = exp.GT(this=column("?rows"), expression=exp.Literal.number(1))
    value = exp.case().when(many, message).else_(column("?one"))
    kept = unchanged(keys)
    return Project(counted, (*kept, ("?value", scalar_of(value))))


def _of_no_rows(calls: list[exp.Expr]) -> dict[str, exp.Expr]:
    """Columns of aggregates, and what they are over no rows."""
    found: dict[str, exp.Expr] = {}
    for number, call in enumerate(calls, 1):
        name = function_name(call)
        value: exp.Expr = exp.null()
        if name == "count":
            value = exp.cast(exp.Literal.number(0), "BIGINT")
        elif name in OF_NO_ROWS:
            value = exp.maybe_parse(OF_NO_ROWS[name], dialect="spark")
        found[f"aggregate_{number}"] = value
    return found


def _over_nothing(node: exp.Expr, values: Mapping[str, exp.Expr]) -> exp.Expr:
    found = values.get(node.name) if isinstance(node, exp.Column) else None
    return node if found is None else found.copy()


def _only(filtered: Node, node: Node) -> Node:
    names = [name for name in node.columns if not name.startswith("?subquery_")]
    return Project(filtered, unchanged(names))
