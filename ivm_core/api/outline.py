"""What a set of views looks like before any of it is registered: order, inputs, columns.

For tools that show views, or decide what to do with them, without a flow and without Spark. Types
are Spark's to say when a view is registered; everything here comes from the text alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.compile.meaning import meaning
from ivm_core.compile.rules import optimise
from ivm_core.frontend.recursion import relations_named
from ivm_core.frontend.sql import parse_statement, parse_view
from ivm_core.model.errors import DuplicateName, InvalidName, UserError
from ivm_core.model.names import check_relation_name
from ivm_core.model.schema import Field, Schema
from ivm_core.model.types import STRING
from ivm_core.plan.recursion import components

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class ViewText:
    """A view as someone wrote it, and where, for messages."""

    name: str
    sql: str
    where: str
    require: str = ""
    """What it must be to be registered; empty for anything."""


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
    layout, comments and aliases, doesn't count."""
    require: str = ""


def outline_views(
    sources: Mapping[str, Schema], views: Mapping[str, ViewText]
) -> tuple[ViewOutline, ...]:
    """The views, inputs first.

    Raises what registering them would, as far as that needs no Spark: `InvalidName`,
    `DuplicateName`, `SqlError`, `UnknownName`, `Unsupported`; a cycle is a `UserError`.
    """
    check_names(sources, views)
    catalog = dict(sources)
    outlines = []
    for name in reading_order(views):
        text = views[name]
        parsed = parse_view(text.sql, catalog, text.where)
        columns = parsed.plan.columns
        # the types of computed columns are not known here, and parsing does not look at them
        catalog[name] = Schema(tuple(Field(column, STRING) for column in columns))
        declared = "; ".join(f"{s}: {sources[s].ddl}" for s in parsed.reads if s in sources)
        means = meaning(optimise(parsed.plan, catalog))
        content = f"{means} as {', '.join(columns)} | {declared}"
        fingerprint = hashlib.sha256(content.encode()).hexdigest()[:16]
        outlines.append(
            ViewOutline(name, text.sql, parsed.reads, columns, fingerprint, text.require)
        )
    return tuple(outlines)


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


def reading_order(views: Mapping[str, ViewText]) -> list[str]:
    """Names of the views, inputs first; a circle is a `UserError`."""
    spelled = {name.casefold(): name for name in views}
    reads = {name: views_in(text, spelled) for name, text in views.items()}
    ordered: dict[str, None] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            circle = " reads ".join((*path[path.index(name) :], name))
            raise UserError(
                f"views read each other in a circle: {circle}",
                where=views[name].where,
                fix="let one of them read what the other reads",
            )
        if name not in ordered:
            for read in reads[name]:
                visit(read, (*path, name))
            ordered[name] = None

    for name in views:
        visit(name, ())
    return list(ordered)


def reading_groups(views: Mapping[str, ViewText]) -> list[tuple[str, ...]]:
    """Names of the views, inputs first, those together that read each other in a circle."""
    spelled = {name.casefold(): name for name in views}
    return components({name: views_in(text, spelled) for name, text in views.items()})


def is_circle(group: tuple[str, ...], views: Mapping[str, ViewText]) -> bool:
    """Whether a group is more than one view that doesn't read itself."""
    spelled = {name.casefold(): name for name in group}
    return len(group) > 1 or bool(views_in(views[group[0]], spelled))


def views_in(text: ViewText, spelled: Mapping[str, str]) -> list[str]:
    """Views whose names stand where tables do, unless a CTE of the query has that name."""
    named = relations_named(parse_statement(text.sql, text.where))
    return sorted(spelled[name] for name in named & set(spelled))
