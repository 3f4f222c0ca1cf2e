"""What there is in a flow by name: schemas, compiled views, the order in which views are run."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from ivm_core.compile.program import ViewProgram, compile_view
from ivm_core.engine.definitions import ViewDefinition
from ivm_core.frontend.sql import parse_view
from ivm_core.model.errors import (
    DuplicateName,
    InternalError,
    UnknownName,
    Unsupported,
    UserError,
)
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
        self._programs: dict[str, tuple[ViewDefinition, ViewProgram]] = {}
        self._drafts: dict[str, ViewDefinition] = {}
        self._columns: dict[str, Schema] = {}

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
            gone = self._history.gone.get(name, "") if isinstance(name, str) else ""
            fix = f"{gone}{did_you_mean(name, among)}the {kind}s are: {there}"
            raise UnknownName(f"there is no {kind} {name!r}", fix=fix)
        return found

    # --- schemas and programs ---

    def schemas(self) -> dict[str, Schema]:
        """Schemas of sources and views by name."""
        found = {name: source.schema for name, source in self._history.sources.items()}
        found |= self._columns
        for name, view in {**self._history.views, **self._drafts}.items():
            found[name] = parse_schema(view.schema)
        return found

    def program(self, view: str) -> ViewProgram:
        """The compiled view; no Spark is needed for what was registered before."""
        definition = self._drafts.get(view) or self._history.views[view]
        known = self._programs.get(view)
        if known is not None and known[0] is definition:
            return known[1]
        if known is not None and known[0] == definition:
            program = known[1]
        else:
            program = self.compiled(definition)
        self._programs[view] = (definition, program)
        return program

    def compiled(self, definition: ViewDefinition) -> ViewProgram:
        """A definition that was registered, over the relations as they are defined now."""
        view = definition.shadow_of or definition.name
        program = self._compile(
            view, definition.sql, None, definition.types, definition.kept_in
        ).called(definition.name)
        if program.schema.ddl != definition.schema:
            raise InternalError(
                f"view {definition.name} compiles to ({program.schema.ddl}), "
                f"it was registered with ({definition.schema})"
            )
        return program

    def order(self, views: Iterable[str]) -> list[str]:
        """The views and the views they read, inputs first; `UserError` for a circle."""
        ordered: dict[str, None] = {}
        open_views: list[str] = []

        def visit(view: str) -> None:
            if view in ordered:
                return
            if view in open_views:
                circle = " reads ".join((*open_views[open_views.index(view) :], view))
                raise UserError(
                    f"views read each other in a circle: {circle}",
                    where=f"view {view}",
                    fix="let one of them read something else",
                )
            open_views.append(view)
            for read in self.program(view).reads:
                if read in self._history.views:
                    visit(read)
            open_views.pop()
            ordered[view] = None

        for view in views:
            visit(view)
        return list(ordered)

    def readers(self, view: str) -> list[str]:
        """The views that read a view themselves."""
        return [each for each in self._history.views if view in self.program(each).reads]

    def downstream(self, views: Iterable[str]) -> list[str]:
        """The views and all that read them, themselves or through other views."""
        found: dict[str, None] = {}
        waiting = list(views)
        while waiting:
            view = waiting.pop(0)
            if view not in found:
                found[view] = None
                waiting += self.readers(view)
        return list(found)

    def sources_of(self, views: Iterable[str]) -> frozenset[str]:
        """The sources that views read, themselves or through other views."""
        reads = (read for view in self.order(views) for read in self.program(view).reads)
        return frozenset(read for read in reads if read in self._history.sources)

    def means_the_same(self, view: str, sql: str, analyser: SparkAnalyser) -> bool:
        """Whether a text is another way to write a stored view."""
        again = self._compile(view, sql, analyser, {}, hidden=view)
        return again.fingerprint == self.program(view).fingerprint

    @contextmanager
    def drafting(
        self,
        drafts: Mapping[str, ViewDefinition] | None = None,
        columns: Mapping[str, Schema] | None = None,
    ) -> Iterator[dict[str, ViewDefinition]]:
        """Views that are drafted within can be read by the next; afterwards they are forgotten.

        `columns` are those that sources have within.
        """
        outer = self._drafts
        self._drafts = {**outer, **(drafts or {})}
        self._columns = dict(columns or {})
        try:
            yield self._drafts
        finally:
            for name in self._drafts:
                if name not in self._history.views:
                    self._programs.pop(name, None)
            self._drafts, self._columns = outer, {}

    def draft(
        self,
        name: str,
        sql: str,
        analyser: SparkAnalyser,
        functions: Mapping[str, str],
        require: str = "",
        *,
        folder: str = "",
    ) -> ViewDefinition:
        """Compile a view's definition and check that Spark understands its text as we do.

        `folder` is where it is kept, and what its inner nodes are called after, if not its name.
        """
        program = self._compile(name, sql, analyser, {}, folder, hidden=name)
        theirs = self._ask_spark(sql, analyser, program.reads)
        ours = program.schema
        same = [f.type for f in theirs] == [f.type for f in ours]
        if not same or [n.lower() for n in theirs.names] != [n.lower() for n in ours.names]:
            raise Unsupported(
                "a construct of this query",
                position=f"view {name}",
                reason=f"it was read as ({ours.ddl}), Spark reads it as ({theirs.ddl})",
                rewrite="name every column with AS, and write the construct in another way",
            )
        definition = ViewDefinition(
            name, sql, ours.ddl, program.types, program.fingerprint, functions, require, folder
        )
        self._programs[name] = (definition, program)
        self._drafts[name] = definition
        return definition

    def again(self, view: str, analyser: SparkAnalyser, sql: str | None = None) -> ViewProgram:
        """A stored view, or another text of it, compiled over the drafted relations."""
        definition = self._history.views[view]
        name = definition.shadow_of or view
        text = definition.sql if sql is None else sql
        program = self._compile(name, text, analyser, {}, definition.kept_in, hidden=name)
        self._ask_spark(text, analyser, program.reads)
        return program.called(view)

    def _compile(
        self,
        name: str,
        sql: str,
        analyser: SparkAnalyser | None,
        known: Mapping[str, str],
        inner_name: str = "",
        hidden: str = "",
    ) -> ViewProgram:
        """`hidden` is a view that the text can't read."""
        schemas = self.schemas()
        for each, view in self._history.views.items():
            if view.shadow_of or each == hidden:
                del schemas[each]
        judge = None if analyser is None else partial(self._ask_spark, sql, analyser)
        parsed = parse_view(sql, schemas, f"view {name}", judge)
        return compile_view(name, sql, lambda: parsed.plan, schemas, analyser, known, inner_name)

    def _ask_spark(self, sql: str, analyser: SparkAnalyser, reads: tuple[str, ...]) -> Schema:
        """The columns of the user's own text; its errors are Spark's."""
        schemas = self.schemas()
        return analyser.original(sql, {name: schemas[name] for name in reads})
