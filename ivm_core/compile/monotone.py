"""MIN and MAX within recursion: which uses of an extreme only ever improve what is derived from it.

An extreme changes while the fixpoint is sought: that of a MIN moves down, that of a MAX up. What is
derived from it must follow without anything being taken back: sums, LEAST and GREATEST of it move
the same way, a difference moves against what it subtracts, `d < 10` stays true once it is. Any
other use (an equality, a key, a product) would let a better value undo what a worse one gave, so
that the result would depend on the order of iterations. It is refused.

An extreme that is NULL is the worst there is, and LEAST and GREATEST pass over it. GREATEST(d, 5)
is 5 while a MIN `d` is NULL, and 7 once it is 7: not better but worse. It is taken only where `d`
can't be NULL: because the rule asks for rows with a value, or because all rules give one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp

from ivm_core.compile.nulls import always_valued, asked_for_value, chosen_from, required, unwrapped
from ivm_core.compile.ordered_types import kind_of_value, reordered
from ivm_core.compile.totality import column_type
from ivm_core.model.errors import Unsupported
from ivm_core.operators.sql import tree_of
from ivm_core.plan.nodes import Filter, Generate, Join, Match, Node, Project, Scan, UnionAll
from ivm_core.plan.recursion import BAG, MAX, MIN, SET, Rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ivm_core.model.schema import Schema
    from ivm_core.plan.scalar import Scalar

DOWN, STILL, UP = -1, 0, 1


class _MovesBothWays(Exception):
    """An expression of which nobody knows how it moves."""

    def __init__(self, unless_null: str = "") -> None:
        super().__init__(unless_null)
        self.unless_null = unless_null
        """The column that must not be NULL for it to move one way, where that is all."""


@dataclass(frozen=True)
class _Move:
    """How a column moves, and whether it can be NULL first and have a value then."""

    way: int
    is_null_first: bool = True
    kind: str = ""
    """TEXT or FLOAT, where it is known to be one."""


_Moves = dict[str, _Move]


def refuse_other_uses(
    component: Mapping[str, Rules], schemas: Mapping[str, Schema] | None = None
) -> None:
    """`Unsupported` for a rule in which a better extreme could undo what a worse one gave.

    Types are those of `schemas`, where they are known.
    """
    if all(rules.fold not in (MIN, MAX) for rules in component.values()):
        return
    checking = _Checking(component, schemas or {})
    for rules in component.values():
        for branch in rules.branches:
            checking.rule(rules, branch)


def refuse_mixed(component: Mapping[str, Rules]) -> None:
    """`Unsupported` for bags beside sets and extremes in one component."""
    bags = [name for name, each in component.items() if each.fold == BAG]
    if bags and len(bags) < len(component):
        others = ", ".join(name for name in component if name not in bags)
        raise Unsupported(
            f"UNION ALL, or a plain SELECT, in the recursion of {others}",
            position=f"view {bags[0]}",
            reason="rows of the others are there or not, however often they are derived; how often "
            "rows of this one are there would depend on the order of iterations",
            rewrite="write UNION instead of UNION ALL, SELECT DISTINCT instead of SELECT",
        )


class _Checking:
    """The rules of one component."""

    def __init__(self, component: Mapping[str, Rules], schemas: Mapping[str, Schema]) -> None:
        self._valued = always_valued(component)
        self._schemas = schemas
        self._moving = {
            name: (rules.value, DOWN if rules.fold == MIN else UP)
            for name, rules in component.items()
            if rules.fold in (MIN, MAX)
        }

    def rule(self, rules: Rules, branch: Node) -> None:
        where = f"view {rules.view}"
        moves = self._moves(branch, where)
        for column in branch.columns:
            if column not in moves:
                continue
            move = moves[column].way
            wanted = {MIN: DOWN, MAX: UP}.get(rules.fold, STILL)
            if column == rules.value and move == wanted:
                continue
            if rules.fold == SET or column != rules.value:
                what = f"{column}, which is made of an extreme of the same recursion"
                reason = "rows with its former values would have been derived, and stay"
            else:
                word = "down" if move == DOWN else "up"
                what = f"{rules.fold} of a value that moves {word}"
                reason = "a better value below makes it worse"
            self._refuse(what, where, reason)

    def _moves(self, node: Node, where: str) -> _Moves:
        """The columns that are made of extremes, and the way that each moves."""
        if isinstance(node, Scan):
            value, way = self._moving.get(node.relation, ("", STILL))
            names = zip(node.columns, node.fields, strict=True)
            if way == STILL:
                return {}
            kind = self._kind_of(node)(node.columns[node.fields.index(value)])
            move = _Move(way, node.relation not in self._valued, kind)
            return {column: move for column, field in names if field == value}
        if isinstance(node, UnionAll):
            return self._of_union(node, where)
        below: _Moves = {}
        for each in node.inputs:
            below |= self._moves(each, where)
        if isinstance(node, Project):
            found = {name: self._move(scalar, below, node, where) for name, scalar in node.outputs}
            return {name: move for name, move in found.items() if move is not None}
        if isinstance(node, Filter):
            return self._conditions([node.predicate], below, node, where)
        if isinstance(node, Join):
            return self._conditions(node.conditions, below, node, where)
        if isinstance(node, Match):
            if node.kind == "ANTI":
                self._refuse_any(node.conditions, below, where)
            else:
                below = self._conditions(node.conditions, below, node, where)
            return {name: move for name, move in below.items() if name in node.columns}
        if isinstance(node, Generate):
            self._refuse_any([node.generator], below, where)
        return below

    def _of_union(self, node: UnionAll, where: str) -> _Moves:
        found: _Moves = {}
        for branch in node.branches:
            moves = self._moves(branch, where)
            for name, column in zip(node.columns, branch.columns, strict=True):
                if column not in moves:
                    continue
                move, other = moves[column], found.get(name)
                if other is not None and other.way != move.way:
                    self._refuse(name, where, "it moves both ways")
                both = [each for each in (move, other) if each is not None]
                found[name] = _Move(
                    move.way,
                    any(each.is_null_first for each in both),
                    max(each.kind for each in both),
                )
        return found

    def _conditions(
        self, conditions: Iterable[Scalar], moves: _Moves, node: Node, where: str
    ) -> _Moves:
        """What moves among the rows for which conditions hold; refuses those that may cease to."""
        trees = [(each, tree_of(each)) for each in conditions]
        given = {name for _, tree in trees for name in required(tree)}
        moves = {
            name: replace(move, is_null_first=move.is_null_first and name not in given)
            for name, move in moves.items()
        }
        for condition, tree in trees:
            if not condition.columns & set(moves):
                continue
            self._refuse_reordered(condition, moves, node, where)
            try:
                holds = _stays_true(tree, moves)
            except _MovesBothWays as both:
                self._refuse_null(both, condition, where)
                holds = False
            if not holds:
                self._refuse(condition.sql, where, "it can become false when the extreme improves")
        return moves

    def _refuse_any(self, scalars: Iterable[Scalar], moves: _Moves, where: str) -> None:
        for scalar in scalars:
            if scalar.columns & set(moves):
                self._refuse(scalar.sql, where, "it can change when the extreme improves")

    def _refuse_reordered(self, scalar: Scalar, moves: _Moves, node: Node, where: str) -> None:
        reason = reordered(tree_of(scalar), moves, self._kinds(moves, node))
        if reason:
            self._refuse(scalar.sql, where, reason)

    def _kinds(self, moves: _Moves, node: Node) -> Callable[[str], str]:
        """The kinds of a node's inputs, as far as they are known."""

        def kind(column: str) -> str:
            if column in moves:
                return moves[column].kind
            of = next(each for each in node.inputs if column in each.columns)
            return self._kind_of(of)(column)

        return kind

    def _kind_of(self, node: Node) -> Callable[[str], str]:
        def kind(column: str) -> str:
            found = column_type(node, column, self._schemas)
            return "" if found is None else found.kind

        return kind

    def _move(self, scalar: Scalar, moves: _Moves, node: Node, where: str) -> _Move | None:
        if not scalar.columns & set(moves):
            return None
        tree = tree_of(scalar)
        self._refuse_reordered(scalar, moves, node, where)
        try:
            way = _way_of(tree, moves)
        except _MovesBothWays as both:
            self._refuse_null(both, scalar, where)
            self._refuse(scalar.sql, where, "it need not get better when the extreme does")
        made_of = [moves[name] for name in _moving_in(tree, moves)]
        kind = kind_of_value(tree, self._kinds(moves, node))
        return _Move(way, any(each.is_null_first for each in made_of), kind)

    def _refuse_null(self, both: _MovesBothWays, scalar: Scalar, where: str) -> None:
        if both.unless_null:
            raise Unsupported(
                f"{scalar.sql}, in the recursion of {', '.join(self._moving)}",
                position=where,
                reason=f"{both.unless_null} may be NULL at first; LEAST and GREATEST pass over a "
                "NULL, so that what they give could get worse once there is a value",
                rewrite=f"leave such rows out, in the same SELECT: "
                f"WHERE {both.unless_null} IS NOT NULL",
            )

    def _refuse(self, what: str, where: str, reason: str) -> NoReturn:
        names = ", ".join(self._moving)
        raise Unsupported(
            f"{what}, in the recursion of {names}",
            position=where,
            reason=reason,
            rewrite="use an extreme in sums, LEAST, GREATEST and in comparisons that stay true "
            "(d < 10 for a MIN); do the rest in a view over the recursion",
        )


