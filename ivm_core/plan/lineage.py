"""Where the columns of a plan come from, and which of them tell its rows apart.

A column comes from those that its value is computed of. What decides whether a row is there at
all (a WHERE, a join's condition) is no origin of any column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.plan.nodes import (
    CLOCKS,
    Aggregate,
    Constant,
    Distinct,
    Filter,
    Generate,
    Kept,
    Listed,
    Match,
    Node,
    Project,
    Scan,
    SetOperation,
    UnionAll,
)
from ivm_core.plan.partitioned import Grouped, Top, Windowed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Origin = tuple[str, str]
"""A relation and one of its columns."""
Origins = dict[str, frozenset[Origin]]


def column_origins(plan: Node) -> dict[str, tuple[Origin, ...]]:
    """By column of the plan, the columns of relations that its value is made of, in order."""
    known: dict[int, Origins] = {}

    def of(node: Node) -> Origins:
        if id(node) not in known:
            known[id(node)] = _origins(node, [of(each) for each in node.inputs])
        return known[id(node)]

    return {name: tuple(sorted(found)) for name, found in of(plan).items()}


def _origins(node: Node, inputs: list[Origins]) -> Origins:
    if isinstance(node, Scan):
        if node.relation in CLOCKS:
            return dict.fromkeys(node.columns, frozenset())
        pairs = zip(node.columns, node.fields, strict=True)
        return {column: frozenset({(node.relation, field)}) for column, field in pairs}
    if isinstance(node, Constant | Listed):
        return dict.fromkeys(node.columns, frozenset())
    if isinstance(node, UnionAll | SetOperation):
        sides = [list(each.values()) for each in inputs]
        return {
            column: frozenset().union(*(side[place] for side in sides))
            for place, column in enumerate(node.columns)
        }
    below: Origins = {}
    for each in inputs:
        below |= each
    if isinstance(node, Project):
        return {name: _together(below, scalar.columns) for name, scalar in node.outputs}
    if isinstance(node, Aggregate):
        found = {name: below[column] for name, column in node.keys}
        for call in node.calls:
            found[call.name] = below[call.argument] if call.argument else frozenset()
        return found
    if isinstance(node, Windowed | Grouped):
        for name, scalar in node.calls:
            below[name] = _together(below, scalar.columns)
    elif isinstance(node, Generate):
        below |= dict.fromkeys(node.names, _together(below, node.generator.columns))
    return {column: below[column] for column in node.columns}


def _together(origins: Origins, columns: Iterable[str]) -> frozenset[Origin]:
    return frozenset().union(*(origins[column] for column in columns))


def row_key(plan: Node, primary_keys: Mapping[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """Columns of which no two rows of the plan have the same values; None where none are known.

    `primary_keys` are those of relations; one row at most has no columns as its key.
    """
    if isinstance(plan, Scan):
        fields = primary_keys.get(plan.relation, ())
        if not fields or not set(fields) <= set(plan.fields):
            return None
        return tuple(plan.columns[plan.fields.index(field)] for field in fields)
    if isinstance(plan, Aggregate):
        return tuple(name for name, _ in plan.keys)
    if isinstance(plan, Grouped):
        return plan.partition
    if isinstance(plan, Distinct):
        return plan.columns
    if isinstance(plan, Project):
        return _renamed(plan, row_key(plan.input, primary_keys))
    keeps_rows = isinstance(plan, Filter | Kept | Windowed | Top)
    if keeps_rows or (isinstance(plan, Match) and plan.kind != "LEFT"):
        return row_key(plan.inputs[0], primary_keys)
    return None


def _renamed(plan: Project, key: tuple[str, ...] | None) -> tuple[str, ...] | None:
    names = {scalar.column: name for name, scalar in plan.outputs if scalar.is_column}
    if key is None or not set(key) <= set(names):
        return None
    return tuple(names[column] for column in key)
