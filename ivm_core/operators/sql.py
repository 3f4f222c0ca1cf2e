"""Small pieces of Spark SQL as sqlglot trees: the only way statements are put together."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator

from ivm_core.model.names import WEIGHT
from ivm_core.plan.scalar import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

DIALECT = "spark"
COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
"""NULL where a side is."""
MANY_BRANCHES = 64
"""Branches of a UNION that stand side by side in a text."""


def column(name: str, table: str | None = None) -> exp.Column:
    """A reference to a column by its exact name."""
    quoted = None if table is None else exp.to_identifier(table, quoted=True)
    return exp.column(exp.to_identifier(name, quoted=True), table=quoted)


def column_scalar(name: str) -> Scalar:
    """A plan scalar that is one column."""
    tree = column(name)
    return Scalar(tree.sql(dialect=DIALECT), frozenset({name}), tree, is_column=True)


def named(tree: exp.Expr, name: str) -> exp.Expr:
    """`tree AS name`, or the bare column where that says the same."""
    if isinstance(tree, exp.Column) and tree.name == name and not tree.table:
        return tree
    return exp.alias_(tree, exp.to_identifier(name, quoted=True))


def unchanged(names: Iterable[str]) -> tuple[tuple[str, Scalar], ...]:
    """Outputs of a projection that keeps these columns as they are."""
    return tuple((name, column_scalar(name)) for name in names)


def tree_of(scalar: Scalar) -> exp.Expr:
    """A fresh copy of a scalar's tree."""
    tree = scalar.tree
    if not isinstance(tree, exp.Expr):
        raise TypeError(f"{scalar.sql} carries no tree")
    return tree.copy()


def scalar_of(tree: exp.Expr) -> Scalar:
    """A plan scalar of a tree over internal columns."""
    columns = frozenset(part.name for part in tree.find_all(exp.Column))
    return Scalar(tree.sql(dialect=DIALECT), columns, tree, isinstance(tree.unnest(), exp.Column))


def renamed(scalar: Scalar, names: Mapping[str, str]) -> Scalar:
    """The scalar over columns of other names."""

    def one(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in names:
            return column(names[node.name])
        return node

    return scalar_of(tree_of(scalar).transform(one))


def conjuncts(scalar: Scalar) -> list[Scalar]:
    """The parts of a conjunction, in the order written."""
    tree = tree_of(scalar).unnest()
    parts = tree.flatten() if isinstance(tree, exp.And) else [tree]
    return [scalar_of(part) for part in parts]


@lru_cache(maxsize=4096)
def equality_sides(scalar: Scalar) -> tuple[Scalar, Scalar] | None:
    """Both sides of `a = b` or `a <=> b`; None for anything else."""
    tree = tree_of(scalar).unnest()
    if not isinstance(tree, exp.EQ | exp.NullSafeEQ):
        return None
    return scalar_of(tree.left.unnest()), scalar_of(tree.right.unnest())


@lru_cache(maxsize=4096)
def is_null_safe(scalar: Scalar) -> bool:
    """Whether the equality holds for two NULLs."""
    return isinstance(tree_of(scalar).unnest(), exp.NullSafeEQ)


def weight(table: str | None = None) -> exp.Column:
    """The weight of a row."""
    return column(WEIGHT, table)


def select(columns: Iterable[exp.Expr], source: exp.Expr | None) -> exp.Select:
    """SELECT columns FROM source; a query becomes a derived table."""
    query = exp.Select().select(*columns, copy=False)
    if source is None:
        return query
    if isinstance(source, exp.Query) and not isinstance(source, exp.Subquery):
        source = source.subquery("t", copy=False)
    return query.from_(source, copy=False)


def relation(name: str) -> exp.Table:
    """A named temporary view."""
    return exp.to_table(exp.to_identifier(name, quoted=True).sql(dialect=DIALECT), dialect=DIALECT)


def union_all(queries: Sequence[exp.Query]) -> exp.Query:
    """UNION ALL of one or more queries."""
    return union(queries, distinct=False)


def union(queries: Sequence[exp.Query], *, distinct: bool) -> exp.Query:
    """UNION, or UNION ALL, of one or more queries; very many in halves, so that none is deep."""
    if len(queries) > MANY_BRANCHES:
        half = len(queries) // 2
        parts = [union(queries[:half], distinct=distinct), union(queries[half:], distinct=distinct)]
        queries = [exp.Subquery(this=each) for each in parts]
    result = queries[0]
    for query in queries[1:]:
        result = exp.union(result, query, distinct=distinct, copy=False)
    return result


def negated(query: exp.Query) -> exp.Query:
    """The rows of a query with weights, each with the opposite one."""
    names = [name for name in query.named_selects if name != WEIGHT]
    opposite = named(exp.Neg(this=weight()), WEIGHT)
    return select([*(column(name) for name in names), opposite], query)


def number(value: int) -> exp.Expr:
    """An integer literal."""
    literal = exp.Literal.number(abs(value))
    return exp.Neg(this=literal) if value < 0 else literal


class _Plain(Spark):
    """Spark's dialect, written as it is: what other dialects need rewritten is not in our trees."""

    class Generator(SparkGenerator):
        """Writes SELECT without looking through all that is below it for such things."""

        TRANSFORMS: ClassVar[dict[type[exp.Expr], Any]] = {
            kind: transform
            for kind, transform in SparkGenerator.TRANSFORMS.items()
            if kind is not exp.Select
        }


def text_of(tree: exp.Expr, *, pretty: bool = False) -> str:
    """The statement as Spark reads it."""
    return tree.sql(dialect=_Plain, pretty=pretty)
