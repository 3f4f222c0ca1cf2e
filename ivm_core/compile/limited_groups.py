"""An aggregate that is joined by its keys folds only the groups that are asked for.

    σ(A) ⋈ γ(B)   by a key of γ   =   σ(A) ⋈ γ(B ⋈ D)      D = the distinct keys of σ(A)

Most correlated subqueries are such joins, and most outer queries ask for few of their groups. Where
A is filtered by a value, D is small: so is the state of γ, and most changes of B miss it. The keys
have one type, or a row of B could equal several of D. Groups that nobody asks for are not looked
at, so that what can raise for one of them is left alone, as is an aggregate that others read too.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.compile.reach import is_comparable
from ivm_core.compile.totality import column_type
from ivm_core.model.types import FLOAT_KINDS, INTEGER_BITS, WIDEST_DECIMAL, Decimal
from ivm_core.operators.sql import (
    COMPARISONS,
    column,
    column_scalar,
    equality_sides,
    is_null_safe,
    scalar_of,
    tree_of,
)
from ivm_core.plan.nodes import Aggregate, Distinct, Filter, Join, Node, Project, Scan
from ivm_core.plan.rewriting import rewrite, with_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ivm_core.model.schema import Schema
    from ivm_core.model.types import DataType
    from ivm_core.plan.nodes import AggregateCall

    TypesOf = Callable[[Node], Mapping[str, DataType]]

NEVER_RAISE = frozenset({"COUNT_STAR", "COUNT", "MIN", "MAX"})
ROOM = 28
"""Digits of decimals whose sums and averages always fit."""


def limit_groups(plan: Node, catalog: Mapping[str, Schema], types_of: TypesOf) -> Node:
    """Join the input of an aggregate with the keys that the aggregate is asked for."""
    places = _places(plan, {})

    def rule(node: Node) -> Node:
        if not isinstance(node, Join):
            return node
        parts = list(node.parts)
        for at, part in enumerate(parts):
            aggregate = _aggregate(part)
            if aggregate is None or places[aggregate.text] != 1:
                continue
            asked = _asked(node, at, aggregate, catalog)
            if asked and _is_safe(part, aggregate, types_of):
                parts[at] = _replaced(part, aggregate, _limited(aggregate, *asked))
        changed = any(new is not old for new, old in zip(parts, node.parts, strict=True))
        return Join(tuple(parts), node.conditions) if changed else node

    return rewrite(plan, rule)


def _places(node: Node, known: dict[int, Counter[str]]) -> Counter[str]:
    """How often every aggregate is read, by its text."""
    if id(node) not in known:
        found: Counter[str] = Counter()
        for child in node.inputs:
            found += _places(child, known)
        if isinstance(node, Aggregate):
            found[node.text] += 1
        known[id(node)] = found
    return known[id(node)]


def _aggregate(node: Node) -> Aggregate | None:
    """The aggregate with keys below projections and filters."""
    while isinstance(node, Project | Filter):
        node = node.input
    return node if isinstance(node, Aggregate) and node.keys else None


def _replaced(node: Node, old: Node, new: Node) -> Node:
    if node is old:
        return new
    return with_inputs(node, tuple(_replaced(child, old, new) for child in node.inputs))


def _is_safe(part: Node, aggregate: Aggregate, types_of: TypesOf) -> bool:
    """Whether no group can make the aggregate raise, or what is computed of its row."""
    given = types_of(aggregate.input)
    if not all(_never_raises(call, given) for call in aggregate.calls):
        return False
    while isinstance(part, Project | Filter):
        types = types_of(part.input)
        if isinstance(part, Filter):
            if not _is_harmless(tree_of(part.predicate), types):
                return False
        elif not all(
            scalar.is_column or _number(tree_of(scalar), types) is not None
            for _, scalar in part.outputs
        ):
            return False
        part = part.input
    return True


def _never_raises(call: AggregateCall, types: Mapping[str, DataType]) -> bool:
    if call.function in NEVER_RAISE:
        return True
    if call.function not in ("SUM", "AVG") or call.argument is None:
        return False
    of = types[call.argument]
    if isinstance(of, Decimal):
        return of.precision <= ROOM
    is_short = of.kind in INTEGER_BITS and of.kind != "BIGINT"
    return is_short or of.kind in FLOAT_KINDS


def _is_harmless(tree: exp.Expr, types: Mapping[str, DataType]) -> bool:
    """Whether a condition compares numbers, which none of them can make raise."""
    tree = tree.unnest()
    if isinstance(tree, exp.And | exp.Or):
        return all(_is_harmless(each, types) for each in (tree.left, tree.right))
    if isinstance(tree, exp.Not):
        return _is_harmless(tree.this, types)
    if isinstance(tree, COMPARISONS):
        return all(_number(each, types) is not None for each in (tree.left, tree.right))
    return False


def _number(tree: exp.Expr, types: Mapping[str, DataType]) -> DataType | None:
    """The type of an expression over numbers that can't raise; None for any other."""
    tree = tree.unnest()
    if isinstance(tree, exp.Column):
        of = types.get(tree.name)
        is_number = of is not None and (of.kind in INTEGER_BITS or of.kind in FLOAT_KINDS)
        return of if is_number or isinstance(of, Decimal) else None
    if isinstance(tree, exp.Literal) and not tree.is_string:
        whole, _, part = str(tree.this).partition(".")
        digits = len((whole + part).lstrip("0")) or 1
        if not (whole + part).isdigit() or digits > WIDEST_DECIMAL:
            return None
        return Decimal(max(digits, len(part)), len(part))
    if not isinstance(tree, exp.Add | exp.Sub | exp.Mul):
        return None
    sides = [_number(each, types) for each in (tree.left, tree.right)]
    if any(of is not None and of.kind in FLOAT_KINDS for of in sides) and None not in sides:
        return next(of for of in sides if of is not None and of.kind in FLOAT_KINDS)
    ours, theirs = sides
    if not isinstance(ours, Decimal) or not isinstance(theirs, Decimal):
        return None
    if isinstance(tree, exp.Mul):
        precision, scale = ours.precision + theirs.precision + 1, ours.scale + theirs.scale
    else:
        scale = max(ours.scale, theirs.scale)
        precision = max(each.precision - each.scale for each in (ours, theirs)) + scale + 1
    return Decimal(precision, scale) if precision <= WIDEST_DECIMAL else None


