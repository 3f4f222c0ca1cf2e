"""Which of many views can be made together, and what is wrong with each of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.api.outline import check_names, reading_order, views_in
from ivm_core.frontend.sql import parse_statement, parse_view
from ivm_core.model.errors import IvmError, UserError
from ivm_core.model.schema import Field, Schema
from ivm_core.model.types import STRING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ivm_core.api.outline import ViewText


def unsound_views(
    sources: Mapping[str, Schema], views: Mapping[str, ViewText], missing: Iterable[str] = ()
) -> dict[str, IvmError]:
    """The views that `outline_views` would refuse, each with its own reason, in reading order.

    A view that reads one that can't be made, or a relation that is `missing`, can't be made.
    """
    wrong: dict[str, IvmError] = {}
    sound: dict[str, ViewText] = {}
    for name, text in views.items():
        try:
            check_names(sources, {**sound, name: text})
            parse_statement(text.sql, text.where)
            sound[name] = text
        except IvmError as error:
            wrong[name] = error
    order = _without_circles(sound, wrong)
    catalog = dict(sources)
    there = {name.casefold() for name in sources}
    gone = {n.casefold(): n for n in (*missing, *wrong) if n.casefold() not in there}
    for name in order:
        try:
            columns = _columns(sound[name], catalog, gone)
            catalog[name] = Schema(tuple(Field(column, STRING) for column in columns))
        except IvmError as error:
            wrong[name] = error
            gone[name.casefold()] = name
    return wrong


def _without_circles(views: dict[str, ViewText], wrong: dict[str, IvmError]) -> list[str]:
    while True:
        try:
            return reading_order(views)
        except UserError as error:
            circle = next(name for name, text in views.items() if text.where == error.where)
            wrong[circle] = error
            views.pop(circle)


def _columns(
    text: ViewText, catalog: Mapping[str, Schema], gone: Mapping[str, str]
) -> tuple[str, ...]:
    lost = views_in(text, gone)
    if lost:
        raise UserError(
            f"it reads {', '.join(lost)}, which can't be used",
            where=text.where,
            fix=f"put {lost[0]} right",
        )
    return parse_view(text.sql, dict(catalog), text.where).plan.columns
