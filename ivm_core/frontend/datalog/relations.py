"""The relations that a program declares: names, columns, types, which are inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.frontend.datalog.functors import Kind
from ivm_core.model.errors import DatalogError, IvmError, Unsupported
from ivm_core.model.names import check_column_name, check_relation_name, did_you_mean
from ivm_core.model.schema import Field, Schema
from ivm_core.model.types import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ivm_core.frontend.datalog.syntax import Declaration, Place, Source

BIGINT, INT = Scalar("BIGINT"), Scalar("INT")
TYPES = {
    "number": (Kind.NUMBER, BIGINT),
    "int64": (Kind.NUMBER, BIGINT),
    "int32": (Kind.NUMBER, INT),
    "unsigned": (Kind.UNSIGNED, BIGINT),
    "float": (Kind.FLOAT, Scalar("DOUBLE")),
    "symbol": (Kind.SYMBOL, Scalar("STRING")),
    "string": (Kind.SYMBOL, Scalar("STRING")),
}
LEAST = {"BIGINT": -(2**63), "INT": -(2**31)}
MOST = {"BIGINT": 2**63 - 1, "INT": 2**31 - 1}


@dataclass(frozen=True)
class Column:
    """A column of a relation."""

    name: str
    kind: Kind
    type: Scalar

    @property
    def least(self) -> int:
        """The least whole number that it takes."""
        return 0 if self.kind is Kind.UNSIGNED else LEAST[self.type.ddl]

    @property
    def most(self) -> int:
        """The greatest whole number that it takes."""
        return MOST[self.type.ddl]


@dataclass(frozen=True)
class Relation:
    """A declared relation."""

    name: str
    columns: tuple[Column, ...]
    text: str
    place: Place
    """Where it is declared."""

    @property
    def schema(self) -> Schema:
        """Its columns as a source or view has them."""
        return Schema(tuple(Field(each.name, each.type) for each in self.columns))


def declared_relations(source: Source) -> dict[str, Relation]:
    """The relations by name; `DatalogError` for one that is declared twice or wrongly."""
    types = _types(source)
    relations: dict[str, Relation] = {}
    spelled: dict[str, Declaration] = {}
    for declaration in source.declarations:
        _check_name(declaration, spelled)
        spelled[declaration.name.casefold()] = declaration
        relations[declaration.name] = _relation(declaration, types)
    for mention in (*source.inputs, *source.outputs):
        if mention.relation not in relations:
            raise unknown(mention.relation, relations, mention.place)
    return relations


def unknown(name: str, relations: Iterable[str], place: Place, rule: str = "") -> DatalogError:
    """That a relation isn't declared."""
    there = ", ".join(relations) or "none"
    return DatalogError(
        f"the relation {name} is not declared",
        fix=f"{did_you_mean(name, relations)}declare it with .decl; declared are: {there}",
        line=place.line,
        column=place.column,
        rule=rule,
    )


def _types(source: Source) -> dict[str, tuple[Kind, Scalar]]:
    types = dict(TYPES)
    for each in source.types:
        if each.name in types or each.of not in types:
            named = each.name if each.name in types else each.of
            why = "is a type already" if each.name in types else "is no type"
            raise DatalogError(
                f"{named} {why}",
                fix=f"name a type once, after the one that it is; there are: {', '.join(types)}",
                line=each.place.line,
                column=each.place.column,
            )
        types[each.name] = types[each.of]
    return types


def _check_name(declaration: Declaration, spelled: Mapping[str, Declaration]) -> None:
    twin = spelled.get(declaration.name.casefold())
    if twin is not None:
        differs = "" if twin.name == declaration.name else " (case doesn't tell names apart)"
        raise _wrong(
            declaration,
            f"{declaration.name} is declared already, at {twin.place}{differs}",
            "declare a relation once, and give another one another name",
        )
    try:
        check_relation_name(declaration.name, "relation")
    except IvmError as error:
        raise _wrong(declaration, getattr(error, "what", ""), getattr(error, "fix", "")) from error


def _relation(declaration: Declaration, types: Mapping[str, tuple[Kind, Scalar]]) -> Relation:
    if not declaration.columns:
        raise Unsupported(
            f"the relation {declaration.name} without columns",
            f"{declaration.place}: {declaration.text}",
            "a table has columns",
            f"give it one, and a value for it: .decl {declaration.name}(on: number)",
        )
    columns: dict[str, Column] = {}
    for name, kind, place in declaration.columns:
        if kind not in types:
            raise _wrong(
                declaration,
                f"{kind} is no type",
                f"{did_you_mean(kind, types)}there are: {', '.join(types)}",
                place,
            )
        if name.casefold() in columns:
            raise _wrong(declaration, f"two columns are called {name}", "name each once", place)
        try:
            check_column_name(name)
        except IvmError as error:
            what, fix = getattr(error, "what", ""), getattr(error, "fix", "")
            raise _wrong(declaration, what, fix, place) from error
        columns[name.casefold()] = Column(name, *types[kind])
    return Relation(declaration.name, tuple(columns.values()), declaration.text, declaration.place)


def _wrong(
    declaration: Declaration, what: str, fix: str, place: Place | None = None
) -> DatalogError:
    at = place or declaration.place
    return DatalogError(what, fix=fix, line=at.line, column=at.column, rule=declaration.text)
