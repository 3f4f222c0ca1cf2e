"""Declaring a component: views that read each other, all of them or none.

Each needs the columns of all before any can be compiled. They are given, or they are those of the
branches that don't recurse, made wider where a recursive branch gives more.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ivm_core.compile.monotone import refuse_mixed, refuse_other_uses
from ivm_core.engine.definitions import ViewDefinition
from ivm_core.engine.requiring import refuse_unless
from ivm_core.frontend.recursion import (
    begins_with_reads,
    circles,
    named,
    recursive_queries,
    relations_named,
    without_reads,
)
from ivm_core.frontend.sql import parse_statement
from ivm_core.model.errors import InvalidName, UserError
from ivm_core.model.schema import Schema, parse_schema
from ivm_core.operators.sql import text_of
from ivm_core.plan.recursion import Limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ivm_core.engine.core import Engine
    from ivm_core.plan.recursion import Rules

WIDENINGS = 4
"""How often the columns of a recursive branch may make those of the others wider."""


@dataclass(frozen=True)
class Component:
    """Views that read each other, as they are declared."""

    texts: Mapping[str, str]
    require: Mapping[str, str]
    schemas: Mapping[str, str]
    limits: Limits
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the columns, where these are given without types."""
    inside: str = ""
    """The view whose text they are from, if they are common table expressions of it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The views, in the order in which they were given."""
        return tuple(self.texts)


def draft_component(engine: Engine, component: Component) -> None:
    """Draft all views of a component; raises what keeps any from being declared."""
    declared = {
        name: parse_schema(ddl, f"schema of {name}") for name, ddl in component.schemas.items()
    }
    known = dict(declared)
    waiting = [name for name in component.names if name not in known]
    while waiting:
        found = {name: _inferred(engine, component, name, known) for name in waiting}
        new = {name: schema for name, schema in found.items() if schema is not None}
        if not new:
            raise UserError(
                f"the columns of {', '.join(waiting)} can't be told: every branch is recursive",
                where=f"view {waiting[0]}",
                fix=f'give them: schemas={{"{waiting[0]}": "column TYPE, …"}}',
            )
        known |= new
        waiting = [name for name in waiting if name not in known]
    for _ in range(WIDENINGS):
        _promise(engine, component, known)
        wider = {
            name: schema
            for name in component.names
            if name not in declared and (schema := _widened(engine, component, name, known))
        }
        if not wider:
            break
        known |= wider
    else:
        name = next(iter(wider))
        raise UserError(
            f"the types of {name} get wider with every iteration",
            where=f"view {name}",
            fix=f'CAST in the recursive branch, or give schemas={{"{name}": "column TYPE, …"}}',
        )
    rules: dict[str, Rules] = {}
    for name, promised in _promise(engine, component, known).items():
        sql, require = component.texts[name], component.require.get(name, "")
        analyser = engine.analyser(name)
        functions = engine.functions.called_in(sql)
        engine.catalog.draft(
            name, sql, analyser, functions, require, folder=promised.folder, promised=promised
        )
    for name in component.names:
        program = engine.catalog.program(name)
        if program.rules is not None:
            rules[name] = program.rules
        refuse_unless(component.require.get(name, ""), program, engine.catalog.schemas())
    refuse_mixed(rules)
    refuse_other_uses(rules, engine.catalog.schemas())


def _promise(
    engine: Engine, component: Component, schemas: Mapping[str, Schema]
) -> dict[str, ViewDefinition]:
    limits = (component.limits.iterations, component.limits.rows)
    promised = {}
    for name, sql in component.texts.items():
        stored = engine.history.views
        free = engine.history.free_folder(name, for_shadow=name in stored)
        folder = "" if free == name or component.inside else free
        promised[name] = ViewDefinition(
            name,
            sql,
            schemas[name].ddl,
            {},
            "",
            folder=folder,
            component=component.names,
            limits=limits,
            inside=component.inside,
        )
        engine.catalog.promise(promised[name])
    return promised


