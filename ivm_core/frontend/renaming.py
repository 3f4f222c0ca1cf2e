"""A view's text over a relation of another name: the rest of it stays as it was written."""

from __future__ import annotations

from sqlglot import exp

from ivm_core.frontend.spelling import folded
from ivm_core.frontend.sql import parse_statement
from ivm_core.model.errors import UserError


def with_relation_renamed(sql: str, old: str, new: str, where: str) -> str:
    """The text with every reference to one relation renamed; columns may still be qualified by it.

    A text with a CTE of either name is a `UserError`: which of the two is meant could change.
    """
    tree = parse_statement(sql, where)
    own = {folded(cte.alias) for cte in tree.find_all(exp.CTE)}
    taken = own & {folded(old), folded(new)}
    if taken:
        raise UserError(
            f"the query calls a CTE {', '.join(sorted(taken))}",
            where=where,
            fix="give the CTE another name with flow.alter_view first",
        )
    places = []
    for table in tree.find_all(exp.Table):
        if folded(table.name) == folded(old) and "start" in table.this.meta:
            start, end = table.this.meta["start"], table.this.meta["end"]
            written = sql[start : end + 1]
            places.append((start, end + 1, new if table.alias else f"{new} AS {written}"))
    for start, end, name in sorted(places, reverse=True):
        sql = sql[:start] + name + sql[end:]
    return sql
