"""What a pipeline declares of a source's columns beside what its table has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core import UserError
from ivm_core.api.table_schema import table_schema
from ivm_core.model.names import quote
from ivm_core.store.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ivm_core.model.schema import Field, Schema
    from tideview.resources.pipeline_spec import SourceSpec


def check_columns(source: SourceSpec, place: str, known: Schema) -> bool:
    """Whether the flow has all declared columns; `UserError` for one that not even the table has.

    `known` is what the flow has of the source. A table that has gained columns has them in its log
    before the flow takes them. What it has besides is nobody's business.
    """
    differing = _differing(source.schema, known)
    if not differing:
        return True
    now = table_schema(place, source.where or f"source {source.name}")
    for column in _differing(source.schema, now):
        raise _unlike(source, place, column, now.find(column.name))
    return False


def check_there(source: SourceSpec, place: str) -> None:
    """`UserError` that says where a source is declared, if its table is not there."""
    if Location(place).exists("_delta_log"):
        return
    where = source.where or f"source {source.name}"
    if source.is_inbox:
        raise UserError(
            f"the inbox of source {source.name} is gone: there is no Delta table at {place}",
            where,
            "put it back as it was; a new table is another source: declare it under another name",
        )
    raise UserError(
        f"there is no Delta table at {place}, which source {source.name} follows",
        where,
        "correct delta_table, or run again when the table is there",
    )


def _differing(declared: Iterable[Field], there: Schema) -> list[Field]:
    found = ((each, there.find(each.name)) for each in declared)
    return [each for each, other in found if other is None or other.type != each.type]


def _unlike(source: SourceSpec, place: str, declared: Field, there: Field | None) -> UserError:
    name, wanted = declared.name, declared.type.ddl
    what = f"source {source.name} declares {name} {wanted}"
    where = f"{source.where or f'source {source.name}'}; its table is {place}"
    if there is None:
        add = f"ALTER TABLE delta.{quote(place)} ADD COLUMNS ({quote(name)} {wanted})"
        return UserError(
            f"{what}, and its table has no such column",
            where,
            f"add it to the table ({add}), or take it out of schema",
        )
    return UserError(
        f"{what}, and its table has {name} {there.type.ddl}",
        where,
        f"declare {name} {there.type.ddl}; for rows of another type declare a source of another "
        "name, and let the views read that one",
    )
