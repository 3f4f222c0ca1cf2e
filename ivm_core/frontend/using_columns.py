"""Columns of USING and NATURAL that HAVING and QUALIFY name.

SELECT SUM(x) FROM a JOIN b USING (k) GROUP BY k HAVING k > 1     … HAVING COALESCE(a.k, b.k) > 1
"""

from __future__ import annotations

from sqlglot import exp

from ivm_core.frontend.subquery_parts import conjuncts

CLAUSES = ("having", "qualify", "order")


def with_using_columns(tree: exp.Expr) -> exp.Expr:
    """A qualified query with what stands for such columns, as it does elsewhere in it."""
    for select in tree.find_all(exp.Select):
        clauses = [select.args[key] for key in CLAUSES if select.args.get(key)]
        left = [
            column
            for clause in clauses
            for column in clause.find_all(exp.Column)
            if not column.table and column.find_ancestor(exp.Select) is select
        ]
        tables = _tables(select) if left else {}
        for column in left:
            found = tables.get(column.name)
            if found:
                parts = [exp.column(column.name, table=table) for table in found]
                column.replace(exp.func("coalesce", *parts))
    return tree


def _tables(select: exp.Select) -> dict[str, dict[str, None]]:
    """The relations whose columns of a name are joined as equal, in the order of FROM."""
    found: dict[str, dict[str, None]] = {}
    for join in select.args.get("joins") or ():
        for condition in conjuncts(join.args.get("on")):
            if not isinstance(condition, exp.EQ):
                continue
            left, right = condition.left, condition.right
            sides = [*left.find_all(exp.Column), *right.find_all(exp.Column)]
            if len(sides) > 1 and len({each.name for each in sides}) == 1:
                known = found.setdefault(sides[0].name, {})
                known |= {each.table: None for each in sides}
    return found
