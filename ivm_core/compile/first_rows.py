"""Rows by their place: where only the first n of every partition are asked for, only they are kept.

    σ(place ≤ n)(ω(place = row_number() over (partition p order o))(A)) = ω(τ(p, o, n)(A))

Without it the window would keep every row with its place, and a new first row would move them all.
The place is computed anew over the few rows that are kept, and not at all where nobody reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.compile.totality import is_total
from ivm_core.operators.sql import scalar_of, tree_of
from ivm_core.plan.nodes import Filter, Node
from ivm_core.plan.partitioned import Top, Windowed
from ivm_core.plan.rewriting import rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.model.schema import Schema
    from ivm_core.plan.scalar import Scalar

MOST = 1000
"""Beyond so many rows of a partition, keeping them all is not much more."""


def keep_first_rows(plan: Node, catalog: Mapping[str, Schema]) -> Node:
    """The same plan, with a LIMIT below every row_number() of which only the first are read."""
    read: dict[int, int] = {}
    for node in plan.walk():
        for child in node.inputs:
            read[id(child)] = read.get(id(child), 0) + 1

    def rule(node: Node) -> Node:
        if not isinstance(node, Filter):
            return node
        stack = [node]
        while isinstance(stack[-1].input, Filter):
            stack.append(stack[-1].input)
        window = stack[-1].input
        # another reader may want the rows behind the first ones too
        if not isinstance(window, Windowed) or any(read.get(id(each)) != 1 for each in stack[1:]):
            return node
        return _limited(node, stack, window, catalog) if read.get(id(window)) == 1 else node

    return rewrite(plan, rule)


def _limited(
    node: Node, stack: list[Filter], window: Windowed, catalog: Mapping[str, Schema]
) -> Node:
    order = _row_number_order(window)
    if order is None:
        return node
    place = window.calls[0][0]
    kept: list[Scalar] = []
    for position, each in enumerate(reversed(stack)):
        first = _first(each.predicate, place)
        if first is not None and 0 < first.count <= MOST:
            top = Top(window.input, window.partition, order, first.count)
            above = [other.predicate for other in reversed(stack)][position + 1 :]
            kept += [] if first.is_all else [each.predicate]
            result: Node = replace(window, input=top)
            for predicate in (*kept, *above):
                result = Filter(result, predicate)
            return result
        if not is_total(each.predicate, each.input, catalog):
            # it may fail on a row behind the first ones, and then has to
            return node
        kept.append(each.predicate)
    return node


@dataclass(frozen=True)
class _First:
    """How many rows a condition asks for at most, and whether for all of them."""

    count: int
    is_all: bool


def _row_number_order(window: Windowed) -> tuple[Scalar, ...] | None:
    """The order of a window that has row_number() and nothing else."""
    if len(window.calls) != 1 or not window.partition:
        return None
    call = tree_of(window.calls[0][1])
    if not isinstance(call, exp.Window) or call.this.name.upper() != "ROW_NUMBER":
        return None
    partition = {each.name for each in call.args.get("partition_by") or ()}
    order = call.args.get("order")
    if partition != set(window.partition) or order is None:
        return None
    return tuple(scalar_of(each) for each in order.expressions)


def _first(predicate: Scalar, place: str) -> _First | None:
    tree = tree_of(predicate).unnest()
    if not isinstance(tree, exp.LTE | exp.LT | exp.EQ | exp.GTE | exp.GT):
        return None
    left, right = tree.left.unnest(), tree.right.unnest()
    if isinstance(tree, exp.GTE | exp.GT) or isinstance(left, exp.Literal):
        # 3 >= place says what place <= 3 does
        if not isinstance(tree, exp.GTE | exp.GT | exp.EQ):
            return None
        left, right = right, left
    is_place = isinstance(left, exp.Column) and left.name == place
    if not is_place or not isinstance(right, exp.Literal) or not right.is_int:
        return None
    number = int(right.this)
    if isinstance(tree, exp.EQ):
        return _First(number, is_all=number == 1)
    return _First(number - 1 if isinstance(tree, exp.LT | exp.GT) else number, is_all=True)
