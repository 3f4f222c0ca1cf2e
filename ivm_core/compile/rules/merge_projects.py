"""Merge projections: `project(f, project(renames, x))` becomes `project(f ∘ renames, x)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from ivm_core.operators.sql import renamed
from ivm_core.plan.nodes import Filter, Node, Project
from ivm_core.plan.rewriting import rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.model.schema import Schema


def merge_projects(plan: Node, catalog: Mapping[str, Schema]) -> Node:
    """Collapse stacked projections whose lower one only renames; drop those that do nothing."""

    def rule(node: Node) -> Node:
        if isinstance(node, Project) and _renames(node.input):
            lower = node.input
            names = {name: scalar.column for name, scalar in lower.outputs}
            outputs = tuple((name, renamed(scalar, names)) for name, scalar in node.outputs)
            node = Project(lower.input, outputs)
        if isinstance(node, Filter) and _renames(node.input):
            lower = node.input
            names = {name: scalar.column for name, scalar in lower.outputs}
            node = Project(Filter(lower.input, renamed(node.predicate, names)), lower.outputs)
        if _does_nothing(node):
            return node.inputs[0]
        return node

    return rewrite(plan, rule)


def _renames(node: Node) -> TypeGuard[Project]:
    return isinstance(node, Project) and all(scalar.is_column for _, scalar in node.outputs)


def _does_nothing(node: Node) -> bool:
    if not isinstance(node, Project) or node.columns != node.input.columns:
        return False
    return all(scalar.is_column and scalar.column == name for name, scalar in node.outputs)