def _stays_true(tree: exp.Expr, moves: _Moves) -> bool:
    tree = tree.unnest()
    if not _moving_in(tree, moves):
        return True
    if isinstance(tree, exp.And | exp.Or):
        return _stays_true(tree.left, moves) and _stays_true(tree.right, moves)
    try:
        asked = asked_for_value(tree)
        if asked is not None:
            _way_of(asked, moves)
            return True
        if isinstance(tree, exp.LT | exp.LTE):
            return _way_of(tree.left, moves) <= STILL <= _way_of(tree.right, moves)
        if isinstance(tree, exp.GT | exp.GTE):
            return _way_of(tree.left, moves) >= STILL >= _way_of(tree.right, moves)
    except _MovesBothWays as both:
        if both.unless_null:
            raise
    return False


def _way_of(tree: exp.Expr, moves: _Moves) -> int:
    """Down, up, or still; raises for what can do either."""
    tree = unwrapped(tree)
    if isinstance(tree, exp.Column):
        return moves[tree.name].way if tree.name in moves else STILL
    if not _moving_in(tree, moves):
        return STILL
    if isinstance(tree, exp.Neg):
        return -_way_of(tree.this, moves)
    if isinstance(tree, exp.Sub):
        return _one_way([_way_of(tree.left, moves), -_way_of(tree.right, moves)])
    if isinstance(tree, exp.Add):
        return _one_way([_way_of(tree.left, moves), _way_of(tree.right, moves)])
    if _keeps_order(tree):
        return _way_of(tree.this, moves)
    for name, spoiled in (("least", UP), ("greatest", DOWN)):
        parts = chosen_from(tree, name)
        if parts:
            way = _one_way([_way_of(part, moves) for part in parts])
            for column in _moving_in(tree, moves):
                if way == spoiled and moves[column].is_null_first:
                    raise _MovesBothWays(column)
            return way
    raise _MovesBothWays


def _keeps_order(tree: exp.Expr) -> bool:
    """Whether it is a CAST to a number, a date or a timestamp, and no TRY_CAST.

    A text is in another order than the number that it spells, and a TRY_CAST can give NULL for the
    better of two values.
    """
    if not isinstance(tree, exp.Cast) or tree.args.get("safe"):
        return False
    to = tree.to.this
    return to in exp.DataType.NUMERIC_TYPES or to in exp.DataType.TEMPORAL_TYPES


def _moving_in(tree: exp.Expr, moves: _Moves) -> list[str]:
    return [each.name for each in tree.find_all(exp.Column) if each.name in moves]


def _one_way(ways: list[int]) -> int:
    found = {way for way in ways if way != STILL}
    if len(found) > 1:
        raise _MovesBothWays
    return found.pop() if found else STILL
