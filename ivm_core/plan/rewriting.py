"""Rebuilding frozen trees bottom-up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ivm_core.plan.nodes import (
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
    SetOperation,
    UnionAll,
)
from ivm_core.plan.partitioned import Partitioned

if TYPE_CHECKING:
    from collections.abc import Callable

ONE_INPUT = (Filter, Project, Aggregate, Distinct, Negated, Repeated, Generate, Kept, Partitioned)


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same node over other inputs."""
    if isinstance(node, ONE_INPUT):
        return replace(node, input=inputs[0])
    if isinstance(node, Match | SetOperation):
        return replace(node, left=inputs[0], right=inputs[1])
    if isinstance(node, UnionAll):
        return replace(node, branches=inputs)
    if isinstance(node, Join):
        return replace(node, parts=inputs)
    return node


def rewrite(node: Node, rule: Callable[[Node], Node]) -> Node:
    """Apply a rule to every node, inputs first; a node that is read twice stays one node."""
    done: dict[int, tuple[Node, Node]] = {}

    def visit(node: Node) -> Node:
        if id(node) not in done:
            inputs = tuple(visit(child) for child in node.inputs)
            new = node
            if any(ours is not theirs for ours, theirs in zip(inputs, node.inputs, strict=True)):
                new = with_inputs(node, inputs)
            done[id(node)] = (node, rule(new))
        return done[id(node)][1]

    return visit(node)