def _asked(
    join: Join, at: int, aggregate: Aggregate, catalog: Mapping[str, Schema]
) -> tuple[Node, dict[str, str]] | None:
    """A filtered part that asks for groups by their keys, and its columns by keys of the input."""
    found: dict[int, dict[str, str]] = {}
    for ours, theirs in _equal_columns(join, at):
        key = dict(aggregate.keys).get(_below(join.parts[at], ours))
        owner = join.part_of(theirs)
        if key is None or not _is_filtered(join.parts[owner]):
            continue
        types = [column_type(aggregate.input, key, catalog), column_type(join, theirs, catalog)]
        if is_comparable(*types):
            found.setdefault(owner, {}).setdefault(key, theirs)
    if not found:
        return None
    owner = max(found, key=lambda each: len(found[each]))
    return join.parts[owner], found[owner]


def _equal_columns(join: Join, at: int) -> Iterator[tuple[str, str]]:
    """Columns of a part, each with one of another part that must equal it."""
    for condition in join.conditions:
        sides = equality_sides(condition)
        if sides is None or is_null_safe(condition) or not all(side.is_column for side in sides):
            continue
        for ours, theirs in (sides, sides[::-1]):
            if join.part_of(ours.column) == at != join.part_of(theirs.column):
                yield ours.column, theirs.column


def _below(node: Node, name: str) -> str:
    """What a column of a part is called in its aggregate; nothing for one that is computed."""
    while isinstance(node, Project | Filter):
        if isinstance(node, Project):
            source = node.source_of(name)
            if source is None:
                return ""
            name = source
        node = node.input
    return name


def _is_filtered(node: Node) -> bool:
    """Whether it is a relation of which a filter by values leaves few rows."""
    is_limited = False
    while isinstance(node, Project | Filter):
        if isinstance(node, Filter):
            is_limited = is_limited or _is_by_value(tree_of(node.predicate).unnest())
        node = node.input
    return is_limited and isinstance(node, Scan)


def _is_by_value(tree: exp.Expr) -> bool:
    if isinstance(tree, exp.In):
        return not tree.args.get("query")
    if not isinstance(tree, exp.EQ | exp.Like):
        return False
    sides = [tree.this.unnest(), tree.expression.unnest()]
    return any(isinstance(each, exp.Column) for each in sides) and any(
        isinstance(each, exp.Literal) for each in sides
    )


def _limited(aggregate: Aggregate, asking: Node, keys: Mapping[str, str]) -> Aggregate:
    limited = _joined(aggregate.input, asking, keys)
    return Aggregate(limited, aggregate.keys, aggregate.calls)


def _joined(node: Node, asking: Node, keys: Mapping[str, str]) -> Node:
    """The rows of a node whose columns have the values that are asked for."""
    if isinstance(node, Project) and all(scalar.is_column for _, scalar in node.outputs):
        below = {node.scalar_of(key).column: theirs for key, theirs in keys.items()}
        return Project(_joined(node.input, asking, below), node.outputs)
    names = {f"?group_{number}": key for number, key in enumerate(keys, 1)}
    while not set(names).isdisjoint(node.columns):
        names = {f"?{name}": key for name, key in names.items()}
    wanted = tuple((name, column_scalar(keys[key])) for name, key in names.items())
    same = tuple(
        scalar_of(exp.EQ(this=column(key), expression=column(name))) for name, key in names.items()
    )
    return Join((node, Distinct(Project(asking, wanted))), same)
