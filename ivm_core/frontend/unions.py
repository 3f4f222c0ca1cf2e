"""UNIONs of UNIONs as one: of a hundred branches there is one node, and not a hundred levels."""

from __future__ import annotations

from sqlglot import exp

PLAIN = frozenset({"this", "expression", "distinct"})
"""What a UNION has that is nothing but a UNION: no WITH, ORDER BY, LIMIT or BY NAME."""


def united(tree: exp.Union) -> list[exp.Expr]:
    """The branches of a UNION, with those of the UNIONs within that mean the same there.

    UNION takes each row once, so it takes in both kinds; UNION ALL takes in its own.
    """
    is_distinct = bool(tree.args.get("distinct"))
    found: list[exp.Expr] = []
    waiting: list[exp.Expr] = [tree.right, tree.left]
    while waiting:
        branch = waiting.pop()
        inner = _plain_union(branch)
        if inner is not None and (is_distinct or not inner.args.get("distinct")):
            waiting += [inner.right, inner.left]
        else:
            found.append(branch)
    return found


def _plain_union(tree: exp.Expr) -> exp.Union | None:
    while isinstance(tree, exp.Subquery) and _args(tree) == {"this"}:
        tree = tree.this
    return tree if isinstance(tree, exp.Union) and _args(tree) <= PLAIN else None


def _args(tree: exp.Expr) -> set[str]:
    return {name for name, value in tree.args.items() if value}
