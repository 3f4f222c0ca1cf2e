"""What a set of views looks like before any of it is registered: order, inputs, columns.

For tools that show views, or decide what to do with them, without a flow and without Spark. Types
are Spark's to say when a view is registered; everything here comes from the text alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.api.expected_columns import check_expected
from ivm_core.api.recursive_outline import (
    check_columns,
    mentioned,
    part_of,
    parts_of_circle,
    untyped,
)
from ivm_core.model.errors import DuplicateName, InvalidName, UserError
from ivm_core.model.names import check_relation_name
from ivm_core.model.schema import parse_schema
from ivm_core.plan.recursion import components

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.api.expected_columns import ExpectedColumns
    from ivm_core.api.recursive_outline import Part
    from ivm_core.model.schema import Schema


@dataclass(frozen=True)
class ViewText:
    """A view as someone wrote it, and where, for messages."""

    name: str
    sql: str
    where: str
    require: str = ""
    """What it must be to be registered; empty for anything."""
    columns: str = ""
    """Its columns with their types, for one that reads itself; empty where its branches tell."""
    is_derived: bool = False
    """Whether it is a relation of a program, which says the columns of all."""
    expects: tuple[ExpectedColumns, ...] = ()
    """What it takes relations that it reads for."""


@dataclass(frozen=True)
class ViewOutline:
    """What a view's text says of it."""

    name: str
    sql: str
    reads: tuple[str, ...]
    """Sources and views that it reads directly."""
    columns: tuple[str, ...]
    fingerprint: str
    """Identity of what the query means, and of its sources' columns: what is only form, such as
    layout, comments and aliases, doesn't count. Views of a circle mean something together."""
    require: str = ""
    circle: tuple[str, ...] = ()
    """The views that it reads in a circle, itself among them; none for most."""
    inputs: tuple[str, ...] = ()
    """What it, or its circle, reads besides itself."""


def outline_views(
    sources: Mapping[str, Schema], views: Mapping[str, ViewText]
) -> tuple[ViewOutline, ...]:
    """The views, inputs first, those of a circle one after the other.

    Raises what registering them would, as far as that needs no Spark: `InvalidName`,
    `DuplicateName`, `SqlError`, `UnknownName`, `Unsupported`; `UserError` for columns that can't
    be told.
    """
    check_names(sources, views)
    catalog = dict(sources)
    outlines: list[ViewOutline] = []
    for group in reading_order(views):
        found = outline_group(group, sources, views, catalog)
        # the types of computed columns are not known here, and parsing does not look at them
        catalog |= {each.name: untyped(each.columns) for each in found}
        outlines += found
    return tuple(outlines)


def outline_group(
    group: tuple[str, ...],
    sources: Mapping[str, Schema],
    views: Mapping[str, ViewText],
    catalog: Mapping[str, Schema],
) -> list[ViewOutline]:
    """One view, or those of a circle, over relations whose columns the catalog has."""
    texts = {name: views[name] for name in group}
    for text in texts.values():
        check_expected(text.expects, group, sources, catalog)
    if is_circle(group, views):
        parts, circle = parts_of_circle(texts, catalog), group
    else:
        _refuse_columns(texts[group[0]])
        parts, circle = {group[0]: part_of(texts[group[0]], catalog)}, ()
    for name, part in parts.items():
        check_columns(part.columns, texts[name].where)
    means = {name: _content(parts[name], texts[name], sources, circle) for name in group}
    together = f" in {'; '.join(means[name] for name in sorted(circle))}" if circle else ""
    reads = dict.fromkeys(read for part in parts.values() for read in part.reads)
    outside = tuple(sorted(read for read in reads if read not in circle))
    return [
        ViewOutline(
            name,
            texts[name].sql,
            part.reads,
            part.columns,
            hashlib.sha256(f"{means[name]}{together}".encode()).hexdigest()[:16],
            texts[name].require,
            circle,
            outside if circle else part.reads,
        )
        for name, part in parts.items()
    ]


def _content(
    part: Part, text: ViewText, sources: Mapping[str, Schema], circle: tuple[str, ...]
) -> str:
    declared = "; ".join(f"{s}: {sources[s].ddl}" for s in part.reads if s in sources)
    types = f" | {parse_schema(text.columns).ddl}" if circle and text.columns else ""
    return f"{part.means} | {declared}{types}"


def _refuse_columns(text: ViewText) -> None:
    if text.columns and not text.is_derived:
        raise UserError(
            "columns are declared of a view that reads neither itself nor others in a circle",
            where=f"{text.where}, key columns",
            fix="leave them out: they are those of the SELECT",
        )


def check_names(sources: Mapping[str, Schema], views: Mapping[str, ViewText]) -> None:
    """`InvalidName` for what can't be a name, `DuplicateName` for two that are the same."""
    taken: dict[str, str] = {}
    for name, kind in (*((s, "source") for s in sources), *((v, "view") for v in views)):
        where = views[name].where if kind == "view" else ""
        try:
            check_relation_name(name, kind)
        except InvalidName as error:
            raise InvalidName(error.what, where or error.where, error.fix) from error
        other = taken.get(name.casefold())
        if other is not None:
            raise DuplicateName(f"{kind} {name} has the name of {other}", where)
        taken[name.casefold()] = f"{kind} {name}"


def reading_order(views: Mapping[str, ViewText]) -> list[tuple[str, ...]]:
    """Names of the views, inputs first, those together that read each other in a circle."""
    spelled = {name.casefold(): name for name in views}
    return components({name: views_in(text, spelled) for name, text in views.items()})


def is_circle(group: tuple[str, ...], views: Mapping[str, ViewText]) -> bool:
    """Whether a group is more than one view that doesn't read itself."""
    spelled = {name.casefold(): name for name in group}
    return len(group) > 1 or bool(views_in(views[group[0]], spelled))


def views_in(text: ViewText, spelled: Mapping[str, str]) -> list[str]:
    """Views whose names stand where tables do, unless a CTE of the query has that name."""
    named = mentioned(text.sql, text.where).relations
    return sorted(spelled[name] for name in named & set(spelled))
