"""Calls of aggregates and window functions, with the clauses that may stand around them."""

from __future__ import annotations

from sqlglot import exp

WRAPPERS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


def core(call: exp.Expr) -> exp.Expr:
    """The function itself, without FILTER, WITHIN GROUP and IGNORE NULLS."""
    while isinstance(call, WRAPPERS):
        call = call.this
    return call


def function_name(call: exp.Expr) -> str:
    """The name of the function in lower case."""
    bare = core(call)
    return (bare.name if isinstance(bare, exp.Anonymous) else bare.key).lower()
