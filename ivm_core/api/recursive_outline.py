"""Views that read each other in a circle, or themselves, from their texts alone.

Their columns are declared, or those of a branch that doesn't recurse. What has no least fixpoint
is refused here by the same rules as when it is registered, with the file instead of the view.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.compile.meaning import meaning
from ivm_core.compile.monotone import refuse_mixed, refuse_other_uses
from ivm_core.compile.recursion import recursive, with_declared_columns
from ivm_core.compile.rules import optimise
from ivm_core.compile.type_book import TypeBook
from ivm_core.frontend.positions import Positions
from ivm_core.frontend.recursion import (
    circles,
    recursive_queries,
    relations_named,
    without_reads,
)
from ivm_core.frontend.sql import parse_statement, parse_view, refuse_unknown_relations
from ivm_core.model.errors import Refusal, UnknownName, UserError
from ivm_core.model.names import check_column_name
from ivm_core.model.schema import Field, Schema, parse_schema
from ivm_core.model.types import STRING
from ivm_core.operators.sql import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ivm_core.api.outline import ViewText
    from ivm_core.model.types import DataType
    from ivm_core.plan.nodes import Node
    from ivm_core.plan.recursion import Rules

_SPOT = re.compile(r"\s*Line: \d+, Col: \d+\.?")


@dataclass(frozen=True)
class Part:
    """What a text says of a relation."""

    columns: tuple[str, ...]
    reads: tuple[str, ...]
    means: str
    """What it means, in words of its own: equal for texts that differ only in form."""


@dataclass(frozen=True)
class Mentioned:
    """What can be seen in a text before it is known what its names mean."""

    relations: frozenset[str]
    """Names that stand where relations do, in lower case."""
    circles: tuple[tuple[str, ...], ...]
    """Expressions of its WITH RECURSIVE that read each other."""


@lru_cache(maxsize=512)
def mentioned(sql: str, where: str) -> Mentioned:
    """Look at a text; it is asked for several times while many views are put in order."""
    tree = parse_statement(sql, where)
    return Mentioned(frozenset(relations_named(tree)), tuple(circles(tree)))


def untyped(columns: Iterable[str]) -> Schema:
    """Columns whose types aren't known; parsing a query doesn't look at them."""
    return Schema(tuple(Field(column, STRING) for column in columns))


def check_columns(columns: Iterable[str], where: str) -> None:
    """`InvalidName`, with the text that gives it, for a name that no column may have."""
    for column in columns:
        check_column_name(column, f"{where}, column {column!r}")


def part_of(text: ViewText, catalog: Mapping[str, Schema]) -> Part:
    """A view that doesn't read itself; expressions of its WITH RECURSIVE may."""
    groups = mentioned(text.sql, text.where).circles
    if not groups:
        parsed = parse_view(text.sql, catalog, text.where)
        plan = optimise(parsed.plan, catalog)
        return _part(plan, parsed.plan.columns, parsed.reads)
    refuse_unknown_relations(text.sql, catalog, text.where)
    inner, parts = _recursive_expressions(text, groups, catalog)
    known = {**catalog, **{name: untyped(each.columns) for name, each in parts.items()}}
    parsed = parse_view(text.sql, known, text.where, recursions=inner)
    outer = _part(optimise(parsed.plan, known), parsed.plan.columns, parsed.reads)
    reads = {read for each in (outer, *parts.values()) for read in each.reads} - set(parts)
    means = " | ".join([outer.means, *(f"{name}: {each.means}" for name, each in parts.items())])
    return Part(outer.columns, tuple(sorted(reads)), means)


def parts_of_circle(
    texts: Mapping[str, ViewText], catalog: Mapping[str, Schema]
) -> dict[str, Part]:
    """Views that read each other, or one that reads itself; raises what keeps them from it."""
    for text in texts.values():
        refuse_unknown_relations(text.sql, (*catalog, *texts), text.where)
    columns = _columns_of(texts, catalog)
    return _parts(texts, {**catalog, **columns})


def blamed(error: Exception, places: Mapping[str, str]) -> str:
    """Which of some views an error is about, by the places that they have in messages."""
    told = str(getattr(error, "where", "") or getattr(error, "position", "") or error)
    found = (n for n, place in places.items() if re.search(rf"{re.escape(place)}(?!\w)", told))
    return next(found, next(iter(places)))


def _recursive_expressions(
    text: ViewText, groups: Iterable[tuple[str, ...]], catalog: Mapping[str, Schema]
) -> tuple[dict[str, str], dict[str, Part]]:
    """By expression the relation that it stands for, and what each of these is."""
    names = {name: f"{text.name}.{name}" for group in groups for name in group}
    tree = parse_statement(text.sql, text.where)
    queries = recursive_queries(tree, names, text.where)
    known = dict(catalog)
    parts: dict[str, Part] = {}
    for group in groups:
        own = [names[name] for name in group]
        texts = {name: type(text)(name, queries[name].sql, text.where) for name in own}
        given = {n: untyped(queries[n].columns) for n in own if queries[n].columns}
        found = _columns_of(texts, known, given)
        parts |= _parts(texts, {**known, **found}, _place(text, group))
        known |= found
    return names, parts


