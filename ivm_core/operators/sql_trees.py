"""The few shapes that Spark SQL trees are built from; each copies what it is given."""

from __future__ import annotations

from sqlglot import exp


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """Call a Spark function by its own name, so that no dialect rewrites it."""
    return exp.Anonymous(this=name, expressions=[each.copy() for each in arguments])


def cast(value: exp.Expr, to: str) -> exp.Expr:
    """CAST to a type given as Spark DDL."""
    return exp.Cast(this=value.copy(), to=exp.DataType.build(to, dialect="spark"))


def string(text: str) -> exp.Expr:
    """A string literal."""
    return exp.Literal.string(text)


def number(value: int | float) -> exp.Expr:
    """An integer literal, or a DOUBLE literal for a float."""
    if isinstance(value, float):
        return exp.Literal.number(f"{value!r}D")
    return exp.Literal.number(value)
