"""What there is in a flow by name: schemas, compiled views, the order in which views are run."""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from ivm_core.compile.program import ViewProgram, compile_view
from ivm_core.engine.definitions import ViewDefinition
from ivm_core.frontend.sql import parse_view
from ivm_core.model.errors import DuplicateName, InternalError, UnknownName, Unsupported
from ivm_core.model.names import did_you_mean
from ivm_core.model.schema import Schema, parse_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ivm_core.engine.analysis import SparkAnalyser
    from ivm_core.engine.definitions import SourceDefinition
    from ivm_core.engine.history import History


class Catalog:
    """Names and programs of one flow."""

    def __init__(self, history: History) -> None:
        """Views are compiled when they are first asked for."""
        self._history = history
        self._programs: dict[str, ViewProgram] = {}
        self._drafts: dict[str, ViewDefinition] = {}

    # --- names ---

    @property
    def names(self) -> frozenset[str]:
        """What is declared in the flow's log."""
        return frozenset((*self._history.sources, *self._history.views))

    def stored_name(self, name: str) -> str | None:
        """The name under which a source or view is stored, whatever its case."""
        known = [*self._history.sources, *self._history.views, *self._drafts]
        return next((each for each in known if each.casefold() == name.casefold()), None)

    def declared(self, source: str) -> SourceDefinition | None:
        """The source of that name, whatever its case, if there is one."""
        return self._history.sources.get(self.stored_name(source) or "")

    def refuse_taken(self, name: str) -> None:
        """`DuplicateName` for a name that a source or view has."""
        taken = self.stored_name(name)
        if taken is not None:
            kind = "source" if taken in self._history.sources else "view"
            raise DuplicateName(f"{name} is the name of a {kind} already", where=f"{kind} {taken}")

    def view_name(self, name: str) -> str:
        """The stored name of a view; UnknownName with what there is."""
        return self._name(name, "view", self._history.views)

    def source_name(self, name: str) -> str:
        """The stored name of a source; UnknownName with what there is."""
        return self._name(name, "source", self._history.sources)

    def _name(self, name: str, kind: str, among: Iterable[str]) -> str:
        found = self.stored_name(name) if isinstance(name, str) else None
        if found is None or found not in among:
            there = ", ".join(among) or "none"
            fix = f"{did_you_mean(name, among)}the {kind}s are: {there}"
            raise UnknownName(f"there is no {kind} {name!r}", fix=fix)
        return found

    # --- schemas and programs ---

    def schemas(self) -> dict[str, Schema]:
        """Schemas of sources and views by name."""
        found = {name: source.schema for name, source in self._history.sources.items()}
        for name, view in {**self._history.views, **self._drafts}.items():
            found[name] = parse_schema(view.schema)
        return found

    def program(self, view: str) -> ViewProgram:
        """The compiled view; no Spark is needed for what was registered before."""
        if view not in self._programs:
            definition = self._history.views[view]
            program = self._compile(view, definition.sql, None, definition.types)
            if program.schema.ddl != definition.schema:
                raise InternalError(
                    f"view {view} compiles to ({program.schema.ddl}), "
                    f"it was registered with ({definition.schema})"
                )
            self._programs[view] = program
        return self._programs[view]

    def order(self, views: Iterable[str]) -> list[str]:
        """The views and the views they read, inputs first."""
        ordered: dict[str, None] = {}

        def visit(view: str) -> None:
            if view in ordered:
                return
            for read in self.program(view).reads:
                if read in self._history.views:
                    visit(read)
            ordered[view] = None

        for view in views:
            visit(view)
        return list(ordered)

    def sources_of(self, views: Iterable[str]) -> frozenset[str]:
        """The sources that views read, themselves or through other views."""
        reads = (read for view in self.order(views) for read in self.program(view).reads)
        return frozenset(read for read in reads if read in self._history.sources)

    def means_the_same(self, view: str, sql: str, analyser: SparkAnalyser) -> bool:
        """Whether a text is another way to write a stored view."""
        again = self._compile(view, sql, analyser, {})
        return again.fingerprint == self._history.views[view].fingerprint

    @contextmanager
    def drafting(self) -> Iterator[dict[str, ViewDefinition]]:
        """Views that are drafted within can be read by the next; afterwards they are forgotten."""
        try:
            yield self._drafts
        finally:
            for name in self._drafts:
                if name not in self._history.views:
                    self._programs.pop(name, None)
            self._drafts = {}

    def draft(
        self,
        name: str,
        sql: str,
        analyser: SparkAnalyser,
        functions: Mapping[str, str],
        require: str = "",
    ) -> None:
        """Compile a new view and check that Spark understands its text as we do."""
        asked: list[Schema] = []
        program = self._compile(name, sql, analyser, {}, asked)
        theirs = asked[0]
        ours = program.schema
        same = [f.type for f in theirs] == [f.type for f in ours]
        if not same or [n.lower() for n in theirs.names] != [n.lower() for n in ours.names]:
            raise Unsupported(
                "a construct of this query",
                position=f"view {name}",
                reason=f"it was read as ({ours.ddl}), Spark reads it as ({theirs.ddl})",
                rewrite="name every column with AS, and write the construct in another way",
            )
        self._programs[name] = program
        self._drafts[name] = ViewDefinition(
            name, sql, ours.ddl, program.types, program.fingerprint, functions, require
        )

    def _compile(
        self,
        name: str,
        sql: str,
        analyser: SparkAnalyser | None,
        known: Mapping[str, str],
        asked: list[Schema] | None = None,
    ) -> ViewProgram:
        """The program of a text; `asked` learns what Spark says of it."""
        schemas = self.schemas()

        def judge(reads: tuple[str, ...], given: tuple[str, ...]) -> None:
            if analyser is not None:
                relations = {name: schemas[name] for name in reads}
                found = analyser.original(sql, relations, given)
                if asked is not None:
                    asked.append(found)

        book = dict(known)
        ask = partial(_columns_of, book, analyser, schemas)
        parsed = parse_view(sql, schemas, f"view {name}", judge, ask)
        return compile_view(name, sql, lambda: parsed.plan, schemas, analyser, book)


def _columns_of(
    book: dict[str, str],
    analyser: SparkAnalyser | None,
    schemas: Mapping[str, Schema],
    sql: str,
    reads: tuple[str, ...],
) -> list[tuple[str, str]] | None:
    """The columns of a part of a query, as the book or Spark says; the book learns them."""
    question = f"columns of {sql}"
    if question not in book:
        if analyser is None:
            return None
        found = analyser.columns_of(sql, {name: schemas[name] for name in reads})
        book[question] = json.dumps(found)
    known = json.loads(book[question])
    return None if known is None else [(name, kind) for name, kind in known]
