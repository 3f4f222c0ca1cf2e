"""Split conjunctions: `filter(a AND b, x)` becomes `filter(b, filter(a, x))`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.operators.sql import conjuncts
from ivm_core.plan.nodes import Filter, Node
from ivm_core.plan.rewriting import rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.model.schema import Schema


def split_conjunctions(plan: Node, catalog: Mapping[str, Schema]) -> Node:
    """Give every conjunct a filter of its own, so that each can find its place."""

    def rule(node: Node) -> Node:
        if not isinstance(node, Filter):
            return node
        result = node.input
        for part in conjuncts(node.predicate):
            result = Filter(result, part)
        return result

    return rewrite(plan, rule)
