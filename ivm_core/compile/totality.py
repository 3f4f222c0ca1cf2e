"""Which expressions can never raise.

Under ANSI mode nearly everything can: casts, arithmetic, division, array access. A join's delta
holds pairs that exist in neither state; what may raise must not see them (design, section 4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.model.ddl import parse_type
from ivm_core.operators.sql import COMPARISONS
from ivm_core.plan.nodes import (
    CLOCKS,
    Aggregate,
    Distinct,
    Filter,
    Generate,
    Join,
    Kept,
    Match,
    Negated,
    Node,
    Project,
    Repeated,
    Scan,
    SetOperation,
    UnionAll,
)
from ivm_core.plan.partitioned import Partitioned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.model.schema import Schema
    from ivm_core.model.types import DataType
    from ivm_core.plan.scalar import Scalar

TOTAL = (
    exp.Column,
    exp.Identifier,
    exp.Literal,
    exp.Boolean,
    exp.Null,
    exp.And,
    exp.Or,
    exp.Not,
    exp.Is,
    exp.Paren,
    exp.Coalesce,
    exp.NullSafeEQ,
)
FAMILIES = {
    "TINYINT": "number",
    "SMALLINT": "number",
    "INT": "number",
    "BIGINT": "number",
    "FLOAT": "number",
    "DOUBLE": "number",
    "DECIMAL": "number",
    "DATE": "time",
    "TIMESTAMP": "time",
    "TIMESTAMP_NTZ": "time",
}


SAFE_CALLS: dict[str, tuple[str, str | None]] = {
    **dict.fromkeys(["upper", "lower", "reverse"], ("STRING", "STRING")),
    **dict.fromkeys(
        ["year", "quarter", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "weekofyear"],
        ("time", "number"),
    ),
}
"""Functions of one argument that can't raise: the family that they take, and what they give."""


def column_type(node: Node, column: str, catalog: Mapping[str, Schema]) -> DataType | None:
    """The type of a column that comes unchanged from a relation; None when it is computed."""
    if isinstance(node, Scan):
        if node.relation in CLOCKS:
            return parse_type(CLOCKS[node.relation][1])
        schema = catalog.get(node.relation)
        return None if schema is None else schema.field(node.field_of(column)).type
    if isinstance(node, Project):
        source = node.source_of(column)
        return None if source is None else column_type(node.input, source, catalog)
    if isinstance(node, Aggregate):
        source = dict(node.keys).get(column)
        return None if source is None else column_type(node.input, source, catalog)
    if isinstance(node, Filter | Distinct | Negated | Repeated | Kept):
        return column_type(node.input, column, catalog)
    if isinstance(node, Generate):
        return None if column in node.names else column_type(node.input, column, catalog)
    if isinstance(node, Partitioned):
        there = node.input.columns
        return column_type(node.input, column, catalog) if column in there else None
    if isinstance(node, Match):
        side = node.left if column in node.left.columns else node.right
        return column_type(side, column, catalog)
    if isinstance(node, Join):
        return column_type(node.parts[node.part_of(column)], column, catalog)
    if isinstance(node, UnionAll | SetOperation):
        position = node.columns.index(column)
        types = {column_type(b, b.columns[position], catalog) for b in node.inputs}
        return types.pop() if len(types) == 1 else None
    return None


def is_total(scalar: Scalar, node: Node, catalog: Mapping[str, Schema]) -> bool:
    """Whether evaluating the scalar on any row whatever of the node can't raise."""
    tree = scalar.tree
    if not isinstance(tree, exp.Expr):
        return False
    return _total(tree, node, catalog)


def _total(tree: exp.Expr, node: Node, catalog: Mapping[str, Schema]) -> bool:
    if isinstance(tree, (*COMPARISONS, exp.NullSafeEQ)):
        return _comparable([tree.left, tree.right], node, catalog)
    if isinstance(tree, exp.Between):
        parts = [tree.this, tree.args["low"], tree.args["high"]]
        return _comparable(parts, node, catalog)
    if isinstance(tree, exp.In) and not tree.args.get("query"):
        return _comparable([tree.this, *tree.expressions], node, catalog)
    if isinstance(tree, exp.Like):
        # a backslash in front of the wrong character raises
        pattern = tree.expression
        plain = isinstance(pattern, exp.Literal) and "\\" not in pattern.this
        return plain and _family(tree.this.unnest(), node, catalog) == "STRING"
    if not isinstance(tree, TOTAL):
        return False
    return all(
        _total(child, node, catalog)
        for child in tree.iter_expressions()
        if not isinstance(child, exp.Identifier)
    )


def _comparable(parts: list[exp.Expr], node: Node, catalog: Mapping[str, Schema]) -> bool:
    """Whether no value is cast to be compared, but for texts that are written out.

    Those are cast once and for all: it fails for every row or for none.
    """
    bare = [part.unnest() for part in parts]
    written = [isinstance(each, exp.Literal) and each.is_string for each in bare]
    families = [_family(each, node, catalog) for each in bare]
    others = {each for each, is_text in zip(families, written, strict=True) if not is_text}
    if None in families:
        return False
    return len(others) <= 1 or len(set(families)) == 1


def _family(tree: exp.Expr, node: Node, catalog: Mapping[str, Schema]) -> str | None:
    if isinstance(tree, exp.Literal):
        return "STRING" if tree.is_string else "number"
    if isinstance(tree, exp.Neg) and isinstance(tree.this, exp.Literal):
        return "number"
    if isinstance(tree, exp.Boolean):
        return "BOOLEAN"
    if isinstance(tree, exp.Cast) and isinstance(tree.this, exp.Literal):
        kind = tree.to.sql(dialect="spark").upper()
        return FAMILIES.get(kind)
    if isinstance(tree, exp.Column):
        found = column_type(node, tree.name, catalog)
        return None if found is None else FAMILIES.get(found.kind, found.kind)
    if isinstance(tree, exp.Substring):
        bounds = (tree.args.get("start"), tree.args.get("length"))
        whole = all(each is None or each.is_int for each in bounds)
        return "STRING" if whole and _family(tree.this, node, catalog) == "STRING" else None
    if isinstance(tree, exp.Add | exp.Sub) and not tree.find(exp.Column):
        return _family_of_constants(tree, node, catalog)
    if isinstance(tree, exp.Anonymous):
        return _family_of_call(tree, node, catalog)
    return None


def _family_of_constants(
    tree: exp.Add | exp.Sub, node: Node, catalog: Mapping[str, Schema]
) -> str | None:
    """`2000 + 1`, `DATE'2000-01-01' + INTERVAL 30 DAYS`: the same for every row, real or not."""
    left = _family(tree.left.unnest(), node, catalog)
    if isinstance(tree.right, exp.Interval):
        return left if left == "time" else None
    right = _family(tree.right.unnest(), node, catalog)
    return left if left == right == "number" else None


def _family_of_call(tree: exp.Anonymous, node: Node, catalog: Mapping[str, Schema]) -> str | None:
    """What a function that can't raise gives, where its arguments can't either."""
    name = tree.name.lower()
    families = {_family(each.unnest(), node, catalog) for each in tree.expressions}
    if name == "coalesce":
        return families.pop() if len(families) == 1 else None
    wanted, given = SAFE_CALLS.get(name, ("", None))
    return given if families == {wanted} else None
