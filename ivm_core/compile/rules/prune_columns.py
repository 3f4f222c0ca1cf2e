"""Prune columns: every node keeps only what is read above it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.operators.sql import scalar_of, unchanged
from ivm_core.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Generate,
    Join,
    Match,
    Negated,
    Node,
    Project,
    Repeated,
    Scan,
    SetOperation,
    UnionAll,
)
from ivm_core.plan.partitioned import Grouped, Top, Windowed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.model.schema import Schema
    from ivm_core.plan.scalar import Scalar


def prune_columns(plan: Node, catalog: Mapping[str, Schema]) -> Node:
    """The same plan reading fewer columns; its own output stays."""
    return _prune(plan, frozenset(plan.columns))


def _prune(node: Node, wanted: frozenset[str]) -> Node:
    """The node with at least the wanted columns, in their old order."""
    if isinstance(node, Scan):
        fields = tuple(
            field
            for field, column in zip(node.fields, node.columns, strict=True)
            if column in wanted
        )
        return Scan(node.relation, node.alias, fields or node.fields[:1])
    if isinstance(node, Filter):
        return Filter(_prune(node.input, wanted | node.predicate.columns), node.predicate)
    if isinstance(node, Project):
        outputs = tuple((name, scalar) for name, scalar in node.outputs if name in wanted)
        # a computed column that nobody wants may raise: a constant says as well that a row is there
        outputs = outputs or ((node.outputs[0][0], scalar_of(exp.true())),)
        needed = frozenset().union(*(scalar.columns for _, scalar in outputs))
        return Project(_prune(node.input, needed), outputs)
    if isinstance(node, Join):
        needed = wanted.union(*(condition.columns for condition in node.conditions))
        return Join(tuple(_prune(part, needed) for part in node.parts), node.conditions)
    if isinstance(node, UnionAll):
        return _prune_union(node, wanted)
    if isinstance(node, Aggregate):
        calls = tuple(call for call in node.calls if call.name in wanted)
        if not node.keys:
            calls = calls or node.calls[:1]
        columns = [column for _, column in node.keys]
        columns += [call.argument for call in calls if call.argument is not None]
        return Aggregate(_prune(node.input, frozenset(columns)), node.keys, calls)
    if isinstance(node, Distinct):
        return Distinct(_prune(node.input, frozenset(node.input.columns)))
    if isinstance(node, Match):
        needed = wanted.union(*(condition.columns for condition in node.conditions))
        sides = (_prune(node.left, needed), _prune(node.right, needed))
        return Match(*sides, node.kind, node.conditions)
    if isinstance(node, SetOperation):
        # every column decides which rows are the same
        left, right = (_prune(side, frozenset(side.columns)) for side in node.inputs)
        return SetOperation(left, right, node.kind)
    if isinstance(node, Negated):
        return Negated(_prune(node.input, wanted))
    if isinstance(node, Repeated):
        return Repeated(_prune(node.input, wanted | {node.times}), node.times)
    if isinstance(node, Generate):
        needed = wanted | node.generator.columns
        return replace(node, input=_prune(node.input, needed))
    if isinstance(node, Windowed):
        return _prune_windowed(node, wanted)
    if isinstance(node, Grouped):
        grouped = tuple(call for call in node.calls if call[0] in wanted) or node.calls[:1]
        needed = frozenset(node.partition).union(*(scalar.columns for _, scalar in grouped))
        return replace(node, input=_prune(node.input, needed), calls=grouped)
    if isinstance(node, Top):
        needed = wanted.union(node.partition, *(scalar.columns for scalar in node.order))
        return replace(node, input=_prune(node.input, needed))
    return node


def _prune_windowed(node: Windowed, wanted: frozenset[str]) -> Node:
    needed = wanted
    calls: list[tuple[str, Scalar]] = []
    for name, scalar in reversed(node.calls):
        if name in needed:
            calls.insert(0, (name, scalar))
            needed = needed | scalar.columns
    if not calls:
        return _prune(node.input, wanted)
    needed = needed.union(node.partition)
    return replace(node, input=_prune(node.input, needed), calls=tuple(calls))


def _prune_union(node: UnionAll, wanted: frozenset[str]) -> Node:
    places = [i for i, column in enumerate(node.columns) if column in wanted] or [0]
    branches = []
    for branch in node.branches:
        names = [branch.columns[i] for i in places]
        pruned = _prune(branch, frozenset(names))
        if pruned.columns != tuple(names):
            pruned = Project(pruned, unchanged(names))
        branches.append(pruned)
    return UnionAll(tuple(branches))
