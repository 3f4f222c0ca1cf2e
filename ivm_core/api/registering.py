"""Registering views as a program asks for it: arguments checked, circles found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ivm_core.api.arguments import column_lists
from ivm_core.api.outline import ViewText, is_circle, reading_order
from ivm_core.engine.declaring import declare_views
from ivm_core.engine.recursion.declaring import Component
from ivm_core.engine.recursion.limiting import set_limits
from ivm_core.engine.requiring import checked_requirement
from ivm_core.model.errors import UserError
from ivm_core.model.names import check_relation_name

if TYPE_CHECKING:
    from ivm_core.api.arguments import GivenLimits
    from ivm_core.engine.core import Engine


def register_views(
    engine: Engine,
    views: Mapping[str, str],
    require: str | Mapping[str, str] | None,
    schemas: Mapping[str, str] | None,
    limits: GivenLimits,
) -> list[str]:
    """Declare views, all of them or none; returns those that have no rows yet."""
    texts, required = checked_views(views, require)
    groups = reading_order(texts)
    declared = column_lists(schemas, texts)
    circles = [
        Component(
            {name: views[name] for name in group},
            required,
            {name: declared[name] for name in group if name in declared},
            limits.limits,
        )
        for group in groups
        if is_circle(group, texts)
    ]
    ordered = {name: views[name] for group in groups for name in group}
    declare_views(engine, ordered, required, circles)
    stored = [engine.catalog.view_name(name) for name in views]
    recursive = [name for each in circles for name in each.names]
    recursive += [
        inner for name in stored for inner in engine.history.views[name].recursions.values()
    ]
    set_limits(engine, recursive, limits.iterations, limits.rows)
    states = engine.history.states
    return [name for name, view in zip(views, stored, strict=True) if not states[view].upto]


def checked_views(
    views: object, require: str | Mapping[str, str] | None
) -> tuple[dict[str, ViewText], dict[str, str]]:
    """Texts and requirements by name; `UserError` for what are no views."""
    if not isinstance(views, Mapping):
        raise UserError(
            f"views are given by name, not as {type(views).__name__}",
            fix='call register_views({"name": "SELECT …"})',
        )
    texts, required = {}, {}
    for name, sql in views.items():
        where = f"view {check_relation_name(name, 'view')}"
        if not isinstance(sql, str):
            raise UserError("a view's SQL is text", where=where, fix="give a SELECT")
        texts[name] = ViewText(name, sql, where)
        given = require.get(name) if isinstance(require, Mapping) else require
        required[name] = checked_requirement(given, where)
    return texts, required
