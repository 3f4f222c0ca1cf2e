"""Casting what several queries give as one column to one type: UNION, INTERSECT, EXCEPT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.model.errors import Unsupported
from ivm_core.operators.sql import column_scalar, scalar_of, tree_of
from ivm_core.plan.nodes import Distinct, Node, Project, SetOperation, UnionAll
from ivm_core.plan.rewriting import rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.compile.type_book import TypeBook
    from ivm_core.model.schema import Schema
    from ivm_core.model.types import DataType
    from ivm_core.plan.scalar import Scalar


def with_common_types(plan: Node, catalog: Mapping[str, Schema], types: TypeBook) -> Node:
    """Cast the branches of every UNION ALL to the types of the whole."""

    def rule(node: Node) -> Node:
        if isinstance(node, SetOperation):
            try:
                whole = list(types.types(node, catalog).values())
            except Unsupported:
                return node
            sides = [_cast_all(side, whole, catalog, types) for side in node.inputs]
            return SetOperation(sides[0], sides[1], node.kind)
        if not isinstance(node, UnionAll):
            return node
        try:
            whole = list(types.types(node, catalog).values())
        except Unsupported:
            # all branches of a column are untyped NULLs: what is above gives it a type, or refuses
            return node
        return UnionAll(tuple(_cast_all(each, whole, catalog, types) for each in node.branches))

    return rewrite(plan, rule)


def _cast_all(
    branch: Node, wanted: list[DataType], catalog: Mapping[str, Schema], types: TypeBook
) -> Node:
    """The branch with its columns in these types."""
    try:
        found = list(types.types(branch, catalog).values())
    except Unsupported:
        return _cast_below(branch, wanted, catalog, types)
    if found == wanted:
        return branch
    triples = zip(branch.columns, found, wanted, strict=True)
    outputs = [
        (name, column_scalar(name) if has == wants else _cast(column_scalar(name), wants))
        for name, has, wants in triples
    ]
    return Project(branch, tuple(outputs))


def _cast_below(
    branch: Node, wanted: list[DataType], catalog: Mapping[str, Schema], types: TypeBook
) -> Node:
    """Casts where the untyped NULLs are written, so that no relation has them as a column."""
    if isinstance(branch, Project):
        pairs = zip(branch.outputs, wanted, strict=True)
        outputs = tuple((name, _cast(scalar, wants)) for (name, scalar), wants in pairs)
        return Project(branch.input, outputs)
    if isinstance(branch, UnionAll):
        return UnionAll(tuple(_cast_all(each, wanted, catalog, types) for each in branch.branches))
    if isinstance(branch, Distinct):
        return Distinct(_cast_all(branch.input, wanted, catalog, types))
    types.types(branch, catalog)
    return branch


def _cast(scalar: Scalar, wanted: DataType) -> Scalar:
    return scalar_of(exp.cast(tree_of(scalar), wanted.ddl, dialect="spark"))
