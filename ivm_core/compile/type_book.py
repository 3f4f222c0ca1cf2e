"""Types of inner nodes, as Spark's analyzer gives them.

A node is asked about over empty relations that stand for its inputs, so that a question is as
small as the node, whatever is below it. Answers are kept with the view's definition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

from ivm_core.compile.lowering import Lowering
from ivm_core.compile.stages import Output
from ivm_core.compile.totality import column_type
from ivm_core.model.errors import InternalError, Unsupported
from ivm_core.model.names import quote
from ivm_core.model.schema import Field, Schema, parse_schema
from ivm_core.operators.operator import Form
from ivm_core.operators.sql import scalar_of, select, text_of, tree_of
from ivm_core.plan.nodes import CLOCKS, Filter, Generate, Join, Match, Node, Project, Scan
from ivm_core.plan.rewriting import with_inputs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.model.types import DataType
    from ivm_core.plan.scalar import Scalar


UNTYPED = "?"
"""What the book says of a node whose columns can't all be kept; of one column with its type."""


class Analyser(Protocol):
    """Spark's analyzer over empty relations."""

    def types_of(self, sql: str, relations: Mapping[str, Schema]) -> list[DataType]:
        """The types of a query's columns; raises for what Spark refuses."""

    def columns_of(self, sql: str, relations: Mapping[str, Schema]) -> list[tuple[str, str]] | None:
        """Names and types of a query's columns in Spark's words; None for what it refuses."""

    def refuse_random(self, sql: str, relations: Mapping[str, Schema], names: list[str]) -> None:
        """Raise NotIncremental for expressions that Spark calls non-deterministic."""


class UnknownTypes(InternalError):
    """A book that was written for other nodes."""


class TypeBook:
    """Types of inner nodes: from the book, or asked of the analyser and written down."""

    def __init__(
        self, analyser: Analyser | None, known: Mapping[str, str], where: str = "a node"
    ) -> None:
        """Without analyser every question must be in the book already; `where` is for messages."""
        self._analyser = analyser
        self._where = where
        self.book: dict[str, str] = dict(known)

    def types(self, node: Node, catalog: Mapping[str, Schema]) -> dict[str, DataType]:
        """The type of every column of a node."""
        if not node.columns:
            return {}
        traced = {column: column_type(node, column, catalog) for column in node.columns}
        if all(found is not None for found in traced.values()):
            return {column: found for column, found in traced.items() if found is not None}
        if node.fingerprint not in self.book:
            if self._analyser is None:
                raise UnknownTypes(f"nothing is known of the types of {node.text}")
            found = self._asked(node, catalog, self._analyser)
            positional = tuple(Field(f"c{i}", each) for i, each in enumerate(found))
            self.book[node.fingerprint] = Schema(positional, internal=True).ddl
        if is_untyped(self.book[node.fingerprint]):
            raise Unsupported(
                "a column of this type",
                position=f"{self._where}, {node.text}",
                reason="rows that are kept can't have a VARIANT, an INTERVAL, a text with a "
                "collation or an untyped NULL, and a scalar subquery can't give a MAP",
                rewrite="cast it where it is made: CAST(NULL AS STRING), to_json(v), lower(s), a "
                "number of seconds, map_entries(m)",
            )
        known = parse_schema(self.book[node.fingerprint])
        return {column: each.type for column, each in zip(node.columns, known, strict=True)}

    def can_be_kept(self, node: Node, catalog: Mapping[str, Schema]) -> bool:
        """Whether all columns of a node have types that rows can have."""
        is_unknown = self._analyser is None and node.fingerprint not in self.book
        try:
            return is_unknown or bool(self.types(node, catalog))
        except Unsupported:
            return False

    def interval(self, node: Node, catalog: Mapping[str, Schema]) -> str:
        """The type of a node's one column where that is an INTERVAL, in Spark's words; or empty."""
        if self.can_be_kept(node, catalog):
            return ""
        found = self.book[node.fingerprint].removeprefix(UNTYPED)
        return found if found.startswith("interval ") else ""

    def _asked(
        self, node: Node, catalog: Mapping[str, Schema], analyser: Analyser
    ) -> list[DataType]:
        alone, relations = self._alone(node, catalog)
        query = Lowering(relations, {}).render(alone, Form.PLAIN)
        if query is None:
            raise InternalError(f"{node.text} has no plain form")
        read = {name: relation_schema(name, relations) for name in alone.relations}
        try:
            return analyser.types_of(text_of(query), read)
        except Unsupported:
            is_one = len(node.columns) == 1
            columns = analyser.columns_of(text_of(query), read) if is_one else None
            self.book[node.fingerprint] = UNTYPED + (columns[0][1] if columns else "")
            raise

    def _alone(self, node: Node, catalog: Mapping[str, Schema]) -> tuple[Node, dict[str, Schema]]:
        """The node over relations that have the columns of its inputs."""
        relations: dict[str, Schema] = {}

        def stub(child: Node) -> Node:
            if isinstance(child, Scan):
                relations[child.relation] = relation_schema(child.relation, catalog)
                return child
            try:
                types = self.types(child, catalog)
            except Unsupported:
                # it has a column of untyped NULLs, to which this node may give a type
                return with_inputs(child, tuple(stub(each) for each in child.inputs))
            made = Output.named(f"?input_{len(relations) + 1}", child.columns)
            fields = [Field(n, types[c]) for n, c in zip(made.fields, child.columns, strict=True)]
            relations[made.relation] = Schema(tuple(fields), internal=True)
            return made

        return with_inputs(node, tuple(stub(child) for child in node.inputs)), relations

    def refuse_random(self, plan: Node, catalog: Mapping[str, Schema]) -> None:
        """Ask Spark about every expression that is more than a column."""
        if self._analyser is None:
            return
        for node in plan.walk():
            scalars = [scalar for scalar in _scalars(node) if not scalar.is_column]
            if not scalars:
                continue
            alone, relations = self._alone(node, catalog)
            source: Node = alone if isinstance(alone, Join) else alone.inputs[0]
            if isinstance(alone, Match):
                source = Join(alone.inputs, ())
            query = Lowering(relations, {}).render(source, Form.PLAIN)
            if query is None:
                continue
            counts = [exp.Count(this=tree_of(scalar)) for scalar in scalars]
            read = {name: relation_schema(name, relations) for name in source.relations}
            names = [scalar.sql for scalar in scalars]
            self._analyser.refuse_random(text_of(select(counts, query)), read, names)


def is_untyped(booked: str) -> bool:
    """Whether the book says that a node can't be kept."""
    return booked.startswith(UNTYPED)


def relation_schema(name: str, catalog: Mapping[str, Schema]) -> Schema:
    """The schema of a relation or of a clock."""
    if name in CLOCKS and name not in catalog:
        column, ddl = CLOCKS[name]
        return parse_schema(f"{quote(column)} {ddl}")
    return catalog[name]


def _scalars(node: Node) -> list[Scalar]:
    """The expressions of a node that are evaluated row by row."""
    if isinstance(node, Project):
        return [scalar for _, scalar in node.outputs]
    if isinstance(node, Filter):
        return [node.predicate]
    if isinstance(node, Join | Match):
        return list(node.conditions)
    if isinstance(node, Generate):
        return [scalar_of(each) for each in tree_of(node.generator).args["expressions"]]
    return []
