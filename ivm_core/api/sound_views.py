"""Which of many views can be made together, and what is wrong with each of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.api.outline import check_names, outline_group, reading_order, views_in
from ivm_core.api.recursive_outline import blamed, untyped
from ivm_core.model.errors import UserError, in_our_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ivm_core.api.outline import ViewText
    from ivm_core.model.errors import IvmError
    from ivm_core.model.schema import Schema


def unsound_views(
    sources: Mapping[str, Schema], views: Mapping[str, ViewText], missing: Iterable[str] = ()
) -> dict[str, IvmError]:
    """The views that `outline_views` would refuse, each with its own reason, in reading order.

    A view that reads one that can't be made, or a relation that is `missing`, can't be made, and
    neither can those that read it in a circle.
    """
    wrong: dict[str, IvmError] = {}
    sound: dict[str, ViewText] = {}
    for name, text in views.items():
        try:
            check_names(sources, {**sound, name: text})
            views_in(text, {})
            sound[name] = text
        except Exception as error:  # a bug of ours is in the way of this view alone
            wrong[name] = in_our_words(error, text.where)
    catalog = dict(sources)
    there = {name.casefold() for name in sources}
    gone = {n.casefold(): n for n in (*missing, *wrong) if n.casefold() not in there}
    for group in reading_order(sound):
        try:
            for name in group:
                _refuse_lost(sound[name], gone)
            found = outline_group(group, sources, sound, catalog)
            catalog |= {each.name: untyped(each.columns) for each in found}
        except Exception as error:
            first = blamed(error, {name: sound[name].where for name in group})
            wrong[first] = in_our_words(error, sound[first].where)
            wrong |= {n: _tied(sound[n], first) for n in group if n != first}
            gone |= {name.casefold(): name for name in group}
    return wrong


def _tied(text: ViewText, to: str) -> UserError:
    return UserError(
        f"it and {to} read each other in a circle, and {to} can't be used",
        where=text.where,
        fix=f"put {to} right",
    )


def _refuse_lost(text: ViewText, gone: Mapping[str, str]) -> None:
    lost = views_in(text, gone)
    if lost:
        raise UserError(
            f"it reads {', '.join(lost)}, which can't be used",
            where=text.where,
            fix=f"put {lost[0]} right",
        )
