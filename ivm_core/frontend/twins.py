"""Columns of one name in a derived table, told apart where nobody asks for them by that name.

SELECT COUNT(*) FROM (SELECT a.id, b.id FROM a JOIN b …)
"""

from __future__ import annotations

from collections import Counter

from sqlglot import exp

from ivm_core.frontend.spelling import folded


def without_twins(tree: exp.Expr) -> None:
    """Rename columns of derived tables and common table expressions that no column refers to."""
    for holder in list(tree.find_all(exp.CTE, exp.Subquery)):
        query = holder.this
        while isinstance(query, exp.SetOperation | exp.Subquery):
            query = query.this
        if not isinstance(query, exp.Select):
            continue
        counts = Counter(folded(item.alias_or_name) for item in query.expressions)
        twins = {name for name, count in counts.items() if count > 1}
        if not twins or _asked_for(tree, holder) & twins:
            continue
        for number, item in enumerate(query.expressions, 1):
            if folded(item.alias_or_name) in twins and isinstance(item, exp.Alias):
                name = f"{item.alias}?{number}"
                item.set("alias", exp.to_identifier(name, quoted=True))


def _asked_for(tree: exp.Expr, holder: exp.Expr) -> set[str]:
    """Names of the columns that are asked of a derived table or common table expression."""
    called = {folded(holder.alias)}
    if isinstance(holder, exp.CTE):
        readers = [t for t in tree.find_all(exp.Table) if folded(t.name) in called]
        called = {folded(table.alias_or_name) for table in readers}
    columns = tree.find_all(exp.Column)
    return {folded(column.name) for column in columns if folded(column.table) in called}
