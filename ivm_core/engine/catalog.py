"""What there is in a flow by name: schemas, compiled views, the order in which views are run."""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from ivm_core.compile.program import (
    ViewPlan,
    ViewProgram,
    plan_view,
    shared_program,
    view_program,
)
from ivm_core.compile.stages import SharedNode
from ivm_core.compile.type_book import TypeBook
from ivm_core.engine.definitions import SharedDefinition, ViewDefinition
from ivm_core.frontend.sql import parse_view
from ivm_core.model.errors import DuplicateName, InternalError, UnknownName, Unsupported
from ivm_core.model.names import SHARED_PREFIX, did_you_mean
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
        self._programs: dict[str, tuple[ViewDefinition | SharedDefinition, ViewProgram]] = {}
        self._plans: dict[str, ViewPlan] = {}
        self._drafts: dict[str, ViewDefinition] = {}
        self._shared_drafts: dict[str, SharedDefinition] = {}

    # --- names ---

    @property
    def names(self) -> frozenset[str]:
        """What is declared in the flow's log."""
        history = self._history
        return frozenset((*history.sources, *history.views, *history.shared))

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
        """Schemas of sources and views by name: what a query can read."""
        found = {name: source.schema for name, source in self._history.sources.items()}
        for name, view in {**self._history.views, **self._drafts}.items():
            found[name] = parse_schema(view.schema)
        return found

    def relations(self) -> dict[str, Schema]:
        """The same with the shared nodes: what the steps of a view can read."""
        shared = self._shared()
        return self.schemas() | {name: parse_schema(each.schema) for name, each in shared.items()}

    def program(self, name: str) -> ViewProgram:
        """The compiled view or shared node; no Spark is needed for what was registered before."""
        definition = self._shared().get(name) or self.definition(name)
        known = self._programs.get(name)
        if known is None or (known[0] is not definition and known[0] != definition):
            is_view = isinstance(definition, ViewDefinition)
            compiled = self.compile_view if is_view else self.compile_shared
            sql, shared, types = definition.sql, definition.shared, definition.types
            program = compiled(name, sql, shared, None, types)
            if program.schema.ddl != definition.schema:
                raise InternalError(
                    f"{name} compiles to ({program.schema.ddl}), "
                    f"it was registered with ({definition.schema})"
                )
            known = (definition, program)
        self._programs[name] = (definition, known[1])
        return known[1]

    def definition(self, view: str) -> ViewDefinition:
        """What is stored of a view, or will be."""
        return self._drafts.get(view) or self._history.views[view]

    def below(self, view: str) -> list[ViewProgram]:
        """The shared nodes that a view reads, itself or through another one, inputs first."""
        ordered: dict[str, ViewProgram] = {}

        def visit(name: str) -> None:
            for each in self.program(name).shared:
                if each not in ordered:
                    visit(each)
                    ordered[each] = self.program(each)

        visit(view)
        return list(ordered.values())

    def readers(self, shared: str) -> list[str]:
        """The views that read a shared node, themselves or through another one."""
        nodes = self._history.shared

        def reads(names: tuple[str, ...]) -> bool:
            return any(each == shared or reads(nodes[each].shared) for each in names)

        return [name for name, view in self._history.views.items() if reads(view.shared)]

    def order(self, views: Iterable[str]) -> list[str]:
        """The views and the views they read, inputs first."""
        return [name for name in self.schedule(views) if name in self._history.views]

    def schedule(self, views: Iterable[str]) -> list[str]:
        """The same with the shared nodes that they read."""
        ordered: dict[str, None] = {}

        def visit(name: str) -> None:
            if name in ordered:
                return
            program = self.program(name)
            for read in (*program.reads, *program.shared):
                if read not in self._history.sources:
                    visit(read)
            ordered[name] = None

        for view in views:
            visit(view)
        return list(ordered)

    def sources_of(self, views: Iterable[str]) -> frozenset[str]:
        """The sources that views read, themselves or through other views."""
        reads = (read for view in self.order(views) for read in self.program(view).reads)
        return frozenset(read for read in reads if read in self._history.sources)

    def means_the_same(self, view: str, sql: str, analyser: SparkAnalyser) -> bool:
        """Whether a text is another way to write a stored view."""
        again = self.compile_view(view, sql, (), analyser, {})
        return again.fingerprint == self._history.views[view].fingerprint

    @contextmanager
    def drafting(self) -> Iterator[dict[str, ViewDefinition]]:
        """Views that are drafted within can be read by the next; afterwards they are forgotten."""
        try:
            yield self._drafts
        finally:
            for name in (*self._drafts, *self._shared_drafts):
                if name not in self._history.views and name not in self._history.shared:
                    self._programs.pop(name, None)
            self._drafts = {}
            self._shared_drafts = {}
            self._plans = {}

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
        program = self.compile_view(name, sql, (), analyser, {}, asked)
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
        fingerprint = program.fingerprint
        self.redraft(
            program,
            ViewDefinition(name, sql, ours.ddl, program.types, fingerprint, functions, require),
        )

    def redraft(self, program: ViewProgram, definition: ViewDefinition | SharedDefinition) -> None:
        """Take the program, and what is stored of it, of a view or node that shares nodes."""
        self._programs[program.name] = (definition, program)
        if isinstance(definition, SharedDefinition):
            self._shared_drafts[definition.name] = definition
        else:
            self._drafts[definition.name] = definition

    def compile_view(
        self,
        name: str,
        sql: str,
        shared: Iterable[str],
        analyser: SparkAnalyser | None,
        known: Mapping[str, str],
        asked: list[Schema] | None = None,
    ) -> ViewProgram:
        """The program of a view over these shared nodes; `asked` learns what Spark says of it."""
        types = TypeBook(analyser, known)
        planned = self._planned(name, sql, analyser, types, asked)
        return view_program(name, sql, planned, self.relations(), types, self._nodes(shared))

    def compile_shared(
        self,
        name: str,
        sql: str,
        shared: Iterable[str],
        analyser: SparkAnalyser | None,
        known: Mapping[str, str],
    ) -> ViewProgram:
        """The program of a shared node of a query, over other shared nodes."""
        types = TypeBook(analyser, known)
        planned = self._planned(name, sql, analyser, types)
        return shared_program(name, sql, planned, self.relations(), types, self._nodes(shared))

    def _planned(
        self,
        name: str,
        sql: str,
        analyser: SparkAnalyser | None,
        types: TypeBook,
        asked: list[Schema] | None = None,
    ) -> ViewPlan:
        """The plan of a text, made once; anew where its types are still to be asked for."""
        if sql not in self._plans or not types.book:
            schemas = self.schemas()

            def judge(reads: tuple[str, ...], given: tuple[str, ...]) -> None:
                if analyser is not None:
                    relations = {name: schemas[name] for name in reads}
                    found = analyser.original(sql, relations, given)
                    if asked is not None:
                        asked.append(found)

            ask = partial(_columns_of, types.book, analyser, schemas)
            parsed = parse_view(sql, schemas, f"view {name}", judge, ask)
            self._plans[sql] = plan_view(name, lambda: parsed.plan, schemas, types)
        return self._plans[sql]

    def _shared(self) -> dict[str, SharedDefinition]:
        return {**self._history.shared, **self._shared_drafts}

    def _nodes(self, names: Iterable[str]) -> dict[str, SharedNode]:
        known = {name: parse_schema(self._shared()[name].schema) for name in names}
        return {
            name.removeprefix(SHARED_PREFIX): SharedNode(name, schema.names)
            for name, schema in known.items()
        }


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
