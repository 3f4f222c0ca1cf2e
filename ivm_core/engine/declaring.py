"""Declaring sources and views: the same again is nothing, another one is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ivm_core.engine.recursion.declaring import draft_component, draft_inner
from ivm_core.engine.requiring import refuse_unless
from ivm_core.engine.sharing import share
from ivm_core.model.errors import DefinitionConflict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ivm_core.engine.core import Engine
    from ivm_core.engine.definitions import SourceDefinition
    from ivm_core.engine.recursion.declaring import Component


def declare_source(engine: Engine, source: SourceDefinition) -> None:
    """Declare a source; `DefinitionConflict` for another one of its name, whatever its case."""
    engine.refresh()
    catalog = engine.catalog
    stored = engine.history.sources.get(catalog.stored_name(source.name) or "")
    if stored is not None:
        if stored.body != replace(source, name=stored.name).body:
            raise DefinitionConflict(
                f"source {stored.name} is declared differently in this flow",
                where=f"source {source.name}",
                fix="give the stored definition, add columns with flow.alter_source, or "
                "register the new one under another name",
                stored=str(stored),
                given=str(source),
            )
        return
    catalog.refuse_taken(source.name)
    known = catalog.names
    engine.begin_writing()
    if catalog.names != known:
        declare_source(engine, source)  # someone has declared something meanwhile: look again
    else:
        engine.append("source", source.body)


def declare_views(
    engine: Engine,
    views: Mapping[str, str],
    require: Mapping[str, str],
    components: Sequence[Component] = (),
    over: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Declare views, inputs first, all of them or none; `DefinitionConflict` for other ones.

    `require` has what some of them must be, `components` those that read each other, `over` the
    columns of sources that some know, where these have others by now.
    """
    engine.refresh()
    catalog, history = engine.catalog, engine.history
    known = catalog.names
    recursive = {name: each for each in components for name in each.names}
    with catalog.drafting() as drafts:
        for name, sql in views.items():
            component = recursive.get(name)
            if component is None or catalog.stored_name(name) in history.views:
                known_columns = (over or {}).get(name, {})
                _draft_unless_stored(engine, name, sql, require.get(name, ""), known_columns)
            elif name not in drafts:
                for each in component.names:
                    catalog.refuse_taken(each)
                draft_component(engine, component)
        if drafts:
            engine.begin_writing()
        if catalog.names == known:
            nodes = share(catalog, history, tuple(drafts), engine.analyser)
            bodies = [("shared", node.body) for node in nodes]
            bodies += [("view", definition.body) for definition in drafts.values()]
            if bodies:
                engine.extend(bodies)
            return
    # someone has declared something meanwhile: look again
    declare_views(engine, views, require, components, over)


def draft_view(
    engine: Engine,
    name: str,
    sql: str,
    require: str = "",
    over: Mapping[str, str] | None = None,
) -> None:
    """Compile a view as a draft of the catalog; raises what keeps it from being declared."""
    catalog = engine.catalog
    functions = engine.functions.called_in(sql)
    free = engine.history.free_folder(name)
    recursions = draft_inner(engine, name, sql)
    catalog.draft(
        name,
        sql,
        engine.analyser(name),
        functions,
        require,
        folder="" if free == name else free,
        recursions=recursions,
        over=over,
    )
    refuse_unless(require, catalog.program(name), catalog.schemas())


def _draft_unless_stored(
    engine: Engine, name: str, sql: str, require: str, over: Mapping[str, str]
) -> None:
    catalog, views = engine.catalog, engine.history.views
    taken = catalog.stored_name(name)
    if taken is None or taken not in views:
        catalog.refuse_taken(name)
        draft_view(engine, name, sql, require, over)
        return
    stored = views[taken]
    is_same = stored.sql.strip() == sql.strip() or (
        not stored.recursions
        and catalog.means_the_same(
            taken, sql, engine.analyser(name), engine.functions.called_in(sql)
        )
    )
    if not is_same or stored.require != require:
        raise DefinitionConflict(
            f"view {name} is declared differently in this flow",
            where=f"view {name}",
            fix=f"give the stored definition, change it with flow.alter_view({taken!r}, …), or "
            "register the new one under another name",
            stored=_declared(stored.sql, stored.require),
            given=_declared(sql, require),
        )


def _declared(sql: str, require: str) -> str:
    """A declaration as a conflict shows it."""
    return f"{sql}\nrequire={require!r}" if require else sql
