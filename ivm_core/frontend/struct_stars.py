"""`s.*` of a struct as its fields, each under its own name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.outer import aliases, relations
from ivm_core.frontend.questions import visible
from ivm_core.frontend.spelling import folded
from ivm_core.model.types import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.frontend.questions import Questions
    from ivm_core.model.schema import Schema


def with_fields(
    tree: exp.Expr, catalog: Mapping[str, Schema], known: Mapping[str, str], questions: Questions
) -> exp.Expr:
    """The query with stars of structs spelled out, where it is known what they stand for.

    `known` maps relation names as they are compared to those of the catalog.
    """
    for select in reversed(list(tree.find_all(exp.Select))):
        there = {folded(name) for name in aliases(select)}
        for call in list(select.find_all(exp.Anonymous)):
            if folded(call.name) == "struct" and call.find_ancestor(exp.Select) is select:
                arguments: list[exp.Expr] = []
                for each in call.expressions:
                    names = _declared(each, select, catalog, known)
                    arguments += _fields(each, select, there, names, questions) or [each]
                call.set("expressions", arguments)
        if not any(map(_struct_of, select.expressions)):
            continue
        items: list[exp.Expr] = []
        for item in select.expressions:
            names = _declared(item, select, catalog, known)
            items += _fields(item, select, there, names, questions) or [item]
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
    item: exp.Expr,
    select: exp.Select,
    there: set[str],
    declared: list[str],
    questions: Questions,
) -> list[exp.Expr]:
    struct = _struct_of(item)
    if struct is None:
        return []
    if isinstance(struct, exp.Identifier) and folded(struct.name) in there:
        return []
    star = item.find(exp.Star)
    is_whole = star is not None and not any(star.args.get(key) for key in star.arg_types)
    names = declared if is_whole else []
    names = names or [name for name, _ in questions.about([item], select) or ()]
    return [exp.alias_(_field(item, name), exp.to_identifier(name)) for name in names]


def _declared(
    item: exp.Expr, select: exp.Select, catalog: Mapping[str, Schema], known: Mapping[str, str]
) -> list[str]:
    """The fields of a struct that is a column of a source or view."""
    parts = [folded(part.name) for part in item.parts[:-1]] if isinstance(item, exp.Column) else []
    common = {folded(each.alias) for each in visible(select)}
    for relation in relations(select):
        is_named = isinstance(relation, exp.Table) and folded(relation.name) not in common
        if not parts or not is_named or folded(relation.name) not in known:
            continue
        if len(parts) == 1 or parts[:-1] == [folded(relation.alias_or_name)]:
            found = catalog[known[folded(relation.name)]].find(parts[-1])
            if found is not None and isinstance(found.type, Struct):
                return [name for name, _ in found.type.fields]
    return []


def _field(item: exp.Expr, name: str) -> exp.Expr:
    field = exp.to_identifier(name, quoted=True)
    if isinstance(item, exp.Dot):
        return exp.Dot(this=item.this.copy(), expression=field)
    # read like any other `s.field`: what `s` is, a relation or a column, is seen later
    found = item.copy()
    found.set("this", field)
    return found
