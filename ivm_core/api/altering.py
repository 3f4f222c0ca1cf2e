"""Changing views as a program asks for it: arguments checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ivm_core.api.arguments import column_lists, dedup_options
from ivm_core.api.registering import checked_views
from ivm_core.engine.altering import alter_views
from ivm_core.engine.renaming import drop_views
from ivm_core.engine.widening import set_options, widen_source
from ivm_core.model.errors import UserError
from ivm_core.model.schema import parse_schema

if TYPE_CHECKING:
    from ivm_core.api.arguments import GivenLimits
    from ivm_core.engine.alter_report import AlterReport
    from ivm_core.engine.core import Engine


@dataclass(frozen=True)
class NewViews:
    """Views that come with altered ones, and what they must be."""

    texts: Mapping[str, str]
    require: Mapping[str, str]

    @classmethod
    def of(
        cls, added: Mapping[str, str] | None, require: str | Mapping[str, str] | None
    ) -> NewViews:
        """As they were given; `UserError` for what are no views."""
        texts, required = checked_views({} if added is None else added, require)
        return cls({name: each.sql for name, each in texts.items()}, required)


def alter_view(
    engine: Engine,
    name: str,
    sql: str | None,
    also: Mapping[str, str | None] | None,
    schemas: Mapping[str, str] | None,
    new: NewViews,
    limits: GivenLimits,
    *,
    swap: bool,
) -> AlterReport:
    """Change a view, and others with it; the report of the first has those of the others."""
    engine.refresh()
    if also is not None and not isinstance(also, Mapping):
        raise UserError(
            f"also={also!r} is not a mapping", where="also=", fix="give also={view: sql}"
        )
    wanted: dict[str, str | None] = {}
    for given, text in ((name, sql), *(also or {}).items()):
        view = engine.catalog.view_name(given)
        where = f"view {view}"
        if text is not None and not isinstance(text, str):
            raise UserError("a view's SQL is text", where=where, fix="give a SELECT")
        if view in wanted:
            raise UserError(f"view {view} is given twice", where=where, fix="give it once")
        wanted[view] = text
    reports = alter_views(
        engine,
        wanted,
        swap=swap,
        schemas=column_lists(schemas, {**wanted, **new.texts}),
        added=new.texts,
        require=new.require,
        limits=limits.limits,
    )
    first = next(iter(wanted))
    others = {view: report for view, report in reports.items() if view != first}
    return replace(reports[first], also=others)


def alter_source(
    engine: Engine,
    name: str,
    schema: str | None,
    dedup: bool | str | None,
    dedup_entries: int | None,
) -> tuple[str, ...]:
    """Add columns to a fed source, or change what it does with repeats; names of new columns."""
    engine.refresh()
    stored = engine.history.sources[engine.catalog.source_name(name)]
    where = f"source {stored.name}"
    if schema is None and dedup is None and dedup_entries is None:
        raise UserError("nothing is to be altered", where=where, fix="give all columns, or dedup=")
    if schema is not None and not isinstance(schema, str):
        raise UserError("a source's columns are text", where=where, fix="give all columns")
    wanted = None if schema is None else parse_schema(schema, where)
    options = None
    if dedup is not None or dedup_entries is not None:
        options = dedup_options(dedup, dedup_entries, where)
    added = () if wanted is None else widen_source(engine, name, wanted)
    if options is not None:
        set_options(engine, name, options)
    return added


def drop_view(engine: Engine, names: tuple[str, ...], *, cascade: bool) -> tuple[str, ...]:
    """Drop views and give back the names of what was dropped."""
    engine.refresh()
    if not names:
        raise UserError("no view is named", where="drop_view", fix="give the names of views")
    return drop_views(engine, names, cascade=cascade)
