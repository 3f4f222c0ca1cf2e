"""What the subqueries of expressions are made of: conditions, keys, how many rows they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.aggregates import aggregate_calls, text
from ivm_core.frontend.outer import outer_columns
from ivm_core.frontend.scalars import internal
from ivm_core.operators.sql import COMPARISONS, column, scalar_of, unchanged
from ivm_core.plan.nodes import Aggregate, AggregateCall, Node, Project

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TOO_MANY = "a scalar subquery gave more than one row"
ONE, ROWS = "?one", "?rows"
ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div)


def conjuncts(tree: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that are joined by AND."""
    found: list[exp.Expr] = []
    waiting = [] if tree is None else [tree]
    while waiting:
        tree = waiting.pop().unnest()
        if isinstance(tree, exp.And):
            waiting += [tree.right, tree.left]
        else:
            found.append(tree)
    return found


NOT_IN_OF_ROWS_THAT_STAY = "NOT IN (SELECT …) of the side of a join whose rows all stay, in ON"
TAKEN_FOR_TRUE = "where a NULL is compared there, Spark takes NOT IN for true, and SQL does not"
BELOW_THE_JOIN = (
    "write NOT EXISTS (SELECT 1 FROM … WHERE …) in ON, or NOT IN in a derived table below the join"
)


def is_not_in(condition: exp.Expr) -> bool:
    """Whether a condition is `x NOT IN (SELECT …)`."""
    negation = condition.unnest()
    found = negation.this.unnest() if isinstance(negation, exp.Not) else None
    return isinstance(found, exp.In) and found.args.get("query") is not None


def has_subquery(tree: exp.Expr) -> bool:
    """Whether a query stands in an expression."""
    return any(isinstance(node, exp.Query) for node in tree.walk())


def replaced(tree: exp.Expr, by_text: Mapping[str, exp.Expr]) -> exp.Expr:
    """The expression with parts of these texts replaced."""
    if not by_text:
        return tree
    return tree.transform(
        lambda node: by_text[text(node)].copy() if text(node) in by_text else node
    )


def bare(query: exp.Expr) -> exp.Expr:
    """The query without parentheses that say nothing."""
    while isinstance(query, exp.Subquery) and not any(
        query.args.get(key) for key in ("limit", "offset")
    ):
        query = query.this
    return query


def of_existence(query: exp.Expr) -> exp.Expr:
    """The query without what makes no difference to whether it has rows."""
    limit = query.args.get("limit")
    count = None if limit is None else limit.expression
    if not isinstance(query, exp.Select) or query.args.get("offset"):
        return query
    query = query.copy()
    if isinstance(count, exp.Literal) and count.name.isdigit() and int(count.name) > 0:
        query.set("limit", None)
    query.set("distinct", None)
    query.set("order", None)
    if not aggregate_calls(list(query.expressions)) and not query.find(exp.Window):
        query.set("expressions", [exp.alias_(exp.Literal.number(1), "one")])
    return query


def is_correlated(query: exp.Expr) -> bool:
    """Whether a query reads columns of the one around it."""
    return next(outer_columns(query), None) is not None


def names_in(tree: exp.Expr) -> set[tuple[str, str]]:
    """The columns of an expression, as (relation, name)."""
    return {(found.table, found.name) for found in tree.find_all(exp.Column)}


def equalities(
    conditions: Sequence[exp.Expr], inner: Node
) -> list[tuple[exp.Expr, exp.Expr]] | None:
    """The inner and the outer sides of conditions that are all equalities of the two."""
    found = []
    there = set(inner.columns)
    for condition in conditions:
        tree = condition.unnest()
        if not isinstance(tree, exp.EQ):
            return None
        for ours, theirs in ((tree.left, tree.right), (tree.right, tree.left)):
            mine = {each.name for each in ours.find_all(exp.Column)}
            others = {each.name for each in theirs.find_all(exp.Column)}
            if mine and mine <= there and not others & there:
                found.append((ours.unnest(), theirs.unnest()))
                break
        else:
            return None
    return found


