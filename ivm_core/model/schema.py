"""The columns of a source, view or trace: names, types, which may be NULL."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from ivm_core.model.ddl import DdlReader, parse_type
from ivm_core.model.errors import DuplicateName, UnknownName, UserError
from ivm_core.model.names import check_column_name, check_storable, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ivm_core.model.types import DataType

_REMEMBERED = 4096
"""Texts whose columns are kept: every tick asks for those of all views."""

__all__ = ["Field", "Schema", "parse_schema", "parse_type"]


@dataclass(frozen=True, slots=True)
class Field:
    """One column."""

    name: str
    type: DataType
    nullable: bool = True

    @property
    def ddl(self) -> str:
        """`` `name` TYPE [NOT NULL]``."""
        return f"{quote(self.name)} {self.type.ddl}{'' if self.nullable else ' NOT NULL'}"


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns in order; refuses none, repeated, reserved and unstorable names.

    Names compare without regard to case. `internal` admits the reserved names, for what traces
    hold beside the user's columns.
    """

    fields: tuple[Field, ...]
    internal: bool = field(default=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse columns that can't be stored or told apart."""
        object.__setattr__(self, "fields", tuple(self.fields))
        if not self.fields:
            raise UserError("a schema without columns", fix="declare at least one column")
        check = check_storable if self.internal else check_column_name
        seen: dict[str, str] = {}
        for each in self.fields:
            check(each.name, f"column {each.name!r}")
            twin = seen.get(each.name.lower())
            if twin is not None:
                raise DuplicateName(
                    f"two columns are called {each.name!r}"
                    + ("" if twin == each.name else f" ({twin!r} differs only in case)"),
                    fix="give each column its own name (in a view: an alias with AS)",
                )
            seen[each.name.lower()] = each.name

    @property
    def names(self) -> tuple[str, ...]:
        """The column names in order."""
        return tuple(each.name for each in self.fields)

    @property
    def ddl(self) -> str:
        """Canonical Spark DDL text, which `parse_schema` reads back."""
        return ", ".join(each.ddl for each in self.fields)

    def find(self, name: str) -> Field | None:
        """The column of that name, whatever its case; None where there is none."""
        lowered = name.lower()
        return next((each for each in self.fields if each.name.lower() == lowered), None)

    def field(self, name: str) -> Field:
        """The column of that name, whatever its case; else `UnknownName` with what there is."""
        found = self.find(name)
        if found is None:
            raise UnknownName(f"there is no column {name!r}", fix=f"one of {', '.join(self.names)}")
        return found

    def select(self, names: Iterable[str]) -> Schema:
        """These columns in this order; else `UnknownName`."""
        return Schema(tuple(self.field(name) for name in names), internal=self.internal)

    def __iter__(self) -> Iterator[Field]:
        """The columns in order."""
        return iter(self.fields)

    def __len__(self) -> int:
        """How many columns there are."""
        return len(self.fields)

    def __contains__(self, name: object) -> bool:
        """Whether there is a column of that name, whatever its case."""
        return isinstance(name, str) and self.find(name) is not None


def parse_schema(ddl: str, where: str = "the schema") -> Schema:
    """The columns that Spark DDL declares; `SqlError` with the place, or what `Schema` says."""
    # what is no text may not be one to remember either: the reader says so
    return _remembered(ddl, where) if isinstance(ddl, str) else _parsed(ddl, where)


def _parsed(ddl: str, where: str) -> Schema:
    return Schema(tuple(Field(*column) for column in DdlReader(ddl, where).columns()))


_remembered = lru_cache(_REMEMBERED)(_parsed)
