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
    recursive_program,
    shared_program,
    untied_plan,
    view_program,
)
from ivm_core.compile.stages import SharedNode
from ivm_core.compile.type_book import TypeBook, UnknownTypes
from ivm_core.engine.definitions import SharedDefinition, ViewDefinition
from ivm_core.frontend.sql import parse_view, too_deep
from ivm_core.frontend.sql_functions import SqlFunction
from ivm_core.model.errors import (
    DuplicateName,
    InternalError,
    OtherPlan,
    UnknownName,
    Unsupported,
    UserError,
)
from ivm_core.model.names import did_you_mean
from ivm_core.model.schema import Schema, parse_schema
from ivm_core.plan.lineage import row_key
from ivm_core.plan.recursion import Limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ivm_core.engine.analysis import SparkAnalyser
    from ivm_core.engine.definitions import SourceDefinition
    from ivm_core.engine.history import History
    from ivm_core.frontend.unnamed import Given
    from ivm_core.plan.nodes import Node


class Catalog:
    """Names and programs of one flow."""

    def __init__(self, history: History) -> None:
        """Views are compiled when they are first asked for."""
        self._history = history
        self._programs: dict[str, tuple[ViewDefinition | SharedDefinition, ViewProgram]] = {}
        self._plans: dict[tuple[str, ...], tuple[dict[str, Schema | None], ViewPlan]] = {}
        self._drafts: dict[str, ViewDefinition] = {}
        self._shared_drafts: dict[str, SharedDefinition] = {}
        self._columns: dict[str, Schema] = {}

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
            gone = self._history.gone.get(name, "") if isinstance(name, str) else ""
            fix = f"{gone}{did_you_mean(name, among)}the {kind}s are: {there}"
            raise UnknownName(f"there is no {kind} {name!r}", fix=fix)
        return found

    # --- schemas and programs ---

    def schemas(self) -> dict[str, Schema]:
        """Schemas of sources and views by name: what a query can read."""
        found = {name: source.schema for name, source in self._history.sources.items()}
        found |= self._columns
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
        if known is not None and known[0] is definition:
            return known[1]
        if known is not None and known[0] == definition:
            program = known[1]
        else:
            program = self.compiled(definition)
        self._programs[name] = (definition, program)
        return program

    def row_key(self, program: ViewProgram) -> tuple[str, ...] | None:
        """Columns that tell the rows of a view apart; None where none are known to."""
        sources = self._history.sources.items()
        return row_key(program.plan, {name: source.primary_key for name, source in sources})

    def compiled(self, definition: ViewDefinition | SharedDefinition) -> ViewProgram:
        """What was registered, over the relations as they are defined now.

        `OtherPlan` where that has other nodes now than those that were kept.
        """
        try:
            program = self._compiled(definition)
        except UnknownTypes as error:
            raise _other_plan(definition) from error
        if isinstance(definition, SharedDefinition):
            return program
        if program.fingerprint != definition.fingerprint:
            raise _other_plan(definition)
        return program

    def _compiled(self, definition: ViewDefinition | SharedDefinition) -> ViewProgram:
        if isinstance(definition, SharedDefinition):
            program = self.compile_shared(definition, None)
        else:
            program = self.compile_view(
                definition.shadow_of or definition.name,
                definition.sql,
                definition.shared,
                None,
                definition.types,
                definition.kept_in,
                functions=definition.functions,
                component=definition.component,
                recursions=definition.recursions,
                columns=definition.known_columns | self._next_columns(definition),
            ).called(definition.name)
        if program.schema.ddl != definition.schema:
            raise InternalError(
                f"{definition.name} compiles to ({program.schema.ddl}), "
                f"it was registered with ({definition.schema})"
            )
        return program

    def _next_columns(self, definition: ViewDefinition) -> dict[str, Schema]:
        """What a next definition reads of its own component: the others' next definitions."""
        if not definition.shadow_of:
            return {}
        views = [v for v in self._history.views.values() if v.shadow_of in definition.component]
        return {view.shadow_of: parse_schema(view.schema) for view in views}

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

    def sharers(self, shared: str) -> list[str]:
        """The views that read a shared node, themselves or through another one; else none."""
        nodes = self._history.shared
        if shared not in nodes:
            return []

        def reads(names: tuple[str, ...]) -> bool:
            return any(each == shared or reads(nodes[each].shared) for each in names)

        return [name for name, view in self._history.views.items() if reads(view.shared)]

    def order(self, views: Iterable[str]) -> list[str]:
        """The views and the views they read, inputs first; `UserError` for a circle."""
        return [name for name in self.schedule(views) if name not in self._shared()]

    def component(self, name: str) -> tuple[str, ...]:
        """The views that recursion ties to one, itself among them; it alone for most."""
        if name in self._shared():
            return (name,)
        return self.definition(name).component or (name,)

    def schedule(self, views: Iterable[str]) -> list[str]:
        """The same with the shared nodes that they read; a component's views stand together."""
        ordered: dict[str, None] = {}
        open_views: list[str] = []

        def visit(name: str) -> None:
            if name in ordered:
                return
            if name in open_views:
                circle = " reads ".join((*open_views[open_views.index(name) :], name))
                raise UserError(
                    f"views read each other in a circle: {circle}",
                    where=f"view {name}",
                    fix="let one of them read something else",
                )
            open_views.append(name)
            for read in self.inputs(name):
                if read not in self._history.sources:
                    visit(read)
            open_views.pop()
            ordered.update(dict.fromkeys(self.component(name)))

        for view in views:
            visit(view)
        return list(ordered)

    def is_recursive(self, name: str) -> bool:
        """Whether a view is in a component."""
        return name not in self._shared() and bool(self.definition(name).component)

    def limits(self, name: str) -> Limits:
        """How far a tick of the component that a view is in may go."""
        return Limits(*self.definition(name).limits)

    def inputs(self, name: str) -> tuple[str, ...]:
        """What a view, or a component that it is in, reads besides itself."""
        members = self.component(name)
        programs = [self.program(member) for member in members]
        reads = [read for each in programs for read in (*each.reads, *each.shared)]
        return tuple(dict.fromkeys(read for read in reads if read not in members))

    def readers(self, view: str) -> list[str]:
        """The other views that read a view themselves."""
        views = self._history.views
        return [each for each in views if each != view and view in self.program(each).reads]

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

    def means_the_same(
        self, view: str, sql: str, analyser: SparkAnalyser, functions: Mapping[str, str]
    ) -> bool:
        """Whether a text, given the functions that it calls, is another way to write a view."""
        definition = self.definition(view)

        def fingerprint(columns: Mapping[str, Schema]) -> str:
            return self.compile_view(
                view,
                sql,
                (),
                analyser,
                {},
                hidden=view,
                functions=functions,
                component=definition.component,
                columns=columns,
            ).fingerprint

        stored = self.program(view).fingerprint
        if fingerprint({}) == stored:
            return True
        try:
            return bool(definition.over) and fingerprint(definition.known_columns) == stored
        except UnknownName:  # the text reads a column that the view doesn't know
            return False

    @contextmanager
    def drafting(
        self,
        drafts: Mapping[str, ViewDefinition] | None = None,
        columns: Mapping[str, Schema] | None = None,
    ) -> Iterator[dict[str, ViewDefinition]]:
        """Views that are drafted within can be read by the next; afterwards they are forgotten.

        `columns` are those that sources have within.
        """
        outer, outer_shared = self._drafts, self._shared_drafts
        self._drafts = {**outer, **(drafts or {})}
        self._shared_drafts = dict(outer_shared)
        self._columns = dict(columns or {})
        try:
            yield self._drafts
        finally:
            for name in (*self._drafts, *self._shared_drafts):
                if name not in self._history.views and name not in self._history.shared:
                    self._programs.pop(name, None)
            self._drafts, self._columns = outer, {}
            self._shared_drafts = outer_shared
            self._plans = {}

    def draft(
        self,
        name: str,
        sql: str,
        analyser: SparkAnalyser,
        functions: Mapping[str, str],
        require: str = "",
        *,
        folder: str = "",
        promised: ViewDefinition | None = None,
        recursions: Mapping[str, str] | None = None,
        over: Mapping[str, str] | None = None,
    ) -> ViewDefinition:
        """Compile a view's definition and check that Spark understands its text as we do.

        `folder` is where it is kept, and what its inner nodes are called after, if not its name.
        One that is in a component is `promised` by then, with its columns. `over` has the columns
        of sources that it knows, where these have others by now.
        """
        asked: list[Schema] = []
        program = self.compile_view(
            name,
            sql,
            (),
            analyser,
            {},
            folder,
            hidden=name,
            asked=asked,
            functions=functions,
            component=promised.component if promised is not None else (),
            recursions=recursions,
            columns={source: parse_schema(ddl) for source, ddl in (over or {}).items()},
        )
        theirs = program.schema if promised is not None else asked[0]
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
            name,
            sql,
            ours.ddl,
            program.types,
            program.fingerprint,
            functions,
            require,
            folder=folder,
            component=promised.component if promised is not None else (),
            limits=promised.limits if promised is not None else (),
            recursions=recursions or {},
            inside=promised.inside if promised is not None else "",
            over=over or {},
        )
        self._programs[name] = (definition, program)
        self._drafts[name] = definition
        return definition

    def promise(self, definition: ViewDefinition) -> None:
        """Let drafts read a view of which only the columns are known yet."""
        self._drafts[definition.name] = definition

    def again(
        self,
        view: str,
        analyser: SparkAnalyser,
        sql: str | None = None,
        *,
        component: tuple[str, ...] | None = None,
        recursions: Mapping[str, str] | None = None,
    ) -> ViewProgram:
        """A stored view, or another text of it, compiled over the drafted relations.

        A source whose columns are drafted has them all.

        `component` and `recursions` are its own where they aren't given.
        """
        definition = self._history.views[view]
        name = definition.shadow_of or view
        text = definition.sql if sql is None else sql
        shared, inner_name = definition.shared, definition.kept_in
        functions = definition.functions
        program = self.compile_view(
            name,
            text,
            shared,
            analyser,
            {},
            inner_name,
            hidden=name,
            functions=functions,
            component=definition.component if component is None else component,
            recursions=definition.recursions if recursions is None else recursions,
            columns=self._known_columns(definition),
        )
        return program.called(view)

    def differs_in_ties(self, view: str, analyser: SparkAnalyser) -> bool:
        """Whether the drafted relations change a stored view only in what breaks its ties.

        Then it reads none of their new columns, so rows that its own order leaves tied are the
        same to it: with that order it still means what its text says.
        """
        definition, history = self._history.views[view], self._history
        if definition.component:
            return False
        stored = {name: source.schema for name, source in history.sources.items()}
        stored |= {name: parse_schema(each.schema) for name, each in history.views.items()}
        before = self._untied(definition, analyser, stored | definition.known_columns)
        after = self._untied(definition, analyser, self._known_columns(definition))
        return before.text == after.text

    def _untied(
        self, definition: ViewDefinition, analyser: SparkAnalyser, columns: Mapping[str, Schema]
    ) -> Node:
        name = definition.shadow_of or definition.name
        schemas = self._readable(name) | dict(columns)
        types = TypeBook(analyser, {}, f"view {name}")
        ask = partial(_columns_of, types.book, analyser, schemas)
        in_sql = _in_sql(definition.functions)
        parsed = parse_view(
            definition.sql, schemas, f"view {name}", None, ask, in_sql, definition.recursions
        )
        return untied_plan(lambda: parsed.plan, schemas, types)

    def _known_columns(self, definition: ViewDefinition) -> dict[str, Schema]:
        known = definition.known_columns
        return {name: each for name, each in known.items() if name not in self._columns}

    def redraft(self, program: ViewProgram, definition: ViewDefinition | SharedDefinition) -> None:
        """Take the program, and what is stored of it, of a view or node that shares nodes."""
        self._programs[definition.name] = (definition, program)
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
        inner_name: str = "",
        hidden: str = "",
        asked: list[Schema] | None = None,
        functions: Mapping[str, str] | None = None,
        component: tuple[str, ...] = (),
        recursions: Mapping[str, str] | None = None,
        columns: Mapping[str, Schema] | None = None,
    ) -> ViewProgram:
        """The program of a view over these shared nodes; `hidden` is a view that it can't read.

        `asked` learns what Spark says of the text's own columns. `functions` are the registered
        ones that the text calls, with their fingerprints. A view in a `component` reads itself.
        `columns` are those of views that have others than the catalog says.
        """
        types = TypeBook(analyser, known, f"view {name}")
        schemas = self._readable("" if component else hidden) | dict(columns or {})
        if recursions is None:
            stored = self._drafts.get(name) or self._history.views.get(name)
            recursions = {} if stored is None else stored.recursions
        try:
            planned = self._planned(
                name, sql, schemas, analyser, types, functions or {}, asked, recursions
            )
            relations = self.relations() | schemas
            if component:
                return recursive_program(
                    name, sql, planned, relations, types, component, inner_name
                )
            nodes = self._nodes(shared)
            return view_program(name, sql, planned, relations, types, nodes, inner_name)
        except RecursionError as error:
            raise too_deep(f"view {name}") from error

    def compile_shared(self, node: SharedDefinition, analyser: SparkAnalyser | None) -> ViewProgram:
        """The program of a shared node of a query, over other shared nodes."""
        types = TypeBook(analyser, node.types)
        schemas = self._readable()
        schemas |= {name: parse_schema(columns) for name, columns in node.over.items()}
        planned = self._planned(node.name, node.sql, schemas, analyser, types, node.functions)
        relations = self.relations() | schemas
        nodes = self._nodes(node.shared)
        return shared_program(node.name, node.key, node.sql, planned, relations, types, nodes)

    def _readable(self, hidden: str = "") -> dict[str, Schema]:
        """What a text can read: no next definition of a view, and not the hidden view."""
        schemas = self.schemas()
        for each, view in self._history.views.items():
            if view.shadow_of or each == hidden:
                schemas.pop(each, None)
        return schemas

    def _planned(
        self,
        name: str,
        sql: str,
        schemas: Mapping[str, Schema],
        analyser: SparkAnalyser | None,
        types: TypeBook,
        functions: Mapping[str, str],
        asked: list[Schema] | None = None,
        recursions: Mapping[str, str] | None = None,
    ) -> ViewPlan:
        """The plan of a text, made once; anew where its types are still to be asked for."""
        named = (*sorted(functions.items()), *sorted((recursions or {}).items()))
        key = (sql, *(part for each in named for part in each))
        over, known = self._plans.get(key, ({}, None))
        is_same = all(schemas.get(each) == schema for each, schema in over.items())
        if known is None or not types.book or not is_same:

            def judge(text: str, reads: tuple[str, ...], given: Given) -> None:
                if analyser is not None:
                    relations = {name: schemas[name] for name in reads}
                    found = analyser.original(text, relations, given)
                    if asked is not None:
                        asked.append(found)

            ask = partial(_columns_of, types.book, analyser, schemas)
            in_sql = _in_sql(functions)
            plan = parse_view(sql, schemas, f"view {name}", judge, ask, in_sql, recursions).plan
            known = plan_view(name, lambda: plan, schemas, types)
            over = {each: schemas.get(each) for each in plan.relations}
            self._plans[key] = (over, known)
        return known

    def _shared(self) -> dict[str, SharedDefinition]:
        return {**self._history.shared, **self._shared_drafts}

    def shared(self, name: str) -> SharedDefinition:
        """What is stored of a shared node, or will be."""
        return self._shared()[name]

    def _nodes(self, names: Iterable[str]) -> dict[str, SharedNode]:
        nodes = [self.shared(name) for name in names]
        return {node.key: SharedNode(node.name, parse_schema(node.schema).names) for node in nodes}


def _in_sql(functions: Mapping[str, str]) -> dict[str, SqlFunction]:
    """Those of the functions that are written in SQL."""
    known = {name: SqlFunction.of(name, fingerprint) for name, fingerprint in functions.items()}
    return {name: function for name, function in known.items() if function is not None}


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


def _other_plan(definition: ViewDefinition | SharedDefinition) -> OtherPlan:
    return OtherPlan(
        "another version of Tideview has registered it, which kept other nodes for it",
        where=f"view {definition.name}",
    )