def is_membership(tree: exp.Expr) -> bool:
    """Whether an expression is `x IN (SELECT …)`."""
    return isinstance(tree, exp.In) and bool(tree.args.get("query"))


def same_values(value: exp.Expr, outputs: list[exp.Expr]) -> exp.Expr:
    """`value = output`, column by column for a tuple."""
    tree = value.unnest()
    values = tree.expressions if isinstance(tree, exp.Tuple) else [tree]
    pairs = zip(values, outputs, strict=True)
    return exp.and_(*[exp.EQ(this=internal(ours), expression=theirs) for ours, theirs in pairs])


def or_unknown(same: exp.Expr) -> exp.Expr:
    """NOT IN is not true where the comparison is not known."""
    return exp.Coalesce(this=same, expressions=[exp.true()])


def renamed(tree: exp.Expr, names: Mapping[str, str]) -> exp.Expr:
    """The expression with some of its columns under other names."""

    def one(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in names:
            return column(names[node.name])
        return node

    return tree.copy().transform(one)


def is_one_row(query: exp.Expr) -> bool:
    """An aggregate without GROUP BY and HAVING has one row, whatever there is."""
    if not isinstance(query, exp.Select):
        return False
    if any(
        query.args.get(key) for key in ("group", "having", "qualify", "distinct", "limit", "offset")
    ):
        return False
    return bool(aggregate_calls(list(query.expressions)))


def counted(rows: Node, keys: tuple[str, ...]) -> Node:
    """One value a key, and how many rows it has."""
    calls = (AggregateCall(ONE, "MAX", rows.columns[-1]), AggregateCall(ROWS, "COUNT_STAR", None))
    return Aggregate(rows, tuple((key, key) for key in keys), calls)


def only_one(rows: exp.Expr, value: exp.Expr) -> exp.Expr:
    """The value of a key; two rows raise."""
    message = exp.Anonymous(this="RAISE_ERROR", expressions=[exp.Literal.string(TOO_MANY)])
    many = exp.GT(this=rows, expression=exp.Literal.number(1))
    return exp.case().when(many, message).else_(value)


def one_row_each(rows: Node, keys: tuple[str, ...]) -> Node:
    """The one value a key; two rows of a key raise."""
    value = only_one(column(ROWS), column(ONE))
    return Project(counted(rows, keys), (*unchanged(keys), ("?value", scalar_of(value))))


def over_nothing(node: exp.Expr, values: Mapping[str, exp.Expr]) -> exp.Expr:
    """A column of an aggregate as what it is over no rows."""
    found = values.get(node.name) if isinstance(node, exp.Column) else None
    return node if found is None else found.copy()


def without_values(filtered: Node, node: Node) -> Node:
    """The rows without the columns that stand for subqueries."""
    names = [name for name in node.columns if not name.startswith("?subquery_")]
    return Project(filtered, unchanged(names))


def null_rejected(condition: exp.Expr) -> frozenset[str]:
    """Columns of which a NULL makes a condition anything but true."""
    tree = condition.unnest()
    if not isinstance(tree, COMPARISONS):
        return frozenset()
    return _strict_columns(tree.left) | _strict_columns(tree.right)


def _strict_columns(tree: exp.Expr) -> frozenset[str]:
    """Columns of which a NULL makes an expression NULL."""
    tree = tree.unnest()
    if isinstance(tree, exp.Column):
        return frozenset({tree.name})
    if isinstance(tree, ARITHMETIC):
        return _strict_columns(tree.left) | _strict_columns(tree.right)
    return frozenset()


def is_null(tree: exp.Expr) -> bool:
    """Whether an expression is NULL as it is written."""
    tree = tree.unnest()
    if isinstance(tree, ARITHMETIC):
        return is_null(tree.left) or is_null(tree.right)
    return isinstance(tree, exp.Null)