def _columns_of(
    texts: Mapping[str, ViewText],
    catalog: Mapping[str, Schema],
    given: Mapping[str, Schema] | None = None,
) -> dict[str, Schema]:
    """The columns of views in a circle: declared, or those of a branch that can tell them."""
    known = dict(given or {})
    for name, text in texts.items():
        if text.columns:
            declared = parse_schema(text.columns, f"{text.where}, key columns")
            known[name] = untyped(declared.names)
    waiting = [name for name in texts if name not in known]
    while waiting:
        unknown = {name.casefold() for name in waiting}
        found = {}
        for name in waiting:
            kept = without_reads(parse_statement(texts[name].sql, texts[name].where), unknown)
            if kept is not None:
                found[name] = _columns_told(text_of(kept), {**catalog, **known}, texts[name].where)
        if not found:
            raise UserError(
                f"the columns of {', '.join(waiting)} can't be told: every branch is recursive",
                where=texts[waiting[0]].where,
                fix="begin with a branch that reads something else, or declare them above the "
                "SELECT, in front matter: columns: id BIGINT, name STRING",
            )
        known |= found
        waiting = [name for name in waiting if name not in known]
    return known


def _columns_told(sql: str, catalog: Mapping[str, Schema], where: str) -> Schema:
    """The columns of a part of a text; errors without the place, which is another in the text."""
    try:
        columns = parse_view(sql, catalog, where).plan.columns
    except UnknownName as error:
        raise UnknownName(_SPOT.sub("", error.what), where, error.fix) from error
    check_columns(columns, where)
    return untyped(columns)


def _parts(
    texts: Mapping[str, ViewText], catalog: Mapping[str, Schema], place: str | None = None
) -> dict[str, Part]:
    """The views of a circle whose columns the catalog has; `place` is where it is, if known."""
    parts: dict[str, Part] = {}
    rules: dict[str, Rules] = {}
    places = {f"view {name}": text for name, text in texts.items()}
    try:
        for name, text in texts.items():
            parsed = parse_view(text.sql, catalog, text.where)
            columns = catalog[name].names
            if len(parsed.plan.columns) != len(columns):
                raise UserError(
                    f"{len(columns)} columns are declared ({', '.join(columns)}), and the query "
                    f"has {len(parsed.plan.columns)} ({', '.join(parsed.plan.columns)})",
                    where=text.where,
                    fix="declare every column of the SELECT once, in its order",
                )
            plan = optimise(parsed.plan, catalog)
            own = with_declared_columns(plan, catalog[name], catalog, _Untyped())
            rules[name] = recursive(name, own, tuple(texts), catalog, _untyped_columns).rules
            parts[name] = _part(plan, columns, parsed.reads)
        refuse_mixed(rules)
        refuse_other_uses(rules)
    except Refusal as refusal:
        of = places.get(refusal.position)
        if of is None:
            raise
        at = _place(of, texts) if place is None else place
        where = ", ".join(filter(None, (of.where, at)))
        raise type(refusal)(refusal.construct, where, refusal.reason, refusal.rewrite) from refusal
    return parts


def _part(plan: Node, columns: tuple[str, ...], reads: tuple[str, ...]) -> Part:
    """From a plan that is optimised."""
    return Part(columns, reads, f"{meaning(plan)} as {', '.join(columns)}")


class _Untyped(TypeBook):
    """Knows no types: a column is as good as any other."""

    def __init__(self) -> None:
        super().__init__(None, {})

    def types(self, node: Node, catalog: Mapping[str, Schema]) -> dict[str, DataType]:
        """A type for every column, always the same."""
        return _untyped_columns(node)


def _untyped_columns(node: Node) -> dict[str, DataType]:
    return dict.fromkeys(node.columns, STRING)


def _place(text: ViewText, members: Iterable[str]) -> str:
    """Line and column at which a text reads its circle, if it can be behind a negation."""
    names = {name.casefold() for name in members}
    tree = parse_statement(text.sql, text.where)
    reads = [table for table in tree.find_all(exp.Table) if table.name.casefold() in names]
    negated = [table for table in reads if _is_negated(table)]
    first = next(iter(negated or reads), None)
    return "" if first is None else Positions(text.sql).find(first)


def _is_negated(table: exp.Table) -> bool:
    join = table.find_ancestor(exp.Join)
    is_anti = join is not None and join.args.get("kind") == "ANTI"
    return is_anti or table.find_ancestor(exp.Not) is not None
