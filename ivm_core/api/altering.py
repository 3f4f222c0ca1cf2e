"""Changing views as a program asks for it: arguments checked, several views in reading order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ivm_core.api.outline import ViewText, reading_order
from ivm_core.engine.altering import alter_views
from ivm_core.engine.renaming import drop_views
from ivm_core.engine.widening import widen_source
from ivm_core.model.errors import UserError
from ivm_core.model.schema import parse_schema

if TYPE_CHECKING:
    from ivm_core.engine.alter_report import AlterReport
    from ivm_core.engine.core import Engine


def alter_view(
    engine: Engine,
    name: str,
    sql: str | None,
    also: Mapping[str, str | None] | None,
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
    texts = {}
    for given, text in ((name, sql), *(also or {}).items()):
        view = engine.catalog.view_name(given)
        where = f"view {view}"
        if text is not None and not isinstance(text, str):
            raise UserError("a view's SQL is text", where=where, fix="give a SELECT")
        if view in wanted:
            raise UserError(f"view {view} is given twice", where=where, fix="give it once")
        wanted[view] = text
        stored = engine.history.views[view].sql
        texts[view] = ViewText(view, stored if text is None else text, where)
    ordered = {view: wanted[view] for view in reading_order(texts)}
    reports = alter_views(engine, ordered, swap=swap)
    first = next(iter(wanted))
    others = {view: reports[view] for view in wanted if view != first}
    return replace(reports[first], also=others)


def alter_source(engine: Engine, name: str, schema: str) -> tuple[str, ...]:
    """Add columns to a fed source and give back their names."""
    engine.refresh()
    where = f"source {engine.catalog.source_name(name)}"
    if not isinstance(schema, str):
        raise UserError("a source's columns are text", where=where, fix="give all columns")
    return widen_source(engine, name, parse_schema(schema, where))


def drop_view(engine: Engine, names: tuple[str, ...], *, cascade: bool) -> tuple[str, ...]:
    """Drop views and give back the names of what was dropped."""
    engine.refresh()
    if not names:
        raise UserError("no view is named", where="drop_view", fix="give the names of views")
    return drop_views(engine, names, cascade=cascade)
