"""Dropping views, and giving them other names: one entry in the tick log each, no tick."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ivm_core.frontend.renaming import with_relation_renamed
from ivm_core.model.errors import InternalError, UserError
from ivm_core.plan.nodes import Scan
from ivm_core.plan.rewriting import rewrite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ivm_core.compile.program import ViewProgram
    from ivm_core.engine.core import Engine
    from ivm_core.engine.definitions import ViewDefinition
    from ivm_core.plan.nodes import Node


def drop_views(engine: Engine, names: Sequence[str], *, cascade: bool) -> tuple[str, ...]:
    """Drop views, all or none; `UserError` while others read them. Returns what was dropped.

    With `cascade` the views that read them go too.
    """
    engine.begin_writing()
    history, catalog = engine.history, engine.catalog
    views = list(dict.fromkeys(catalog.view_name(name) for name in names))
    if cascade:
        views = catalog.downstream(views)
    views += [name for name, view in history.views.items() if view.shadow_of in views]
    readers = [r for view in views for r in catalog.readers(view) if r not in views]
    if readers:
        raise UserError(
            f"{', '.join(views)} can't be dropped: read by {', '.join(dict.fromkeys(readers))}",
            where=f"view {views[0]}",
            fix="drop the readers in the same call, all that read them with cascade=True, or let "
            "them read something else with flow.alter_view",
        )
    engine.append("drop", {"names": list(dict.fromkeys(views))})
    return tuple(dict.fromkeys(views))


def rename_view(engine: Engine, old: str, new: str) -> None:
    """Give a view another name; rows, history and the meaning of its readers stay."""
    engine.begin_writing()
    history, catalog = engine.history, engine.catalog
    view = catalog.view_name(old)
    stored = history.views[view]
    if stored.shadow_of:
        raise UserError(
            f"{view} is prepared as the next definition of view {stored.shadow_of}",
            where=f"view {view}",
            fix=f"rename view {stored.shadow_of}",
        )
    if new == view:
        return
    if new.casefold() != view.casefold():
        catalog.refuse_taken(new)
    shadow = history.shadow(view)
    renamed = replace(stored, name=new, folder=stored.kept_in, rows_folder=stored.rows_in)
    readers = catalog.readers(view)
    before = {reader: catalog.program(reader) for reader in readers}
    with catalog.drafting({new: renamed}):
        changed = [_over(engine, reader, before[reader], view, new) for reader in readers]
    engine.append(
        "rename",
        {
            "old": view,
            "view": renamed.body,
            "readers": [each.body for each in changed],
            "shadow": None if shadow is None else shadow.name,
        },
    )


def _over(engine: Engine, reader: str, before: ViewProgram, old: str, new: str) -> ViewDefinition:
    """A reader's definition over the new name, which must be the same in all else."""
    stored = engine.history.views[reader]
    where = f"view {stored.shadow_of or reader}"
    sql = with_relation_renamed(stored.sql, old, new, where)
    after = engine.catalog.again(reader, engine.analyser(reader), sql)
    steps = [_with_scans(each, new, old).text for each in (after.plan, *after.steps)]
    if steps != [each.text for each in (before.plan, *before.steps)]:
        raise InternalError(f"view {reader} over {new} is not what it was over {old}")
    return replace(stored, sql=sql, types=after.types, fingerprint=after.fingerprint)


def _with_scans(plan: Node, old: str, new: str) -> Node:
    """The plan with scans of one relation as scans of another."""

    def rule(node: Node) -> Node:
        if isinstance(node, Scan) and node.relation == old:
            return replace(node, relation=new)
        return node

    return rewrite(plan, rule)
