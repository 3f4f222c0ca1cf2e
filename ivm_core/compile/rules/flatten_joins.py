"""Flatten joins: `(a ⋈ b) ⋈ c` becomes one join of three, whose delta has one term an input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.plan.nodes import Join, Node
from ivm_core.plan.rewriting import rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.model.schema import Schema


def flatten_joins(plan: Node, catalog: Mapping[str, Schema]) -> Node:
    """Take the parts of joins that are parts of joins."""

    def rule(node: Node) -> Node:
        if not isinstance(node, Join) or not any(isinstance(p, Join) for p in node.parts):
            return node
        parts: list[Node] = []
        conditions = list(node.conditions)
        for part in node.parts:
            if isinstance(part, Join):
                parts.extend(part.parts)
                conditions.extend(part.conditions)
            else:
                parts.append(part)
        return Join(tuple(parts), tuple(conditions))

    return rewrite(plan, rule)
