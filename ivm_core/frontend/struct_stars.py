"""`s.*` of a struct as its fields, each under its own name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.outer import aliases
from ivm_core.frontend.spelling import folded

if TYPE_CHECKING:
    from ivm_core.frontend.questions import Questions


def with_fields(tree: exp.Expr, questions: Questions) -> exp.Expr:
    """The query with stars of structs spelled out, where it is known what they stand for."""
    for select in reversed(list(tree.find_all(exp.Select))):
        if not any(map(_struct_of, select.expressions)):
            continue
        there = {folded(name) for name in aliases(select)}
        items: list[exp.Expr] = []
        for item in select.expressions:
            items += _fields(item, select, there, questions) or [item]
        select.set("expressions", items)
    return tree


def _struct_of(item: exp.Expr) -> exp.Expr | None:
    """The column before `.*`."""
    if isinstance(item, exp.Dot) and isinstance(item.expression, exp.Star):
        before: exp.Expr = item.this.copy()
        return before
    if not isinstance(item, exp.Column) or not isinstance(item.this, exp.Star):
        return None
    names = [part.copy() for part in item.parts[:-1]]
    return exp.Dot.build(names) if len(names) > 1 else names[0] if names else None


def _fields(
    item: exp.Expr, select: exp.Select, there: set[str], questions: Questions
) -> list[exp.Expr]:
    struct = _struct_of(item)
    star = item.find(exp.Star)
    is_plain = star is not None and not any(star.args.get(key) for key in star.arg_types)
    if struct is None or not is_plain:
        return []
    if isinstance(struct, exp.Identifier) and folded(struct.name) in there:
        return []
    found = questions.about([item], select) or []
    return [exp.alias_(_field(item, name), exp.to_identifier(name)) for name, _ in found]


def _field(item: exp.Expr, name: str) -> exp.Expr:
    field = exp.to_identifier(name, quoted=True)
    if isinstance(item, exp.Dot):
        return exp.Dot(this=item.this.copy(), expression=field)
    # read like any other `s.field`: what `s` is, a relation or a column, is seen later
    found = item.copy()
    found.set("this", field)
    return found
