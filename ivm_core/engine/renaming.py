"""Dropping views, and giving them other names: one entry in the tick log each, no tick."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ivm_core.compile.node_keys import NodeKeys
from ivm_core.engine.history import with_key
from ivm_core.frontend.renaming import with_relation_renamed
from ivm_core.model.errors import InternalError, UserError
from ivm_core.plan.nodes import Scan
from ivm_core.plan.rewriting import rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ivm_core.compile.program import ViewProgram
    from ivm_core.engine.core import Engine
    from ivm_core.engine.definitions import SharedDefinition, ViewDefinition
    from ivm_core.plan.nodes import Node


def drop_views(engine: Engine, names: Sequence[str], *, cascade: bool) -> tuple[str, ...]:
    """Drop views, all or none; `UserError` while others read them. Returns what was dropped.

    With `cascade` the views that read them go too.
    """
    engine.begin_writing()
    catalog = engine.catalog
    found = list(dict.fromkeys(catalog.view_name(name) for name in names))
    views = with_hidden(engine, catalog.downstream(found) if cascade else found)
    readers = [r for view in views for r in catalog.readers(view) if r not in views]
    if readers:
        raise UserError(
            f"{', '.join(views)} can't be dropped: read by {', '.join(dict.fromkeys(readers))}",
            where=f"view {views[0]}",
            fix="drop the readers in the same call, all that read them with cascade=True, or let "
            "them read something else with flow.alter_view",
        )
    engine.append("drop", {"names": views})
    return tuple(views)


def with_hidden(engine: Engine, views: Sequence[str]) -> list[str]:
    """Views, what is prepared beside them, and what is inside of any of these."""
    stored = engine.history.views
    found = [*views, *(name for name, view in stored.items() if view.shadow_of in views)]
    found += [name for name, view in stored.items() if view.inside in found]
    return list(dict.fromkeys(found))


def drop_unread_sources(engine: Engine, names: Sequence[str]) -> None:
    """Forget sources that were declared for views that never came: nobody reads or feeds them."""
    engine.begin_writing()
    gone = [name for name in unread_sources(engine) if name in names]
    if gone:
        engine.append("drop", {"names": [], "sources": gone})


def unread_sources(engine: Engine) -> list[str]:
    """Sources that no view reads, and of which no tick has ever had a row."""
    history = engine.history
    read = engine.catalog.sources_of(list(history.views))
    return [
        name
        for name in history.sources
        if name not in read
        and not history.source_rows.get(name)
        and name not in history.first_deletion
    ]


def rename_view(engine: Engine, old: str, new: str) -> None:
    """Give a view another name; rows, history and the meaning of its readers stay."""
    engine.begin_writing()
    history, catalog = engine.history, engine.catalog
    view = catalog.view_name(old)
    stored = history.views[view]
    if stored.shadow_of or stored.inside:
        other = stored.shadow_of or stored.inside
        how = "prepared as the next definition of" if stored.shadow_of else "a recursion inside of"
        raise UserError(
            f"{view} is {how} view {other}", where=f"view {view}", fix=f"rename view {other}"
        )
    if new == view:
        return
    if new.casefold() != view.casefold():
        catalog.refuse_taken(new)
    shadow = history.shadow(view)
    renamed = replace(stored, name=new, folder=stored.kept_in, rows_folder=stored.rows_in)
    tied = [each for each in stored.component if each != view]
    found = [each for each in catalog.readers(view) if each not in tied]
    # the text of a recursive expression is also a part of the view's
    found += [history.views[each].inside for each in found if history.views[each].inside]
    readers = list(dict.fromkeys(found))
    before = {each: catalog.program(each) for each in (view, *tied, *readers)}
    with catalog.drafting({new: renamed}):
        changed = []
        if stored.component:
            own = [renamed, *(history.views[each] for each in tied)]
            renamed, *changed = _component_over(engine, own, before, view, new)
        nodes = _nodes_over(engine, view, new)
        changed += [_over(engine, reader, before[reader], view, new) for reader in readers]
    engine.append(
        "rename",
        {
            "old": view,
            "view": renamed.body,
            "readers": [each.body for each in changed],
            "shared": [each.body for each in nodes],
            "shadow": None if shadow is None else shadow.name,
        },
    )


def _component_over(
    engine: Engine,
    views: Sequence[ViewDefinition],
    before: Mapping[str, ViewProgram],
    old: str,
    new: str,
) -> list[ViewDefinition]:
    """The definitions of views that read each other, one of them under its new name."""
    catalog, drafts = engine.catalog, []
    for each in views:
        names = tuple(new if name == old else name for name in each.component)
        sql = with_relation_renamed(each.sql, old, new, f"view {each.name}")
        drafts.append(replace(each, sql=sql, component=names))
        catalog.promise(drafts[-1])
    found = []
    for each in drafts:
        after = catalog.compile_view(
            each.name,
            each.sql,
            (),
            engine.analyser(each.name),
            {},
            each.kept_in,
            functions=each.functions,
            component=each.component,
        )
        _refuse_other(after, before[old if each.name == new else each.name], old, new)
        found.append(replace(each, types=after.types, fingerprint=after.fingerprint))
        catalog.redraft(after, found[-1])
    return found


def _nodes_over(engine: Engine, old: str, new: str) -> list[SharedDefinition]:
    """The shared nodes that read the view, over its new name; drafted, inputs first.

    One whose text only names the view elsewhere keeps it: it knows what the view was.
    """
    catalog, found = engine.catalog, []
    shared = engine.history.shared
    before = {name: catalog.program(name) for name in shared}
    for name, node in shared.items():
        if old not in before[name].reads:
            continue
        views = catalog.sharers(name)
        where = f"view {views[0]}" if views else name
        if any(each.casefold() == new.casefold() for each in node.over if each != old):
            raise UserError(
                f"a node that views {', '.join(views)} share was made beside another view {new}",
                where=where,
                fix="give the view another name",
            )
        draft = replace(
            node,
            sql=with_relation_renamed(node.sql, old, new, where),
            key=NodeKeys().of(_with_scans(before[name].plan, old, new)),
            types={},
            over=with_key(node.over, old, new),
        )
        after = catalog.compile_shared(draft, engine.analyser(views[0] if views else name))
        _refuse_other(after, before[name], old, new)
        found.append(replace(draft, types=after.types))
        catalog.redraft(after, found[-1])
    return found


def _over(engine: Engine, reader: str, before: ViewProgram, old: str, new: str) -> ViewDefinition:
    """A reader's definition over the new name, which must be the same in all else."""
    stored = engine.history.views[reader]
    where = f"view {stored.shadow_of or reader}"
    sql = with_relation_renamed(stored.sql, old, new, where)
    after = engine.catalog.again(reader, engine.analyser(reader), sql)
    _refuse_other(after, before, old, new)
    return replace(stored, sql=sql, types=after.types, fingerprint=after.fingerprint)


def _refuse_other(after: ViewProgram, before: ViewProgram, old: str, new: str) -> None:
    """`InternalError` for a program that differs in more than the name of what it reads."""
    same_plan = _with_scans(after.plan, new, old).text == before.plan.text
    stages = zip(after.stages, before.stages, strict=False)
    same_stages = len(after.stages) == len(before.stages) and all(
        _with_scans(one.stage.body, new, old).text == other.stage.body.text
        and one.output == other.output
        for one, other in stages
    )
    if not (same_plan and same_stages):
        raise InternalError(f"{before.name} over {new} is not what it was over {old}")


def _with_scans(plan: Node, old: str, new: str) -> Node:
    """The plan with scans of one relation as scans of another."""

    def rule(node: Node) -> Node:
        if isinstance(node, Scan) and node.relation == old:
            return replace(node, relation=new)
        return node

    return rewrite(plan, rule)
