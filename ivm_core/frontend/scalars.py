"""Expressions of a SELECT over the columns that plan nodes have.

`o.amount` becomes the one column `o.amount`, and calls that read the clock become columns of the
relations of logical time. What Spark takes from the text of an expression stays as it was: the
names of a struct's fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend import functions
from ivm_core.frontend.spelling import WRITTEN, as_written, folded, plan_column
from ivm_core.operators.sql import column as column_tree
from ivm_core.plan.nodes import CLOCKS, NOW, TODAY, Constant, Join, Node, Scan

if TYPE_CHECKING:
    from collections.abc import Iterable

LISTS = (exp.In, exp.Any, exp.All, exp.Like, exp.ILike, exp.Tuple)
"""What holds a list in parentheses; anywhere else Spark takes it for a struct."""


def internal(tree: exp.Expr) -> exp.Expr:
    """The expression over plan columns; the given one stays as it is."""
    return _with_spelling(tree.copy()).transform(_with_field_names).transform(_bound)


def with_clocks(node: Node, trees: Iterable[exp.Expr]) -> Node:
    """Join in the relations of logical time that the expressions read."""
    names = {column.name for tree in trees for column in tree.find_all(exp.Column)}
    wanted = []
    for relation, (field, _) in CLOCKS.items():
        column = f"{relation}.{field}"
        if column in names and column not in node.columns:
            wanted.append(Scan(relation, relation, (field,)))
    if not wanted:
        return node
    if isinstance(node, Constant):
        return wanted[0] if len(wanted) == 1 else Join(tuple(wanted), ())
    parts = node.parts if isinstance(node, Join) and not node.conditions else (node,)
    return Join((*parts, *wanted), ())


def _with_spelling(tree: exp.Expr) -> exp.Expr:
    """Names of fields, lambda variables and types as written: Spark shows some of them."""
    for identifier in tree.find_all(exp.Identifier):
        written = identifier.meta.get(WRITTEN)
        if isinstance(written, str) and not isinstance(identifier.parent, exp.Column):
            identifier.set("this", written)
    return tree


def _with_field_names(node: exp.Expr) -> exp.Expr:
    """`struct(t.a)` has a field `a`, whatever the plan calls the column."""
    if isinstance(node, exp.Tuple) and not isinstance(node.parent, LISTS):
        node = exp.Anonymous(this="STRUCT", expressions=node.expressions)
    if not isinstance(node, exp.Anonymous):
        return node
    if folded(node.name) == "struct":
        node.set("expressions", [_as_field(each) for each in node.expressions])
    return node


def _as_field(tree: exp.Expr) -> exp.Expr:
    name = _field_name(tree)
    if name is None:
        return tree
    return exp.alias_(tree, exp.to_identifier(name, quoted=True))


def _field_name(tree: exp.Expr) -> str | None:
    if not isinstance(tree, exp.Column):
        return None
    return as_written(tree) or tree.name


def _bound(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Column) and node.table:
        return column_tree(plan_column(node.table, node.name))
    name = folded(node.name) if isinstance(node, exp.Anonymous) else ""
    if isinstance(node, exp.CurrentTimestamp) or name in functions.NOW:
        return _clock(NOW)
    if isinstance(node, exp.CurrentDate) or name in functions.TODAY:
        return _clock(TODAY)
    if isinstance(node, exp.Localtimestamp) or name in functions.NOW_WITHOUT_ZONE:
        return exp.cast(_clock(NOW), "TIMESTAMP_NTZ", dialect="spark")
    return node


def _clock(relation: str) -> exp.Column:
    return column_tree(f"{relation}.{CLOCKS[relation][0]}")
