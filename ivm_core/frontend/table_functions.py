"""Generators in FROM: `FROM explode(xs) AS e(x)` makes rows beside whatever is read before it."""

from __future__ import annotations

from sqlglot import exp

from ivm_core.frontend import functions
from ivm_core.frontend.outer import from_clause
from ivm_core.frontend.spelling import folded


def with_laterals(tree: exp.Expr) -> exp.Expr:
    """The query with generators in FROM as those of LATERAL VIEW, or of LATERAL where joined."""
    for select in list(tree.find_all(exp.Select)):
        start = from_clause(select)
        joins = select.args.get("joins") or []
        if start is not None and _is_generator(start.this):
            if joins or select.args.get("laterals"):
                start.set("this", _derived(start.this))
            else:
                select.set("from_", None)
                select.set("laterals", [_lateral(start.this, view=True)])
        for join in joins:
            if _is_generator(join.this):
                join.set("this", _lateral(join.this, view=False))
    return tree


def _is_generator(relation: exp.Expr) -> bool:
    call = relation.this
    is_call = isinstance(relation, exp.Table) and isinstance(call, exp.Anonymous)
    return is_call and folded(call.name) in functions.GENERATORS


def _lateral(table: exp.Expr, *, view: bool) -> exp.Lateral:
    call = positional(table.this.copy())
    is_outer = folded(call.name).endswith("_outer")
    if is_outer and view:
        call.set("this", call.name[: -len("_outer")])
    return exp.Lateral(this=call, view=view, outer=is_outer and view, alias=table.args.get("alias"))


def positional(call: exp.Expr) -> exp.Expr:
    """A generator's call without the name of its one argument, which LATERAL VIEW doesn't take."""
    if len(call.expressions) == 1 and isinstance(call.expressions[0], exp.Kwarg):
        call.set("expressions", [call.expressions[0].expression])
    return call


def _derived(table: exp.Expr) -> exp.Expr:
    query = exp.Select(expressions=[table.this.copy()])
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier("generated"))
    return exp.Subquery(this=query, alias=alias.copy())
