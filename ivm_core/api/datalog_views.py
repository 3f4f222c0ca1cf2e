"""Datalog programs as files beside those of views: a view for each relation that is derived.

    views/paths.dl      .decl edge(x: number, y: number)      // a source or view of that name
                        .input edge
                        .decl path(x: number, y: number)      // becomes the view `path`
                        path(x, y) :- edge(x, y).
                        path(x, z) :- path(x, y), edge(y, z).

An input that rules derive too reads the relation of its name with `_input` behind it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.api.expected_columns import ExpectedColumns
from ivm_core.api.outline import ViewText
from ivm_core.api.view_file import apart, read_text
from ivm_core.frontend.datalog.program import checked_program
from ivm_core.frontend.datalog.queries import source_names
from ivm_core.frontend.datalog.tables import queries_over_tables
from ivm_core.frontend.recursion import relations_named
from ivm_core.model.errors import DatalogError, DuplicateName, Refusal, UserError
from ivm_core.operators.sql import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ivm_core.api.documents import Document

_DECLARED = re.compile(r"\.decl\s+(\w+)")


@dataclass(frozen=True)
class Derived:
    """A relation that a program derives."""

    text: ViewText
    rules: str
    """The rules that derive it, as they are written."""
    where: str
    """File and line of its declaration."""


@dataclass(frozen=True)
class ProgramFile:
    """A program's file."""

    relations: tuple[Derived, ...]
    description: str
    front: Document
    """Checked; its content is a dict, empty where the file has none."""


def read_program(file: Path) -> ProgramFile:
    """One program; a file that is no text, or no program, is an `IvmError` with file and line."""
    front, text = apart(read_text(file), str(file), "program")
    description = front.content.get("description", "").strip()
    return ProgramFile(derived_relations(text, str(file)), description, front)


def derived_relations(text: str, where: str) -> tuple[Derived, ...]:
    """The relations that a program derives, lower strata first."""
    try:
        program = checked_program(text)
    except DatalogError as error:
        place = ", ".join(filter(None, (where, error.where)))
        raise DatalogError(
            error.what, place, error.fix, line=error.line, column=error.column, rule=error.rule
        ) from error
    except Refusal as error:
        place = ", ".join(filter(None, (where, error.position)))
        raise type(error)(error.construct, place, error.reason, error.rewrite) from error
    if not program.clauses:
        raise DatalogError("the program derives nothing", where, "write a rule")
    inputs = {}
    for name, source in source_names(program).items():
        declared = program.relations[name]
        inputs[source.casefold()] = ExpectedColumns(
            source, declared.schema, declared.text, f"{where}, {declared.place}"
        )
    found = []
    for name, query in queries_over_tables(program).items():
        expects = tuple(inputs[read] for read in sorted(relations_named(query) & set(inputs)))
        relation = program.relations[name]
        view = ViewText(
            name,
            text_of(query),
            where,
            columns=relation.schema.ddl,
            is_derived=True,
            expects=expects,
        )
        rules = "\n".join(program.rules_of(name))
        found.append(Derived(view, rules, f"{where}, {relation.place}"))
    return tuple(found)


def refuse_taken(program: ProgramFile, taken: Mapping[str, str]) -> None:
    """`DuplicateName` for a relation whose name something else has; `taken` says where that is."""
    there = {name.casefold(): where for name, where in taken.items()}
    for each in program.relations:
        other = there.get(each.text.name.casefold())
        if other is not None:
            raise DuplicateName(
                f"the relation {each.text.name} has the name of {other}",
                each.where,
                "give one of them another name; an input of the program is declared, and derived "
                "by no rule",
            )


def declared_names(file: Path) -> list[str]:
    """The relations that a file declares, right or wrong; none where it can't be read."""
    try:
        return _DECLARED.findall(read_text(file))
    except UserError:
        return []
