"""Going through the tree of a query: what it is made of, and what it is with a part replaced."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from tests.fuzz.query_tree import (
    NODES,
    Column,
    Columns,
    Derived,
    Exploded,
    Expression,
    Node,
    Query,
    Table,
    Top,
    With,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LITERALS = {
    "INT": ("0", "1", "2", "-1"),
    "BIGINT": ("0L", "3L", "5000000000L"),
    "STRING": ("'a'", "'b'", "''", "'ab'"),
    "DOUBLE": ("0.5D", "0.0D", "-2.25D"),
    "QUOTIENT": ("0.5D", "0.0D", "2.0D"),
    "DECIMAL(6,2)": ("CAST(1.50 AS DECIMAL(6,2))", "CAST(0 AS DECIMAL(6,2))"),
    "DATE": ("DATE'2024-01-31'", "DATE'2023-12-31'"),
    "TIMESTAMP": ("TIMESTAMP'2024-01-31 12:30:00'", "TIMESTAMP'1969-12-31 23:59:59.5'"),
    "BOOLEAN": ("TRUE", "FALSE"),
    "ARRAY<INT>": ("array(1, 2)", "array(CAST(NULL AS INT), 0)"),
}
"""QUOTIENT is a DOUBLE that Spark may not add up: the order would show."""


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for _, _, child in children(node):
        yield from walk(child)


def children(node: Node) -> Iterator[tuple[str, int | None, Node]]:
    """Each child with the field, and the place in it, where it hangs."""
    for each in fields(node):
        held = getattr(node, each.name)
        if isinstance(held, NODES):
            yield each.name, None, held
        elif isinstance(held, tuple):
            for place, child in enumerate(held):
                if isinstance(child, NODES):
                    yield each.name, place, child


def with_child(node: Any, name: str, place: int | None, child: Node) -> Any:
    """The node with one child replaced."""
    if place is None:
        return replace(node, **{name: child})
    held = getattr(node, name)
    return replace(node, **{name: (*held[:place], child, *held[place + 1 :])})


def constructs(query: Query) -> set[str]:
    """What the query is made of, for counting."""
    return {name for node in walk(query) if (name := getattr(node, "construct", ""))}


def is_open(query: Query) -> bool:
    """Whether SQL leaves its result open."""
    return any(getattr(node, "is_open", False) for node in walk(query))


def relations(query: Query) -> set[str]:
    """The names in FROM, common table expressions among them."""
    return {node.name for node in walk(query) if isinstance(node, Table)}


def closed(query: Query, catalog: Mapping[str, Columns]) -> Query:
    """The query with a literal wherever a column is named that is no longer there."""
    known = dict(catalog)
    known.update((node.name, node.body.columns) for node in walk(query) if isinstance(node, With))
    held: set[tuple[str, str]] = set()
    for node in walk(query):
        if isinstance(node, Table):
            held.update((node.alias, name) for name, _ in known.get(node.name, ()))
        elif isinstance(node, Derived):
            held.update((node.alias, name) for name, _ in node.columns)
        elif isinstance(node, Exploded):
            held.add((node.alias, node.name))

    def mended(node: Any) -> Any:
        if isinstance(node, Column) and (node.alias, node.name) not in held:
            return plain(node.type)
        if isinstance(node, Table):
            return replace(node, columns=known.get(node.name, node.columns))
        for name, place, child in list(children(node)):
            node = with_child(node, name, place, mended(child))
        if isinstance(node, Top):
            there = {name for name, _ in node.columns}
            kept = tuple(each for each in node.order if each[0] in there)
            node = replace(node, order=kept or ((node.columns[0][0], ""),))
        return node

    return mended(query)  # type: ignore[no-any-return]


def plain(kind: str) -> Expression:
    """The simplest value of a type; never a bare number, which GROUP BY takes for a position."""
    text = LITERALS[kind][0]
    return Expression(kind, f"CAST({text} AS INT)" if kind == "INT" else text)
