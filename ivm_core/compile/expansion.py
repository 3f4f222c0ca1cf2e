"""From what a query says to what a tick can do: matches and set operations in terms of sums.

The plan of a view says what it means. Its tick program is made of joins, counts and sums, whose
deltas are known; the equations are those of `operators.match` and `operators.set_operation`.

A match reads its left side two or three times, so a chain of them would read the first side of all
a number of times that grows with every link. Where that is much, the side's rows are kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.model.errors import Unsupported
from ivm_core.operators.sql import (
    column,
    column_scalar,
    equality_sides,
    is_null_safe,
    scalar_of,
    tree_of,
    unchanged,
)
from ivm_core.plan.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
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
from ivm_core.plan.partitioned import STATEFUL, Top
from ivm_core.plan.rewriting import with_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ivm_core.model.types import DataType
    from ivm_core.plan.scalar import Scalar

TIMES = "?times"
LEFT_IS_READ = {"LEFT": 3, "ANTI": 2, "SEMI": 1}
"""How often the expansion of a match by equal keys has its left side; by others once more."""
MANY_LEAVES = 12
"""Relations in one statement, all for the same rows, from which on the rows are kept."""


def expand(plan: Node, types_of: Callable[[Node], Mapping[str, DataType]]) -> Node:
    """The plan without matches and set operations; `types_of` knows the columns of its nodes."""
    done: dict[int, Node] = {}
    kept: dict[str, Node] = {}
    readers = _Readers(plan)

    def visit(node: Node) -> Node:
        if id(node) not in done:
            done[id(node)] = kept_if_read_often(node, expanded(node))
        return done[id(node)]

    def can_keep(node: Node) -> bool:
        try:
            types_of(node)
        except Unsupported:
            return False  # it has untyped NULLs, or texts with a collation
        return True

    def kept_if_read_often(node: Node, result: Node) -> Node:
        often = readers.times.get(node.text, 0)
        if often < 2 or isinstance(result, STATEFUL) or often * _leaves(result) <= MANY_LEAVES:
            return result
        if not can_keep(node):
            return result
        return kept.setdefault(node.text, Kept(result, readers.keys.get(node.text, ())))

    def expanded(node: Node) -> Node:
        inputs = tuple(visit(child) for child in node.inputs)
        if isinstance(node, Match):
            nulls = types_of(node.right) if node.kind == "LEFT" else {}
            return _match(Match(inputs[0], inputs[1], node.kind, node.conditions), nulls, can_keep)
        if isinstance(node, Top) and node.offset and node.limit is not None:
            # the rows up to the end of the page are kept, and the page is cut from them
            first = replace(node, input=inputs[0], limit=node.limit + node.offset, offset=0)
            return replace(node, input=first)
        if isinstance(node, SetOperation):
            return _set_operation(SetOperation(inputs[0], inputs[1], node.kind), can_keep)
        if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
            return with_inputs(node, inputs)
        return node

    return visit(plan)


class _Readers:
    """How often each node is read when all are expanded, and by which of its columns."""

    def __init__(self, plan: Node) -> None:
        self.times: dict[str, int] = {}
        self.keys: dict[str, tuple[str, ...]] = {}
        for node in plan.walk():
            for position, child in enumerate(node.inputs):
                is_left = position == 0
                times = _left_is_read(node) if isinstance(node, Match) and is_left else 1
                self.times[child.text] = self.times.get(child.text, 0) + times
            if isinstance(node, Match):
                pairs = (_sides(condition, node) for condition in node.conditions)
                keys = (ours.column for ours, _ in filter(None, pairs) if ours.is_column)
                self.keys.setdefault(node.left.text, tuple(dict.fromkeys(keys)))


def _left_is_read(node: Match) -> int:
    sides = [set(node.left.columns), set(node.right.columns)]
    between = [each for each in node.conditions if not any(each.columns <= side for side in sides)]
    has_others = any(_sides(condition, node) is None for condition in between)
    return LEFT_IS_READ[node.kind] + has_others


def _leaves(node: Node) -> int:
    """Relations that a statement over the node names, as often as it does."""
    if not node.inputs or isinstance(node, STATEFUL):
        return 1
    return sum(_leaves(child) for child in node.inputs)


def _match(node: Match, nulls: Mapping[str, DataType], can_keep: Callable[[Node], bool]) -> Node:
    if node.kind == "SEMI":
        return _semi(node, can_keep)
    unmatched = UnionAll((node.left, Negated(_semi(node, can_keep))))
    if node.kind == "ANTI":
        return unmatched
    pairs: Node = Join((node.left, node.right), ())
    for condition in node.conditions:
        pairs = Filter(pairs, condition)
    padding = [
        (name, scalar_of(exp.cast(exp.null(), nulls[name].ddl, dialect="spark")))
        for name in node.right.columns
    ]
    return UnionAll((pairs, Project(unmatched, (*unchanged(node.left.columns), *padding))))


def _semi(node: Match, can_keep: Callable[[Node], bool]) -> Node:
    """Left rows that have a match: joined with what matches, each once."""
    left, right = node.left, node.right
    between: list[Scalar] = []
    for condition in node.conditions:
        if condition.columns and condition.columns <= set(left.columns):
            left = Filter(left, condition)
        elif condition.columns <= set(right.columns):
            right = Filter(right, condition)
        else:
            between.append(condition)
    pairs = [_sides(condition, node) for condition in between]
    equalities = [pair for pair in pairs if pair is not None]
    if len(equalities) == len(pairs):
        keys = _keys(right, equalities)
        if not any(_is_collated(theirs) for _, theirs in equalities) or can_keep(keys):
            return _by_equal_keys(left, Distinct(keys), equalities, between)
    return _by_any_condition(left, right, between)


def _keys(right: Node, pairs: list[tuple[Scalar, Scalar]]) -> Node:
    """What the right side has to match, without anything to match that it has rows."""
    keys = [(f"?match_{number}", theirs) for number, (_, theirs) in enumerate(pairs, 1)]
    return Project(right, tuple(keys or [("?match", scalar_of(exp.true()))]))


def _is_collated(scalar: Scalar) -> bool:
    """Whether an expression may be a text with a collation, which no row can have."""
    calls = tree_of(scalar).find_all(exp.Collate, exp.Anonymous)
    return any(isinstance(each, exp.Collate) or "collat" in each.name.lower() for each in calls)


def _by_equal_keys(
    left: Node, matching: Node, pairs: list[tuple[Scalar, Scalar]], conditions: list[Scalar]
) -> Node:
    joined: Node = Join((left, matching), ())
    for name, (ours, _), condition in zip(matching.columns, pairs, conditions, strict=False):
        kind = exp.NullSafeEQ if is_null_safe(condition) else exp.EQ
        joined = Filter(joined, scalar_of(kind(this=tree_of(ours), expression=column(name))))
    return _only(joined, left)


def _by_any_condition(left: Node, right: Node, conditions: list[Scalar]) -> Node:
    read = frozenset().union(*(condition.columns for condition in conditions))
    names = [name for name in left.columns if name in read]
    candidates = Distinct(Project(left, unchanged(names)))
    pairs: Node = Join((candidates, right), ())
    for condition in conditions:
        pairs = Filter(pairs, condition)
    found = [(f"?match_{number}", column_scalar(name)) for number, name in enumerate(names, 1)]
    joined: Node = Join((left, Distinct(Project(pairs, tuple(found)))), ())
    for (match, _), name in zip(found, names, strict=True):
        same = exp.NullSafeEQ(this=column(name), expression=column(match))
        joined = Filter(joined, scalar_of(same))
    return _only(joined, left)


def _sides(condition: Scalar, node: Match) -> tuple[Scalar, Scalar] | None:
    """The left and the right side of an equality between the two inputs."""
    sides = equality_sides(condition)
    if sides is None:
        return None
    left, right = set(node.left.columns), set(node.right.columns)
    for ours, theirs in (sides, sides[::-1]):
        if ours.columns and theirs.columns and ours.columns <= left and theirs.columns <= right:
            return ours, theirs
    return None


def _only(joined: Node, left: Node) -> Node:
    return Project(joined, unchanged(left.columns))


def _set_operation(node: SetOperation, can_keep: Callable[[Node], bool]) -> Node:
    if node.kind.endswith("ALL"):
        return _counted(node)
    names = [f"?other_{number}" for number in range(1, len(node.columns) + 1)]
    pairs = zip(names, node.right.columns, strict=True)
    right = Project(node.right, tuple((name, column_scalar(theirs)) for name, theirs in pairs))
    same = tuple(
        scalar_of(exp.NullSafeEQ(this=column(ours), expression=column(name)))
        for ours, name in zip(node.columns, names, strict=True)
    )
    kind = "SEMI" if node.kind == "INTERSECT" else "ANTI"
    return _match(Match(Distinct(node.left), right, kind, same), {}, can_keep)


def _counted(node: SetOperation) -> Node:
    """Rows of both sides counted, and repeated as often as the operation says."""
    sides = []
    for side, mark in ((node.left, (1, 0)), (node.right, (0, 1))):
        named = zip(node.columns, side.columns, strict=True)
        outputs = [(ours, column_scalar(theirs)) for ours, theirs in named]
        marks = zip(("?left", "?right"), mark, strict=True)
        outputs += [(name, scalar_of(exp.Literal.number(one))) for name, one in marks]
        sides.append(Project(side, tuple(outputs)))
    calls = (AggregateCall("?lefts", "SUM", "?left"), AggregateCall("?rights", "SUM", "?right"))
    counted = Aggregate(UnionAll(tuple(sides)), tuple((n, n) for n in node.columns), calls)
    both = [column("?lefts"), column("?rights")]
    if node.kind == "INTERSECT ALL":
        times: exp.Expr = exp.Least(this=both[0], expressions=[both[1]])
    else:
        times = exp.Sub(this=both[0], expression=both[1])
    rows = Project(counted, (*unchanged(node.columns), (TIMES, scalar_of(times))))
    some = exp.GT(this=column(TIMES), expression=exp.Literal.number(0))
    return Repeated(Filter(rows, scalar_of(some)), TIMES)
