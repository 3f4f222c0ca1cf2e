"""Queries that read columns of the query around them, answered for all of its rows at once.

    for each row a of A: q(a)   =   A ⋈ q'(D)      D = the distinct values of A that q reads

q' is q with D among what it reads. Whatever q does row by row it does beside D's columns, and
whatever it does with many rows it does for each value of D: they are keys of its aggregates,
partitions of its window functions and of its LIMIT, and columns of both branches of its set
operations. An aggregate without keys has a row for each value of D, also where it has no rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.aggregates import OF_NO_ROWS
from ivm_core.frontend.spelling import plan_column
from ivm_core.operators.calls import function_name
from ivm_core.operators.sql import column, column_scalar, scalar_of, unchanged
from ivm_core.plan.nodes import Distinct, Match, Node, Project

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ivm_core.plan.scalar import Scalar

FOUND = "?found"


@dataclass(frozen=True)
class Outer:
    """Values of the query around a subquery, for each of which the subquery gives its rows."""

    values: Node
    """The distinct values; its columns have the names by which the subquery calls them."""

    @staticmethod
    def of(node: Node, names: Sequence[str]) -> Outer:
        """The values that the rows of a node have."""
        return Outer(Distinct(Project(node, unchanged(names))))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names within the subquery."""
        return self.values.columns

    @property
    def names(self) -> tuple[str, ...]:
        """Names in the subquery's result, behind its own columns."""
        return tuple(f"?outer_{number}" for number in range(1, len(self.columns) + 1))

    @property
    def keys(self) -> list[exp.Expr]:
        """The columns within the subquery, as expressions."""
        return [column(name) for name in self.columns]

    @property
    def outputs(self) -> list[tuple[str, Scalar]]:
        """What the subquery's select list has behind its own items."""
        pairs = zip(self.names, self.columns, strict=True)
        return [(name, column_scalar(own)) for name, own in pairs]

    def conditions(self) -> list[exp.Expr]:
        """What holds between a row of the outer query and the rows that the subquery has for it."""
        pairs = zip(self.names, self.columns, strict=True)
        return [exp.NullSafeEQ(this=column(name), expression=column(own)) for name, own in pairs]

    def with_empty_groups(self, node: Node, calls: list[exp.Expr]) -> Node:
        """The node, an aggregate by these values alone, with a row for those that have no rows."""
        renamed = {name: f"?{name}" for name in self.columns}
        found = [(renamed.get(name, name), column_scalar(name)) for name in node.columns]
        right = Project(node, (*found, (FOUND, scalar_of(exp.true()))))
        same = [
            exp.NullSafeEQ(this=column(own), expression=column(other))
            for own, other in renamed.items()
        ]
        matched = Match(self.values, right, "LEFT", tuple(scalar_of(each) for each in same))
        empty = of_no_rows(calls)
        outputs = list(unchanged(self.columns))
        for name in node.columns:
            if name not in self.columns:
                is_there = column(FOUND).is_(exp.null()).not_()
                value = exp.case().when(is_there, column(name)).else_(empty[name].copy())
                outputs.append((name, scalar_of(value)))
        return Project(matched, tuple(outputs))


def of_no_rows(calls: list[exp.Expr]) -> dict[str, exp.Expr]:
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


def outer_columns(tree: exp.Expr) -> Iterator[exp.Column]:
    """The columns in a query or an expression that belong to no relation within it."""
    for found in tree.find_all(exp.Column):
        if found.table and not _is_within(found, tree):
            yield found


def outer_names(tree: exp.Expr) -> list[str]:
    """The same columns as the plan calls them, each once."""
    return list(dict.fromkeys(plan_column(c.table, c.name) for c in outer_columns(tree)))


def _is_within(found: exp.Column, tree: exp.Expr) -> bool:
    node: exp.Expr | None = found
    while node is not None and node is not tree.parent:
        if isinstance(node, exp.Select) and found.table in aliases(node):
            return True
        node = node.parent
    return False


def read_in_place(cte: exp.Expr, query: exp.Expr) -> None:
    """Put a common table expression, as a derived table, wherever its query names it."""
    for table in list(query.find_all(exp.Table)):
        if table.name != cte.alias or table.db:
            continue
        alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True))
        derived = exp.Subquery(this=cte.this.copy(), alias=alias, joins=table.args.get("joins"))
        derived.meta.update(cte.meta)
        table.replace(derived)


def relations(select: exp.Select) -> list[exp.Expr]:
    """What a SELECT reads: what stands first in FROM, and what is joined with it."""
    start = from_clause(select)
    first: list[exp.Expr] = [] if start is None else [start.this]
    return [*first, *(join.this for join in select.args.get("joins") or ())]


def from_clause(select: exp.Select) -> exp.From | None:
    """FROM, under either of the names that it has in a tree."""
    found: exp.From | None = select.args.get("from_") or select.args.get("from")
    return found


def aliases(select: exp.Select) -> set[str]:
    """Names of the relations in FROM; those of derived tables are not looked into."""
    waiting = [*relations(select), *(select.args.get("laterals") or ())]
    found: set[str] = set()
    while waiting:
        relation = waiting.pop()
        found.add(relation.alias_or_name)
        waiting += [join.this for join in relation.args.get("joins") or ()]
        if is_parenthesis(relation):
            waiting.append(relation.this)
    return found


def is_parenthesis(relation: exp.Expr) -> bool:
    """Whether it is `(relation JOIN …)`, and not a query."""
    inner = relation.this if isinstance(relation, exp.Subquery) else None
    if isinstance(inner, exp.Subquery):
        return bool(inner.alias) or is_parenthesis(inner)
    return isinstance(inner, exp.Table)
