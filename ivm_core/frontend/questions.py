"""What only Spark knows of a part of a query: the columns that it has.

The fields that `s.*` stands for, the columns of a generator, the types of pivoted aggregates. Spark
is asked about a small query of its own; what it said is kept with the view's definition.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from ivm_core.operators.sql import text_of

Ask = Callable[[str, tuple[str, ...]], list[tuple[str, str]] | None]
"""Names and types of the columns of a query, given the relations that are known to it; None where
Spark can't say or isn't there."""


def never(_sql: str, _reads: tuple[str, ...]) -> None:
    """Nobody is there to be asked."""
    return


class Questions:
    """Asks about parts of a query, with the common table expressions that they see."""

    def __init__(self, ask: Ask, reads: tuple[str, ...]) -> None:
        """`ask` gets the text of a whole query over these relations."""
        self._ask = ask
        self._reads = reads

    def about(self, items: list[exp.Expr], select: exp.Select) -> list[tuple[str, str]] | None:
        """Names and types of select items over what a SELECT reads."""
        query = exp.Select(expressions=[item.copy() for item in items])
        for key in ("from_", "from", "joins", "laterals"):
            part = select.args.get(key)
            if part:
                copied = [e.copy() for e in part] if isinstance(part, list) else part.copy()
                query.set(key, copied)
        seen = visible(select)
        if seen:
            query.set("with_", exp.With(expressions=[each.copy() for each in seen]))
        return self._ask(text_of(query), self._reads)


def visible(part: exp.Expr) -> list[exp.Expr]:
    """The common table expressions that a part of a query sees, in the order of their making."""
    seen: list[exp.Expr] = list(part.ctes) if isinstance(part, exp.Query) else []
    node = part
    while node.parent is not None:
        holder = node.parent
        if isinstance(holder, exp.With):
            seen = [*holder.expressions[: holder.expressions.index(node)], *seen]
        elif isinstance(holder, exp.Query) and node is not _with(holder):
            seen = [*(each for each in holder.ctes), *seen]
        node = holder
    return seen


def _with(query: exp.Expr) -> exp.Expr | None:
    found: exp.Expr | None = query.args.get("with_") or query.args.get("with")
    return found
