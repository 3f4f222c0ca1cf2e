"""Views that are required to be incremental: what keeps one from it, with place and rewrite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.compile.steps import obstacles
from ivm_core.engine.definitions import INCREMENTAL
from ivm_core.frontend.whereabouts import place_of
from ivm_core.model.errors import CostsMore, UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ivm_core.compile.program import ViewProgram
    from ivm_core.model.schema import Schema


def costs_more(
    program: ViewProgram, schemas: Mapping[str, Schema], below: Sequence[ViewProgram] = ()
) -> tuple[tuple[str, CostsMore], ...]:
    """Every node that is recomputed and relation that is read in full: verdict and refusal."""
    found = []
    for each in obstacles(program, schemas, below):
        place = place_of(program.sql, each.kind, each.name)
        where = f"view {program.name}, {place}" if place else f"view {program.name}"
        refusal = CostsMore(each.construct, where, each.reason, each.rewrite)
        found.append((each.verdict, refusal))
    return tuple(found)


def refuse_unless(require: str, program: ViewProgram, schemas: Mapping[str, Schema]) -> None:
    """`NotIncremental` for the first thing that a view's requirement rules out."""
    if not require:
        return
    found = [refusal for _, refusal in costs_more(program, schemas)]
    if not found:
        return
    first, more = found[0], found[1:]
    also = f"; and so is {', '.join(each.construct for each in more)}" if more else ""
    reason = f"{first.reason}; the view is declared with require={require!r}{also}"
    raise CostsMore(first.construct, first.position, reason, first.rewrite)


def checked_requirement(require: object, where: str) -> str:
    """The requirement as it is stored; `UserError` for one that there isn't."""
    if require is None or require == "":
        return ""
    if require != INCREMENTAL:
        raise UserError(
            f"require={require!r} is nothing that a view can be required to be",
            where=where,
            fix=f'give require="{INCREMENTAL}", or leave it out',
        )
    return INCREMENTAL
