"""Place conditions: filters above a join go into the join, or below it, where that is safe.

Filters above a generator that don't read what it makes go below it, as in Spark: a generator may
raise for a row that they take away.

A condition goes below if it reads one input and can't raise; into the join if it can't raise, or
is an equality of one input with another, both without joins of their own; what may raise stays
above, where phantom pairs have cancelled out, in the order written. It sees fewer rows the more the
others take away, so that those go first wherever they stand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.compile.totality import is_total
from ivm_core.operators.sql import equality_sides
from ivm_core.plan.nodes import Filter, Generate, Join, Node
from ivm_core.plan.partitioned import STATEFUL
from ivm_core.plan.rewriting import rewrite

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ivm_core.model.schema import Schema
    from ivm_core.plan.scalar import Scalar


def place_conditions(plan: Node, catalog: Mapping[str, Schema]) -> Node:
    """Move each filter over a join to where it costs least without seeing more rows."""

    def rule(node: Node) -> Node:
        if not isinstance(node, Filter):
            return node
        stack: list[Scalar] = []
        below: Node = node
        while isinstance(below, Filter):
            stack.append(below.predicate)
            below = below.input
        if isinstance(below, Generate):
            return _around(below, stack, rule)
        if not isinstance(below, Join):
            return node
        parts = list(below.parts)
        conditions = list(below.conditions)
        above: list[Scalar] = []
        for predicate in reversed(stack):
            owners = {below.part_of(column) for column in predicate.columns}
            total = is_total(predicate, below, catalog)
            if total and len(owners) == 1:
                owner = owners.pop()
                parts[owner] = Filter(parts[owner], predicate)
            elif _is_join_condition(predicate, below, total=total):
                conditions.append(predicate)
            else:
                above.append(predicate)
        result: Node = Join(tuple(parts), tuple(conditions))
        for predicate in above:
            result = Filter(result, predicate)
        return result

    return rewrite(plan, rule)


def _around(node: Generate, stack: list[Scalar], rule: Callable[[Node], Node]) -> Node:
    """A generator with its filters, outermost first, on the side where they belong."""
    made = set(node.names)
    source = node.input
    for predicate in reversed(stack):
        if not predicate.columns & made:
            source = Filter(source, predicate)
    result: Node = Generate(rule(source), node.generator, node.is_outer, node.names)
    for predicate in reversed(stack):
        if predicate.columns & made:
            result = Filter(result, predicate)
    return result


def _is_join_condition(predicate: Scalar, join: Join, *, total: bool) -> bool:
    if len({join.part_of(column) for column in predicate.columns}) < 2:
        return False
    if total:
        return True
    sides = equality_sides(predicate)
    if sides is None:
        return False
    owners = [{join.part_of(column) for column in side.columns} for side in sides]
    if len(owners[0]) != 1 or len(owners[1]) != 1 or owners[0] == owners[1]:
        return False
    return not any(_holds_phantoms(join.parts[owner]) for owner in owners[0] | owners[1])


def _holds_phantoms(part: Node) -> bool:
    """Whether a delta of the part can have rows that exist in neither state: those of a join."""
    if isinstance(part, STATEFUL):
        return False
    return isinstance(part, Join) or any(_holds_phantoms(child) for child in part.inputs)
