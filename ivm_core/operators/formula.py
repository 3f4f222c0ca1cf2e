"""Formulas: constant texts of Spark SQL with holes, as sqlglot trees.

    formula("SHIFTRIGHT(:low, 32) + :high", low=column("lo"), high=column("hi"))

Only texts written in this package are read here; a user's SQL is the front end's.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from sqlglot import exp, parse_one

from ivm_core.operators.sql import DIALECT, column

if TYPE_CHECKING:
    from collections.abc import Sequence

AS_INTERVAL = "MAKE_DT_INTERVAL(0, 0, 0, CAST(:micros AS DECIMAL(18, 0)) / 1000000)"
"""The INTERVAL DAY TO SECOND of a number of microseconds."""
Named = tuple[str, exp.Expr]
Level = tuple[Named, ...]


@cache
def _parsed(text: str) -> exp.Expr:
    return parse_one(text, dialect=DIALECT)


def formula(text: str, **parts: exp.Expr | str | int) -> exp.Expr:
    """The tree of `text` with every `:name` replaced by a part; a part given as text is a formula.

    A hole without a part is a `KeyError`.
    """

    def filled(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Placeholder):
            return node
        part = parts[node.name]
        tree = (part if isinstance(part, exp.Expr) else _parsed(str(part))).copy()
        return tree if isinstance(tree, exp.Column | exp.Literal | exp.Func) else exp.paren(tree)

    return _parsed(text).copy().transform(filled)


class Bindings:
    """Names for intermediate values: each `bind` is one projection over the ones before it."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._levels: list[Level] = []

    def bind(self, **trees: exp.Expr) -> list[exp.Expr]:
        """Name some values that need only earlier ones, and give back references to them."""
        self._levels.append(tuple((f"{self._prefix}_{name}", tree) for name, tree in trees.items()))
        return [column(f"{self._prefix}_{name}") for name in trees]

    @property
    def levels(self) -> tuple[Level, ...]:
        """The projections, innermost first."""
        return tuple(self._levels)


def side_by_side(stacks: Sequence[Sequence[Level]]) -> tuple[Level, ...]:
    """Several independent stacks of projections as one: first with first, second with second."""
    depth = max((len(stack) for stack in stacks), default=0)
    return tuple(
        tuple(one for stack in stacks if level < len(stack) for one in stack[level])
        for level in range(depth)
    )
