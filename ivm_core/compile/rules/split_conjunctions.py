"""Split conjunctions: `filter(a AND b, x)` becomes `filter(b, filter(a, x))`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.operators.sql import conjuncts
from ivm_core.plan.nodes import Filter, Node
from ivm_core.plan.rewriting import rewrite

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ivm_core.model.schema import Schema
    from ivm_core.plan.scalar import Scalar


def split_conjunctions(plan: Node, catalog: Mapping[str, Schema]) -> Node:
    """Give every conjunct a filter of its own, so that each can find its place."""

    def rule(node: Node) -> Node:
        if not isinstance(node, Filter):
            return node
        result = node.input
        for part in _all_conjuncts(node.predicate):
            result = Filter(result, part)
        return result

    return rewrite(plan, rule)


def _all_conjuncts(scalar: Scalar) -> Iterator[Scalar]:
    """Also those of conjunctions in parentheses."""
    parts = conjuncts(scalar)
    for part in parts:
        yield from _all_conjuncts(part) if len(parts) > 1 else [part]
