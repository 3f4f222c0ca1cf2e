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
    from collections.abc import Callable, Collection

    from ivm_core.engine.analysis import SparkAnalyser
    from ivm_core.engine.catalog import Catalog
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
    fresh = [name for name in names if name not in history.begun]
    programs = {name: catalog.program(name) for name in fresh}
    known = [name.removeprefix(SHARED_PREFIX) for name in history.shared]
    shared = list(history.shared)
    made = []
    for node in reversed(common_nodes(programs.values(), known)):
        name, sql = f"{SHARED_PREFIX}{node.key}", node.program.sql
        analyser = analyser_of(node.program.name)
        program = catalog.compile_shared(name, sql, shared, analyser, node.program.types)
        made.append(SharedDefinition(name, sql, program.schema.ddl, program.types, program.shared))
        catalog.redraft(program, made[-1])
        shared.append(name)
    keys = {name.removeprefix(SHARED_PREFIX) for name in shared}
    for name, program in programs.items():
        if keys.isdisjoint(program.keys.values()):
            continue
        definition = catalog.definition(name)
        analyser = analyser_of(name)
        again = catalog.compile_view(name, definition.sql, shared, analyser, program.types)
        # a node of other types would not be the same, whatever its key says
        if again.shared != definition.shared and again.schema.ddl == definition.schema:
            catalog.redraft(again, replace(definition, types=again.types, shared=again.shared))
    return made
