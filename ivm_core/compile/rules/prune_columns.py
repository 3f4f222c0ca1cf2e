"""Prune columns: every node keeps only what is read above it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.operators.sql import scalar_of, unchanged
from ivm_core.plan.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
    Generate,
    Join,
    Kept,
    Match,
    Node,
    Project,
    Repeated,
    Scan,
    SetOperation,
    UnionAll,
)
from ivm_core.plan.partitioned import STATEFUL, Grouped, Top, Windowed
from ivm_core.plan.rewriting import with_inputs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.model.schema import Schema
    from ivm_core.plan.scalar import Scalar


def prune_columns(plan: Node, catalog: Mapping[str, Schema]) -> Node:
    """The same plan reading fewer columns; its own output stays."""
    pruning = _Pruning()
    pruning.collect(plan, frozenset(plan.columns))
    return pruning.pruned(plan, frozenset(plan.columns))


class _Pruning:
    """What is wanted of every node with state, by all who read it, and the nodes that give it.

    A query that is read twice is maintained once, with the columns that either reader wants.
    """

    def __init__(self) -> None:
        self._wanted: dict[int, frozenset[str]] = {}
        self._done: dict[tuple[int, frozenset[str]], Node] = {}

    def collect(self, node: Node, wanted: frozenset[str]) -> None:
        """Learn what a reader wants of a node, and so of those below."""
        if isinstance(node, STATEFUL):
            known = self._wanted.get(id(node))
            wanted = wanted | (known or frozenset())
            if wanted == known:
                return
            self._wanted[id(node)] = wanted
        for child, needed in zip(node.inputs, _needs(node, wanted), strict=True):
            self.collect(child, needed)

    def pruned(self, node: Node, wanted: frozenset[str]) -> Node:
        """The node with at least the wanted columns, in their old order."""
        wanted = self._wanted.get(id(node), wanted) if isinstance(node, STATEFUL) else wanted
        key = (id(node), wanted)
        if key not in self._done:
            needs = _needs(node, wanted)
            pairs = zip(node.inputs, needs, strict=True)
            inputs = tuple(self.pruned(child, needed) for child, needed in pairs)
            if isinstance(node, UnionAll):
                inputs = tuple(
                    _only(i, n, c) for i, n, c in zip(inputs, needs, node.inputs, strict=True)
                )
            self._done[key] = _reduced(node, wanted, inputs)
        return self._done[key]


def _needs(node: Node, wanted: frozenset[str]) -> list[frozenset[str]]:
    """What a node needs of its inputs to give the wanted columns."""
    if isinstance(node, Filter):
        return [wanted | node.predicate.columns]
    if isinstance(node, Project):
        scalars = [scalar for _, scalar in _outputs(node, wanted)]
        return [frozenset().union(*(scalar.columns for scalar in scalars))]
    if isinstance(node, Join | Match):
        needed = wanted.union(*(condition.columns for condition in node.conditions))
        return [needed & frozenset(child.columns) for child in node.inputs]
    if isinstance(node, UnionAll):
        return [
            frozenset(branch.columns[i] for i in _places(node, wanted)) for branch in node.branches
        ]
    if isinstance(node, Aggregate):
        columns = [column for _, column in node.keys]
        columns += [call.argument for call in _calls(node, wanted) if call.argument is not None]
        return [frozenset(columns)]
    if isinstance(node, Distinct | SetOperation):
        # every column decides which rows are the same
        return [frozenset(child.columns) for child in node.inputs]
    if isinstance(node, Repeated):
        # rows are counted by the weight of a column, so one of them stays
        return [(wanted or frozenset(node.columns[:1])) | {node.times}]
    if isinstance(node, Kept):
        return [wanted.union(node.keys)]
    if isinstance(node, Generate):
        return [(wanted - frozenset(node.names)) | node.generator.columns]
    if isinstance(node, Windowed):
        calls = _window_calls(node, wanted)
        if not calls:
            return [wanted]
        needed = wanted.union(node.partition, *(scalar.columns for _, scalar in calls))
        return [needed - {name for name, _ in node.calls}]
    if isinstance(node, Grouped):
        scalars = [scalar for _, scalar in _grouped(node, wanted)]
        return [frozenset(node.partition).union(*(scalar.columns for scalar in scalars))]
    if isinstance(node, Top):
        return [wanted.union(node.partition, *(scalar.columns for scalar in node.order))]
    return [wanted for _ in node.inputs]


def _reduced(node: Node, wanted: frozenset[str], inputs: tuple[Node, ...]) -> Node:
    """The node over pruned inputs, without what nobody wants of it."""
    if isinstance(node, Scan):
        pairs = zip(node.fields, node.columns, strict=True)
        fields = tuple(field for field, column in pairs if column in wanted)
        return Scan(node.relation, node.alias, fields or node.fields[:1])
    if isinstance(node, Project):
        return Project(inputs[0], _outputs(node, wanted))
    if isinstance(node, Aggregate):
        return Aggregate(inputs[0], node.keys, _calls(node, wanted))
    if isinstance(node, Windowed):
        calls = _window_calls(node, wanted)
        return replace(node, input=inputs[0], calls=calls) if calls else inputs[0]
    if isinstance(node, Grouped):
        return replace(node, input=inputs[0], calls=_grouped(node, wanted))
    return with_inputs(node, inputs)


def _outputs(node: Project, wanted: frozenset[str]) -> tuple[tuple[str, Scalar], ...]:
    outputs = tuple((name, scalar) for name, scalar in node.outputs if name in wanted)
    # a computed column that nobody wants may raise: a constant says as well that a row is there
    return outputs or ((node.outputs[0][0], scalar_of(exp.true())),)


def _calls(node: Aggregate, wanted: frozenset[str]) -> tuple[AggregateCall, ...]:
    calls = tuple(call for call in node.calls if call.name in wanted)
    return calls if node.keys else calls or node.calls[:1]


def _grouped(node: Grouped, wanted: frozenset[str]) -> tuple[tuple[str, Scalar], ...]:
    return tuple(call for call in node.calls if call[0] in wanted) or node.calls[:1]


def _window_calls(node: Windowed, wanted: frozenset[str]) -> tuple[tuple[str, Scalar], ...]:
    """The calls that are wanted, and those that these read."""
    calls: list[tuple[str, Scalar]] = []
    for name, scalar in reversed(node.calls):
        if name in wanted:
            calls.insert(0, (name, scalar))
            wanted = wanted | scalar.columns
    return tuple(calls)


def _places(node: UnionAll, wanted: frozenset[str]) -> list[int]:
    return [i for i, column in enumerate(node.columns) if column in wanted] or [0]


def _only(pruned: Node, wanted: frozenset[str], branch: Node) -> Node:
    """A branch of a union with exactly the wanted columns."""
    names = tuple(column for column in branch.columns if column in wanted)
    return pruned if pruned.columns == names else Project(pruned, unchanged(names))
