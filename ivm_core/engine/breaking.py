"""Whether views can go on as they are when what they read has other columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.compile.stages import scans
from ivm_core.model.errors import IvmError
from ivm_core.model.schema import parse_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.compile.program import ViewProgram
    from ivm_core.engine.core import Engine
    from ivm_core.engine.definitions import ViewDefinition
    from ivm_core.engine.history import History


OTHER_TIES = "the new columns would break ties of its rows"


def breaks(engine: Engine, reader: str, nexts: Mapping[str, ViewDefinition] | None = None) -> str:
    """Why a view can't go on as it is over the drafted relations; empty where it can.

    `nexts` are the next definitions of views.
    """
    before = engine.catalog.program(reader)
    try:
        after = engine.catalog.again(reader, engine.analyser(reader))
    except IvmError as error:
        return str(error).splitlines()[0]
    if after.schema.ddl != before.schema.ddl:
        return f"its columns would be ({after.schema.ddl})"
    has_others = has_other_types(after, before)
    if has_others or _reads_other_types(engine.history, before, nexts or {}):
        return "columns that it reads have other types"
    if after.plan.text == before.plan.text:
        return ""
    if engine.catalog.differs_in_ties(reader, engine.analyser(reader)):
        return OTHER_TIES
    return "its query reads the new columns"


def _reads_other_types(
    history: History, reader: ViewProgram, nexts: Mapping[str, ViewDefinition]
) -> bool:
    """Whether a column that it reads of a view comes in another type."""
    for scan in scans(reader.plan):
        if scan.relation in nexts:
            old = parse_schema(history.views[scan.relation].schema)
            new = parse_schema(nexts[scan.relation].schema)
            if any(old.field(each).type != new.field(each).type for each in scan.fields):
                return True
    return False


def has_other_types(one: ViewProgram, other: ViewProgram) -> bool:
    """Whether Spark says otherwise of a node that both programs have."""
    return any(other.types.get(node, said) != said for node, said in one.types.items())