def _inferred(
    engine: Engine, component: Component, name: str, known: Mapping[str, Schema]
) -> Schema | None:
    """The columns of the branches that read no view of unknown columns; None where all do."""
    unknown = {each.casefold() for each in component.names if each not in known}
    tree = parse_statement(component.texts[name], f"view {name}")
    is_first_recursive = begins_with_reads(tree, unknown)
    kept = without_reads(tree, unknown)
    if kept is None:
        return None
    schemas = {**engine.catalog.schemas(), **known}
    spelled = {each.casefold(): each for each in schemas}
    reads = {spelled[n] for n in relations_named(kept) if n in spelled}
    analyser = engine.analyser(name)
    columns = component.columns.get(name, ())
    try:
        text = text_of(named(kept, columns))
        found = analyser.original(text, {each: schemas[each] for each in reads})
    except InvalidName as error:
        if not is_first_recursive:
            raise
        raise InvalidName(
            f"the first branch of {name} is recursive, so the first that is not names the "
            f"columns: {error.what}",
            where=f"view {name}",
            fix="put a branch first that doesn't read it, and name its columns with AS",
        ) from error
    return _renamed(found, columns, name)


def _renamed(schema: Schema, columns: tuple[str, ...], name: str) -> Schema:
    if not columns:
        return schema
    if len(columns) != len(schema.fields):
        raise UserError(
            f"{len(columns)} column names for the {len(schema.fields)} columns of {name}",
            where=f"view {name}",
            fix="name every column once",
        )
    named = zip(schema, columns, strict=True)
    return Schema(tuple(replace(each, name=column) for each, column in named))


def _widened(
    engine: Engine, component: Component, name: str, known: Mapping[str, Schema]
) -> Schema | None:
    """The columns that a view's whole query gives, where these are others than promised."""
    schemas = {**engine.catalog.schemas(), **known}
    spelled = {each.casefold(): each for each in schemas}
    sql = component.texts[name]
    tree = parse_statement(sql, f"view {name}")
    reads = {spelled[n] for n in relations_named(tree) if n in spelled}
    if engine.functions.called_in(sql):
        return None
    found = engine.analyser(name).original(sql, {each: schemas[each] for each in reads})
    same = [each.type for each in found] == [each.type for each in known[name]]
    return None if same else _renamed(found, tuple(known[name].names), name)


def draft_inner(
    engine: Engine,
    view: str,
    sql: str,
    known: Iterable[str] | None = None,
    limits: Limits | None = None,
) -> dict[str, str]:
    """Draft the recursive common table expressions of a view's text as views inside of it.

    Gives back which expression has become which view: new ones, or those `known` in their order.
    They go as far as the usual limits where none are given.
    """
    where = f"view {view}"
    tree = parse_statement(sql, where)
    groups = circles(tree)
    found = [name for group in groups for name in group]
    fresh = [engine.history.free_folder(f"{view}.{name}") for name in found]
    names = dict(zip(found, fresh if known is None else known, strict=True))
    queries = recursive_queries(tree, names, where)
    for group in groups:
        own = {names[name]: queries[names[name]] for name in group}
        draft_component(
            engine,
            Component(
                {name: query.sql for name, query in own.items()},
                {},
                {},
                limits or Limits(),
                {name: query.columns for name, query in own.items() if query.columns},
                view,
            ),
        )
    return names


def same_inner(engine: Engine, view: str, sql: str) -> dict[str, str] | None:
    """Which recursive expression of a text is which view inside of a stored one.

    None where the text has others than the stored one, or they mean something else.
    """
    catalog, views = engine.catalog, engine.history.views
    known = views[view].recursions
    found = [name for group in circles(parse_statement(sql, f"view {view}")) for name in group]
    if len(found) != len(known):
        return None
    if not found:
        return {}
    inner = [known[n] for n in found] if set(found) == set(known) else list(known.values())
    before = {name: catalog.program(name).fingerprint for name in inner}
    with catalog.drafting():
        names = draft_inner(engine, view, sql, inner)
        for name in inner:
            is_same = (
                catalog.program(name).fingerprint == before[name]
                and catalog.definition(name).component == views[name].component
                and catalog.definition(name).functions == views[name].functions
            )
            if not is_same:
                return None
    return names
