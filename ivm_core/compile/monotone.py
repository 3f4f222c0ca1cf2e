"""MIN and MAX within recursion: which uses of an extreme only ever improve what is derived from it.

An extreme changes while the fixpoint is sought: that of a MIN moves down, that of a MAX up. What is
derived from it must follow without anything being taken back: sums, LEAST and GREATEST of it move
the same way, a difference moves against what it subtracts, `d < 10` stays true once it is. Any
other use (an equality, a key, a product) would let a better value undo what a worse one gave, so
that the result would depend on the order of iterations. It is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.model.errors import Unsupported
from ivm_core.operators.sql import tree_of
from ivm_core.plan.nodes import Filter, Generate, Join, Match, Node, Project, Scan, UnionAll
from ivm_core.plan.recursion import BAG, MAX, MIN, SET, Rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ivm_core.plan.scalar import Scalar

DOWN, STILL, UP = -1, 0, 1


class _MovesBothWays(Exception):
    """An expression of which nobody knows how it moves."""


def refuse_other_uses(component: Mapping[str, Rules]) -> None:
    """`Unsupported` for a rule in which a better extreme could undo what a worse one gave."""
    if all(rules.fold not in (MIN, MAX) for rules in component.values()):
        return
    checking = _Checking(component)
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

    def __init__(self, component: Mapping[str, Rules]) -> None:
        self._moving = {
            name: (rules.value, DOWN if rules.fold == MIN else UP)
            for name, rules in component.items()
            if rules.fold in (MIN, MAX)
        }

    def rule(self, rules: Rules, branch: Node) -> None:
        where = f"view {rules.view}"
        moves = self._moves(branch, where)
        for column in branch.columns:
            move = moves.get(column, STILL)
            wanted = {MIN: DOWN, MAX: UP}.get(rules.fold, STILL)
            if move == STILL or (column == rules.value and move == wanted):
                continue
            if rules.fold == SET or column != rules.value:
                what = f"{column}, which is made of an extreme of the same recursion"
                reason = "rows with its former values would have been derived, and stay"
            else:
                word = "down" if move == DOWN else "up"
                what = f"{rules.fold} of a value that moves {word}"
                reason = "a better value below makes it worse"
            self._refuse(what, where, reason)

    def _moves(self, node: Node, where: str) -> dict[str, int]:
        """The columns that are made of extremes, and the way that each moves."""
        if isinstance(node, Scan):
            value, way = self._moving.get(node.relation, ("", STILL))
            names = zip(node.columns, node.fields, strict=True)
            return {column: way for column, field in names if field == value}
        below: dict[str, int] = {}
        if isinstance(node, UnionAll):
            for branch in node.branches:
                found = self._moves(branch, where)
                for name, column in zip(node.columns, branch.columns, strict=True):
                    way = found.get(column, STILL)
                    if way != STILL and below.get(name, way) != way:
                        self._refuse(name, where, "it moves both ways")
                    if way != STILL:
                        below[name] = way
            return below
        for each in node.inputs:
            below |= self._moves(each, where)
        if isinstance(node, Project):
            ways = {name: self._way(scalar, below, where) for name, scalar in node.outputs}
            return {name: way for name, way in ways.items() if way != STILL}
        if isinstance(node, Filter):
            self._conditions([node.predicate], below, where)
        elif isinstance(node, Join):
            self._conditions(node.conditions, below, where)
        elif isinstance(node, Match):
            if node.kind == "ANTI":
                self._refuse_any(node.conditions, below, where)
            self._conditions(node.conditions, below, where)
            below = {name: way for name, way in below.items() if name in node.columns}
        elif isinstance(node, Generate):
            self._refuse_any([node.generator], below, where)
        return below

    def _conditions(
        self, conditions: Iterable[Scalar], moves: Mapping[str, int], where: str
    ) -> None:
        for condition in conditions:
            if condition.columns & set(moves) and not _stays_true(tree_of(condition), moves):
                self._refuse(condition.sql, where, "it can become false when the extreme improves")

    def _refuse_any(self, scalars: Iterable[Scalar], moves: Mapping[str, int], where: str) -> None:
        for scalar in scalars:
            if scalar.columns & set(moves):
                self._refuse(scalar.sql, where, "it can change when the extreme improves")

    def _way(self, scalar: Scalar, moves: Mapping[str, int], where: str) -> int:
        if not scalar.columns & set(moves):
            return STILL
        try:
            return _way_of(tree_of(scalar), moves)
        except _MovesBothWays:
            return self._refuse(scalar.sql, where, "it need not get better when the extreme does")

    def _refuse(self, what: str, where: str, reason: str) -> int:
        names = ", ".join(self._moving)
        raise Unsupported(
            f"{what}, in the recursion of {names}",
            position=where,
            reason=reason,
            rewrite="use an extreme in sums, LEAST, GREATEST and in comparisons that stay true "
            "(d < 10 for a MIN); do the rest in a view over the recursion",
        )


def _stays_true(tree: exp.Expr, moves: Mapping[str, int]) -> bool:
    tree = tree.unnest()
    if not any(column.name in moves for column in tree.find_all(exp.Column)):
        return True
    if isinstance(tree, exp.And | exp.Or):
        return _stays_true(tree.left, moves) and _stays_true(tree.right, moves)
    try:
        if isinstance(tree, exp.LT | exp.LTE):
            return _way_of(tree.left, moves) <= STILL <= _way_of(tree.right, moves)
        if isinstance(tree, exp.GT | exp.GTE):
            return _way_of(tree.left, moves) >= STILL >= _way_of(tree.right, moves)
    except _MovesBothWays:
        return False
    return False


def _way_of(tree: exp.Expr, moves: Mapping[str, int]) -> int:
    """Down, up, or still; raises for what can do either."""
    if isinstance(tree, exp.Column):
        return moves.get(tree.name, STILL)
    if not any(column.name in moves for column in tree.find_all(exp.Column)):
        return STILL
    if isinstance(tree, exp.Neg):
        return -_way_of(tree.this, moves)
    if isinstance(tree, exp.Sub):
        return _one_way([_way_of(tree.left, moves), -_way_of(tree.right, moves)])
    if isinstance(tree, exp.Add):
        return _one_way([_way_of(tree.left, moves), _way_of(tree.right, moves)])
    if isinstance(tree, exp.Paren | exp.Cast):
        return _way_of(tree.this, moves)
    parts = chosen_from(tree, "least") or chosen_from(tree, "greatest")
    if not parts:
        raise _MovesBothWays
    return _one_way([_way_of(part, moves) for part in parts])


def chosen_from(tree: exp.Expr, name: str) -> list[exp.Expr]:
    """What a call of `least` or `greatest` chooses from; nothing for any other expression."""
    kinds = {"least": exp.Least, "greatest": exp.Greatest}
    if isinstance(tree, kinds[name]):
        return [tree.this, *tree.expressions]
    if isinstance(tree, exp.Anonymous) and tree.name.lower() == name:
        return list(tree.expressions)
    return []


def _one_way(ways: list[int]) -> int:
    found = {way for way in ways if way != STILL}
    if len(found) > 1:
        raise _MovesBothWays
    return found.pop() if found else STILL
