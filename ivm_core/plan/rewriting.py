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

ONE_INPUT = (Filter, Project, Aggregate, Distinct, Negated, Repeated, Generate, Partitioned)


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
    """Apply a rule to every node, inputs first."""
    inputs = tuple(rewrite(child, rule) for child in node.inputs)
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        node = with_inputs(node, inputs)
    return rule(node)
