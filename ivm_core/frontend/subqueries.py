"""Subqueries in expressions become joins.

    WHERE EXISTS (q), x IN (q)           a semi join          NOT EXISTS, NOT IN      an anti join
    a value: (SELECT …)                  a left join with one row a key, or a product with one row
    a truth value elsewhere              a left join with the keys, each once

Most subqueries ask something of the query around them in the conditions of their WHERE alone; those
become the conditions of the join. The value of one that asks by equalities is that of its group;
for a row without a group it is what the expression gives over no rows. All others are answered for
the values that the outer rows have (`frontend.outer`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

from ivm_core.frontend.aggregates import aggregate_calls, simplified, text
from ivm_core.frontend.grouping import aggregated
from ivm_core.frontend.outer import Outer, of_no_rows, outer_columns, outer_names
from ivm_core.frontend.scalars import internal
from ivm_core.frontend.subquery_parts import (
    ONE,
    ROWS,
    bare,
    conjuncts,
    counted,
    equalities,
    has_subquery,
    is_correlated,
    is_membership,
    is_null,
    is_one_row,
    names_in,
    null_rejected,
    of_existence,
    one_row_each,
    only_one,
    or_unknown,
    over_nothing,
    renamed,
    same_values,
    without_values,
)
from ivm_core.model.errors import Unsupported
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
    UnionAll,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ivm_core.plan.scalar import Scalar

CLAUSES = ("group", "having", "qualify", "distinct", "limit", "offset", "with_", "with")
"""What asks for more than a join."""


class QueryBuilder(Protocol):
    """What is needed of the builder of whole queries."""

    where: str

    def query(
        self,
        tree: exp.Expr,
        ctes: Mapping[str, Node],
        *,
        is_named: bool = True,
        outer: Outer | None = None,
    ) -> Node:
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


class Subqueries:
    """Joins the subqueries of one query into its plan."""

    def __init__(
        self, builder: QueryBuilder, ctes: Mapping[str, Node], column: str = "?subquery"
    ) -> None:
        """`ctes` are those that the query sees; `column` begins the names of what is joined."""
        self._builder = builder
        self._ctes = ctes
        self._column = column
        self._count = 0
        self._waiting: list[tuple[str, exp.Expr]] = []
        self.operands: list[exp.Expr] = []
        """What stands before IN, evaluated like the expressions that it stands in."""

    def filtered(self, node: Node, condition: exp.Expr) -> Node:
        """Rows for which a condition with subqueries is true."""
        tree, positive = condition.unnest(), True
        while isinstance(tree, exp.Not):
            tree, positive = tree.this.unnest(), not positive
        if isinstance(tree, exp.Exists) or (is_membership(tree) and not has_subquery(tree.this)):
            return self._matched(node, tree, positive=positive)
        value = self.extracted(condition)
        matched = self.attached(node, strict=null_rejected(value))
        return without_values(Filter(matched, scalar_of(value)), matched)

    def joined(self, node: Node, tree: exp.Expr) -> tuple[Node, exp.Expr]:
        """The node with a column for each subquery of an expression, and the expression over it."""
        value = self.extracted(tree)
        return self.attached(node), value

    def extracted(self, tree: exp.Expr) -> exp.Expr:
        """The expression with a column in place of each subquery; `attached` makes the columns."""
        return internal(self._replaced(tree.copy()))

    def extracted_from_arguments(self, tree: exp.Expr) -> exp.Expr:
        """The expression with a column for each subquery that an aggregate in it reads."""
        tree = tree.copy()
        for call in aggregate_calls([tree]):
            if has_subquery(call):
                for part in list(call.iter_expressions()):
                    part.replace(self._replaced(part))
        return tree

    def extracted_from_keys(self, keys: list[exp.Expr]) -> dict[str, exp.Expr]:
        """What keys of GROUP BY become that have subqueries, by the text of the key."""
        asking = {text(key): key for key in keys if has_subquery(key)}
        return {known: self._replaced(key.copy()) for known, key in asking.items()}

    def _replaced(self, tree: exp.Expr) -> exp.Expr:
        found = self.first(tree)
        while found is not None:
            self._count += 1
            name = f"{self._column}_{self._count}"
            self._waiting.append((name, found))
            listed = found.this.unnest() if isinstance(found, exp.Not) else found
            if isinstance(listed, exp.In):
                self.operands += [internal(each) for each in _operands(listed)]
            place = exp.column(exp.to_identifier(name, quoted=True))
            if found is tree:
                tree = place
            else:
                found.replace(place)
            found = self.first(tree)
        return tree

    def attached(
        self,
        node: Node,
        bound: list[exp.Expr] | None = None,
        *,
        strict: frozenset[str] = frozenset(),
    ) -> Node:
        """The node with the columns of all subqueries that were extracted.

        The operands are the last of the `bound` expressions, over columns of the node. Rows for
        which a `strict` column is NULL need not be there.
        """
        waiting, self._waiting = self._waiting, []
        operands = iter((self.operands if bound is None else bound)[-len(self.operands) :])
        self.operands = []
        for name, found in waiting:
            listed = found.this.unnest() if isinstance(found, exp.Not) else found
            if isinstance(listed, exp.In):
                bound_ones = [next(operands).copy() for _ in _operands(listed)]
                is_tuple = isinstance(listed.this.unnest(), exp.Tuple)
                value = exp.Tuple(expressions=bound_ones) if is_tuple else bound_ones[0]
                listed.set("this", value)
            node = self._with_value(node, found, name, is_strict=name in strict)
        return node

    @staticmethod
    def first(tree: exp.Expr) -> exp.Expr | None:
        """The first subquery of an expression, with what it is compared with."""
        for node in tree.walk():
            if isinstance(node, exp.Exists) or is_membership(node):
                return node
            if isinstance(node, exp.Not) and is_membership(node.this.unnest()):
                return node
            if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
                return node
        return None

    # --- as a condition of WHERE ---

    def _matched(self, node: Node, tree: exp.Expr, *, positive: bool) -> Node:
        right, conditions = self._asked(node, tree, positive=positive)
        return self._match(node, right, "SEMI" if positive else "ANTI", conditions)

    def _asked(self, node: Node, tree: exp.Expr, *, positive: bool) -> tuple[Node, list[exp.Expr]]:
        """The rows of EXISTS or IN, and the conditions on which one of them is a match."""
        is_list = isinstance(tree, exp.In)
        query = bare(tree.args["query"].this) if is_list else of_existence(bare(tree.this))
        inner = None if _has_aggregates(query) else self._taken_apart(query)
        if inner is None:
            outer, rows = self.for_each(node, query)
            outputs: list[exp.Expr] = [
                column(name) for name in rows.columns if name not in outer.names
            ]
            inner = _Inner(rows, outputs, outer.conditions())
        conditions = list(inner.conditions)
        if isinstance(tree, exp.In):
            same = same_values(tree.this, inner.outputs)
            conditions.append(same if positive else or_unknown(same))
        return inner.node, conditions

    def for_each(
        self, node: Node, query: exp.Expr, *, is_named: bool = False
    ) -> tuple[Outer, Node]:
        """The values of a node's rows that a query asks for, and the query's rows for each."""
        asked = outer_names(query)
        missing = [name for name in asked if name not in node.columns]
        if missing:
            raise self._refusal(f"a subquery that reads {', '.join(missing)} from further up")
        outer = Outer.of(node, asked)
        return outer, self._builder.query(query, self._ctes, is_named=is_named, outer=outer)

    def _match(
        self,
        node: Node,
        right: Node,
        kind: str,
        conditions: Sequence[exp.Expr],
        keep: tuple[str, ...] = (),
    ) -> Node:
        """A match whose right columns are renamed, for both sides may scan the same relation."""
        beside, moved = self._beside(node, right, conditions, keep)
        return Match(node, beside, kind, moved)

    def _inner(
        self, node: Node, right: Node, conditions: Sequence[exp.Expr], keep: tuple[str, ...]
    ) -> Node:
        """The pairs of a match."""
        beside, moved = self._beside(node, right, conditions, keep)
        return Join((node, beside), moved)

    def _beside(
        self, node: Node, right: Node, conditions: Sequence[exp.Expr], keep: tuple[str, ...]
    ) -> tuple[Node, tuple[Scalar, ...]]:
        """The right side of a match under names that the left doesn't have, and the conditions."""
        self._count += 1
        mark = f"?{self._count}."
        names = {name: name if name in keep else mark + name for name in right.columns}
        moved = [renamed(condition, names) for condition in conditions]
        right = Project(right, tuple((names[name], column_scalar(name)) for name in right.columns))
        self._check(moved, (*node.columns, *right.columns))
        return right, tuple(scalar_of(each) for each in moved)

    # --- as a value ---

    def _with_value(self, node: Node, tree: exp.Expr, name: str, *, is_strict: bool) -> Node:
        if isinstance(tree, exp.Exists):
            return self._with_existence(node, tree, name)
        if isinstance(tree, exp.Not):
            return self._with_membership(node, tree.this.unnest(), name, positive=False)
        if isinstance(tree, exp.In):
            return self._with_membership(node, tree, name, positive=True)
        query = bare(tree.this)
        if not is_correlated(query):
            rows = self._builder.query(query, self._ctes, is_named=False)
            one = rows if is_one_row(query) else one_row_each(rows, ())
            value = Project(one, ((name, column_scalar(one.columns[-1])),))
            return Join((node, value), ())
        inner = self._taken_apart(query)
        pairs = None if inner is None else equalities(inner.conditions, inner.node)
        if inner is None or pairs is None:
            return self._with_value_for_each(node, query, name)
        return self._with_group_value(node, inner, pairs, name, is_strict=is_strict)

    def _with_value_for_each(self, node: Node, query: exp.Expr, name: str) -> Node:
        outer, rows = self.for_each(node, query)
        if not is_one_row(query):
            ordered = [*outer.names, rows.columns[0]]
            rows = one_row_each(Project(rows, unchanged(ordered)), outer.names)
        value = next(each for each in rows.columns if each not in outer.names)
        kept = unchanged(outer.names)
        right = Project(rows, (*kept, (name, column_scalar(value))))
        return Project(
            self._match(node, right, "LEFT", outer.conditions(), (name,)),
            unchanged([*node.columns, name]),
        )

    def _with_group_value(
        self,
        node: Node,
        inner: _Inner,
        pairs: list[tuple[exp.Expr, exp.Expr]],
        name: str,
        *,
        is_strict: bool,
    ) -> Node:
        keys = [ours for ours, _ in pairs]
        output = inner.outputs[0]
        calls = aggregate_calls([output])
        empty: exp.Expr = exp.null()
        if calls:
            grouped, replace = aggregated(inner.node, keys, calls)
            value = replace(output)
            empty = replace(output).transform(over_nothing, of_no_rows(calls))
            key_names = [replace(key).name for key in keys]
        else:
            key_names = [f"?key_{number}" for number in range(1, len(keys) + 1)]
            outputs = [(n, scalar_of(key)) for n, key in zip(key_names, keys, strict=True)]
            flat = Project(inner.node, (*outputs, ("?value", scalar_of(output))))
            grouped = counted(flat, tuple(key_names))
            value = column(ONE)
        kept = unchanged(dict.fromkeys(key_names))
        found = f"{name}_found"
        rows = f"{name}_rows"
        extra = [(f"{name}_value", scalar_of(value)), (found, scalar_of(exp.true()))]
        extra += [] if calls else [(rows, column_scalar(ROWS))]
        right = Project(grouped, (*kept, *extra))
        conditions = [
            exp.EQ(this=column(key), expression=theirs)
            for key, (_, theirs) in zip(key_names, pairs, strict=True)
        ]
        kept_names = tuple(each for each, _ in extra)
        if is_strict and is_null(empty):
            # a row without a group has NULL there, and goes: no LEFT join has to find it first
            matched = self._inner(node, right, conditions, kept_names)
            result: exp.Expr = column(f"{name}_value")
        else:
            matched = self._match(node, right, "LEFT", conditions, kept_names)
            there = column(found).is_(exp.null()).not_()
            result = exp.case().when(there, column(f"{name}_value")).else_(empty)
        if not calls:
            # here and not below: two rows of a key that nobody asks for are no error
            result = only_one(column(rows), column(f"{name}_value"))
        outer = unchanged(node.columns)
        return Project(matched, (*outer, (name, scalar_of(result))))

    def _with_existence(self, node: Node, tree: exp.Expr, name: str) -> Node:
        query = of_existence(bare(tree.this))
        if not is_correlated(query):
            rows = self._builder.query(query, self._ctes, is_named=False)
            count = Aggregate(rows, (), (AggregateCall("?rows", "COUNT_STAR", None),))
            some = exp.GT(this=column("?rows"), expression=exp.Literal.number(0))
            return Join((node, Project(count, ((name, scalar_of(some)),))), ())
        inner = None if _has_aggregates(query) else self._taken_apart(query)
        pairs = None if inner is None else equalities(inner.conditions, inner.node)
        if inner is None or pairs is None:
            return self._with_truth(node, tree, name, positive=True)
        return self._with_mark(node, inner.node, pairs, name)

    def _with_truth(self, node: Node, tree: exp.Expr, name: str, *, positive: bool) -> Node:
        """A column that says whether [NOT] EXISTS or [NOT] IN is true, whatever it asks."""
        right, conditions = self._asked(node, tree, positive=positive)
        outer = unchanged(node.columns)
        branches: list[Node] = []
        for kind, value in (("SEMI", positive), ("ANTI", not positive)):
            truth = exp.true() if value else exp.false()
            rows = self._match(node, right, kind, conditions)
            branches.append(Project(rows, (*outer, (name, scalar_of(truth)))))
        return UnionAll(tuple(branches))

    def _with_mark(
        self, node: Node, right: Node, pairs: list[tuple[exp.Expr, exp.Expr]], name: str
    ) -> Node:
        """A column that says whether equal keys are there."""
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
        if is_correlated(query) or isinstance(tree.this.unnest(), exp.Tuple):
            return self._with_truth(node, tree, name, positive=positive)
        rows = self._builder.query(query, self._ctes, is_named=False)
        value = internal(tree.this)
        item = rows.columns[0]
        pairs: list[tuple[exp.Expr, exp.Expr]] = [(column(item), value)]
        if positive:
            return self._with_mark(node, rows, pairs, name)
        counts = Aggregate(
            rows,
            (),
            (
                AggregateCall(f"{name}_rows", "COUNT_STAR", None),
                AggregateCall(f"{name}_known", "COUNT", item),
            ),
        )
        outer = unchanged(node.columns)
        node = Join((self._with_mark(node, rows, pairs, f"{name}_mark"), counts), ())
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

    def _taken_apart(self, query: exp.Expr) -> _Inner | None:
        """The parts of a query that asks by its WHERE alone; None for one that asks otherwise."""
        outer = {(found.table, found.name) for found in outer_columns(query)}
        if not outer:
            rows = self._builder.query(query, self._ctes, is_named=False)
            return _Inner(rows, [column(name) for name in rows.columns], [])
        if not isinstance(query, exp.Select) or any(query.args.get(key) for key in CLAUSES):
            return None
        where = query.args.get("where")
        elsewhere = [part for part in query.iter_expressions() if part is not where]
        if query.find(exp.Window) or any(names_in(part) & outer for part in elsewhere):
            return None
        plain: list[exp.Expr] = []
        asking: list[exp.Expr] = []
        for condition in conjuncts(where.this if where is not None else None):
            (asking if names_in(condition) & outer else plain).append(condition)
        if any(has_subquery(each) for each in asking):
            return None
        node, _ = self._builder.read(query, self._ctes, plain)
        outputs = [internal(simplified(item.unalias())) for item in query.expressions]
        return _Inner(node, outputs, [internal(each) for each in asking])

    def _check(self, conditions: list[exp.Expr], there: tuple[str, ...]) -> None:
        for condition in conditions:
            missing = {c.name for c in condition.find_all(exp.Column)} - set(there)
            if missing:
                raise self._refusal("a subquery that reads columns of a query two levels up")

    def _refusal(self, construct: str) -> Unsupported:
        return Unsupported(
            construct,
            position=self._builder.where,
            reason="a subquery can be joined only with the query that it stands in",
            rewrite="write the subquery as a derived table and join it",
        )


def _has_aggregates(query: exp.Expr) -> bool:
    """Whether a correlated query has one row for each outer row, whatever there is to read."""
    return is_correlated(query) and bool(aggregate_calls(list(query.expressions)))


def _operands(membership: exp.In) -> list[exp.Expr]:
    """What stands before IN, column by column for a tuple."""
    tree = membership.this.unnest()
    return list(tree.expressions) if isinstance(tree, exp.Tuple) else [tree]
