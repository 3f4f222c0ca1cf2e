"""NOT moved inwards to `x IN (SELECT …)`, as Spark moves it before it looks at subqueries.

    NOT (x IN (q) AND p)      x NOT IN (q) OR NOT p
    (x NOT IN (q)) = FALSE    x IN (q)

All of it is the same in SQL's logic of three values. Spark's IN and NOT IN within a larger
expression are never NULL, so there it matters which of the two is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.subquery_parts import is_membership

if TYPE_CHECKING:
    from collections.abc import Iterator


def with_negations_inside(tree: exp.Expr) -> exp.Expr:
    """The query with such negations moved."""
    while any(is_membership(node) for node in tree.walk()):
        found = next(((node, to) for node in _around(tree) if (to := _moved(node))), None)
        if found is None:
            break
        found[0].replace(found[1])
    return tree


def _around(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Negations and comparisons that IN is a part of."""
    for node in tree.find_all(exp.Not, exp.EQ, exp.NEQ):
        within = node.walk(prune=lambda part: isinstance(part, exp.Query))
        if any(is_membership(part) for part in within):
            yield node


def _moved(node: exp.Expr) -> exp.Expr | None:
    """The same without a negation around AND, OR or NOT, or a comparison with a truth value."""
    if isinstance(node, exp.EQ | exp.NEQ):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            literal = other.unnest()
            if isinstance(literal, exp.Boolean):
                is_same = bool(literal.this) == isinstance(node, exp.EQ)
                return exp.paren(one if is_same else exp.not_(one, copy=False), copy=False)
        return None
    if not isinstance(node, exp.Not):
        return None
    inner = node.this.unnest()
    if isinstance(inner, exp.Not):
        return exp.paren(inner.this, copy=False)
    if isinstance(inner, exp.And | exp.Or):
        kind = exp.Or if isinstance(inner, exp.And) else exp.And
        sides = [exp.not_(side, copy=False) for side in (inner.left, inner.right)]
        return exp.paren(kind(this=sides[0], expression=sides[1]), copy=False)
    return None
