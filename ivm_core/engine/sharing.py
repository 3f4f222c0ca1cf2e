"""Letting views share nodes: what two or more of them have is maintained once.

A shared node is ticked as a view is: it has a definition, a trace, a frontier, a digest. So views
that are at different frontiers read it as they read each other, each what it has missed. A node
inside of one view could not be read so: it is kept as of that view's frontier only.

Only views that no tick has begun to evaluate take part; what has state of its own keeps it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ivm_core.compile.common_nodes import common_nodes
from ivm_core.engine.definitions import SharedDefinition
from ivm_core.model.names import SHARED_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from ivm_core.engine.analysis import SparkAnalyser
    from ivm_core.engine.catalog import Catalog
    from ivm_core.engine.definitions import ViewDefinition
    from ivm_core.engine.history import History


def share(
    catalog: Catalog,
    history: History,
    drafts: Collection[str],
    analyser_of: Callable[[str], SparkAnalyser],
) -> list[SharedDefinition]:
    """Draft what drafted views have in common with each other, and all that read it anew.

    Gives back the new nodes, those first that others read.
    """
    if not drafts:
        return []
    names = dict.fromkeys((*history.views, *drafts))
    fresh = [
        name
        for name in names
        if name not in history.begun
        and not catalog.definition(name).shadow_of
        and not catalog.definition(name).component
        and not catalog.definition(name).recursions
    ]
    programs = {name: catalog.program(name) for name in fresh}
    known = [node.key for node in history.shared.values()]
    shared = list(history.shared)
    made = []
    schemas = catalog.schemas()
    for node in reversed(common_nodes(programs.values(), known)):
        origin = node.program
        functions = catalog.definition(origin.name).functions
        draft = SharedDefinition(
            history.free_folder(f"{SHARED_PREFIX}{node.key}"),
            origin.sql,
            "",
            origin.types,
            tuple(_of_functions(catalog, shared, functions)),
            node.key,
            {name: schemas[name].ddl for name in origin.reads if name in names}
            | dict(catalog.definition(origin.name).over),
            functions,
        )
        program = catalog.compile_shared(draft, analyser_of(origin.name))
        definition = replace(
            draft, schema=program.schema.ddl, types=program.types, shared=program.shared
        )
        made.append(definition)
        catalog.redraft(program, definition)
        shared.append(definition.name)
    keys = {*known, *(node.key for node in made)}
    for name, program in programs.items():
        if keys.isdisjoint(program.keys.values()):
            continue
        stored = catalog.definition(name)
        over_shared(catalog, stored, shared, analyser_of(name))
    return made


def over_shared(
    catalog: Catalog,
    definition: ViewDefinition,
    shared: Iterable[str],
    analyser: SparkAnalyser,
) -> ViewDefinition:
    """A drafted view, or one that no tick has seen yet, over the shared nodes that it has."""
    name, sql, types = definition.name, definition.sql, catalog.program(definition.name).types
    nodes = _of_functions(catalog, shared, definition.functions)
    folder = definition.kept_in
    functions = definition.functions
    again = catalog.compile_view(
        name,
        sql,
        nodes,
        analyser,
        types,
        folder,
        hidden=name,
        functions=functions,
        columns=definition.known_columns,
    )
    # a node of other types would not be the same, whatever its key says
    if again.shared == definition.shared or again.schema.ddl != definition.schema:
        return definition
    found = replace(definition, types=again.types, shared=again.shared)
    catalog.redraft(again, found)
    return found


def _of_functions(
    catalog: Catalog, shared: Iterable[str], functions: Mapping[str, str]
) -> list[str]:
    """The shared nodes without those whose functions were others than these of the same names."""
    return [
        name
        for name in shared
        if all(functions.get(each, f) == f for each, f in catalog.shared(name).functions.items())
    ]
