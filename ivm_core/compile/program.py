"""From a SELECT to the program of its ticks: parse, rewrite, analyse, cut.

Spark's analyzer judges names, types and determinism when a view is registered. What it said is
kept with the definition, so that a flow opens, and a fingerprint is made, without Spark.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ivm_core.compile.common_types import with_common_types
from ivm_core.compile.expansion import expand
from ivm_core.compile.first_rows import keep_first_rows
from ivm_core.compile.lifting import lift_unstorable
from ivm_core.compile.limited_groups import limit_groups
from ivm_core.compile.meaning import meaning
from ivm_core.compile.node_keys import NodeKeys
from ivm_core.compile.orders import with_total_orders
from ivm_core.compile.recursion import recursive, with_declared_columns
from ivm_core.compile.rules import optimise
from ivm_core.compile.stages import (
    NOTHING_SHARED,
    SharedNode,
    Stage,
    cut,
    cut_shared,
    physical_names,
    scans,
)
from ivm_core.compile.type_book import Analyser, TypeBook, is_untyped
from ivm_core.model.errors import InternalError, Unsupported, UserError
from ivm_core.model.names import SHARED_PREFIX
from ivm_core.model.schema import Field, Schema, parse_schema
from ivm_core.model.types import has_map
from ivm_core.operators.accumulators import accumulator_for
from ivm_core.operators.window_extent import extent_of
from ivm_core.plan.nodes import (
    CLOCKS,
    Aggregate,
    Filter,
    Generate,
    Join,
    Kept,
    Node,
    Project,
    Repeated,
    UnionAll,
)
from ivm_core.plan.partitioned import STATEFUL, Partitioned, Windowed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ivm_core.model.types import DataType
    from ivm_core.operators.accumulator import Accumulator
    from ivm_core.operators.window_extent import Extent
    from ivm_core.plan.recursion import Rules

PLAN_FORMAT = "3"


@dataclass(frozen=True)
class StageProgram:
    """A stage with the schemas of what it stores."""

    stage: Stage
    output: Schema
    """Columns of the rows that later stages or readers see."""
    state_keys: Schema | None = None
    """Group keys as the state trace stores them."""
    accumulators: tuple[Accumulator, ...] = ()
    rules: Rules | None = None
    """How a view that reads itself, or is read by what it reads, derives its rows."""

    @cached_property
    def extent(self) -> Extent | None:
        """How far a change reaches in the one partition of a window; None where that is open."""
        top = self.stage.top
        if not isinstance(top, Windowed):
            return None
        types = (each.type for each in self.output)
        return extent_of(top, dict(zip(top.columns, types, strict=True)))


@dataclass(frozen=True)
class ViewProgram:
    """Everything that a tick of one view needs to know."""

    name: str
    sql: str
    plan: Node
    stages: tuple[StageProgram, ...]
    reads: tuple[str, ...]
    clocks: tuple[str, ...]
    types: Mapping[str, str] = field(compare=False)
    """What Spark said of inner nodes: DDL by the fingerprint of a node."""
    rendered: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)
    """Statements that were rendered before and what stages reach, by what they were made for."""

    @property
    def rules(self) -> Rules | None:
        """The rules of a recursive view."""
        return self.stages[-1].rules

    @property
    def schema(self) -> Schema:
        """Columns of the view."""
        return self.stages[-1].output

    @cached_property
    def keys(self) -> dict[str, str]:
        """Keys of the nodes that its inner stages keep, by the stage's relation."""
        keys = NodeKeys()
        origins = ((each.stage.relation, each.stage.origin) for each in self.stages)
        return {relation: keys.of(origin) for relation, origin in origins if origin is not None}

    @cached_property
    def shared(self) -> tuple[str, ...]:
        """The shared nodes that its stages read."""
        names = frozenset().union(*(stage.stage.body.relations for stage in self.stages))
        own = {stage.stage.relation for stage in self.stages}
        return tuple(sorted(name for name in names - own if name.startswith(SHARED_PREFIX)))

    @cached_property
    def column_types(self) -> dict[str, dict[str, DataType]]:
        """The book over the nodes of the whole plan: column types by node text."""
        return _booked(self.plan, self.types)

    @cached_property
    def stage_types(self) -> dict[str, dict[str, DataType]]:
        """The same over the nodes of all stages."""
        found: dict[str, dict[str, DataType]] = {}
        for stage in self.stages:
            found |= _booked(stage.stage.body, self.types)
        return found

    @cached_property
    def fields_read(self) -> dict[str, frozenset[str]]:
        """The columns of relations outside of it that its stages name."""
        found: dict[str, set[str]] = {}
        for stage in self.stages:
            for scan in scans(stage.stage.body):
                found.setdefault(scan.relation, set()).update(scan.fields)
        return {name: frozenset(fields) for name, fields in found.items()}

    @cached_property
    def fingerprint(self) -> str:
        """Identity of the view's meaning: equal for SQL that differs only in form."""
        is_shared = self.name.startswith(SHARED_PREFIX)
        means = NodeKeys().of(self.plan) if is_shared else meaning(self.plan)
        content = f"{PLAN_FORMAT}|{means}|{self.schema.ddl}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    @property
    def steps(self) -> tuple[Node, ...]:
        """What each stage computes."""
        return tuple(each.stage.top or each.stage.body for each in self.stages)

    def called(self, name: str) -> ViewProgram:
        """The same program for a view of another name; its inner relations keep theirs."""
        if name == self.name:
            return self
        last = self.stages[-1]
        own = replace(last, stage=replace(last.stage, relation=name))
        return replace(self, name=name, stages=(*self.stages[:-1], own), rendered={})


@dataclass(frozen=True)
class ViewPlan:
    """What a query means, and what its ticks compute, before that is cut into stages."""

    plan: Node
    expanded: Node


def compile_view(
    name: str,
    sql: str,
    parse: Callable[[], Node],
    catalog: Mapping[str, Schema],
    analyser: Analyser | None,
    known: Mapping[str, str] | None = None,
    inner_name: str = "",
) -> ViewProgram:
    """The program of a view; `known` is the type book of an earlier compilation.

    `inner_name` is what its inner relations are called after, if not after the view.
    """
    types = TypeBook(analyser, known or {})
    planned = plan_view(name, parse, catalog, types)
    return view_program(name, sql, planned, catalog, types, inner_name=inner_name)


def plan_view(
    name: str, parse: Callable[[], Node], catalog: Mapping[str, Schema], types: TypeBook
) -> ViewPlan:
    """The plan of a view's query, and its expansion."""
    plan = _typed(parse, catalog, types)
    # before pruning, so that a query that is read twice has one order
    plan = with_total_orders(plan, lambda node: types.types(node, catalog), f"view {name}")
    plan = optimise(plan, catalog)
    types.refuse_random(plan, catalog)
    for node in plan.walk():
        if isinstance(node, Aggregate):
            # what an exact recompute of the whole query needs to know
            types.types(node.input, catalog)
    expanded = expand(keep_first_rows(plan, catalog), lambda node: types.types(node, catalog))
    if expanded is not plan:
        expanded = optimise(expanded, catalog)
    limited = limit_groups(expanded, catalog, lambda node: types.types(node, catalog))
    if limited is not expanded:
        expanded = optimise(limited, catalog)
    return ViewPlan(plan, expanded)


def untied_plan(parse: Callable[[], Node], catalog: Mapping[str, Schema], types: TypeBook) -> Node:
    """The plan of a view's query with what SQL leaves open about order still open."""
    return optimise(_typed(parse, catalog, types), catalog)


def _typed(parse: Callable[[], Node], catalog: Mapping[str, Schema], types: TypeBook) -> Node:
    plan = lift_unstorable(
        parse(),
        lambda node: types.can_be_kept(node, catalog),
        lambda node: types.interval(node, catalog),
    )
    return with_common_types(plan, catalog, types)


def view_program(
    name: str,
    sql: str,
    planned: ViewPlan,
    catalog: Mapping[str, Schema],
    types: TypeBook,
    shared: Mapping[str, SharedNode] = NOTHING_SHARED,
    inner_name: str = "",
) -> ViewProgram:
    """The program of a view that reads shared nodes, by their keys, where it has them."""
    stages = cut(planned.expanded, name, shared, inner_name)
    return _program(name, sql, planned.plan, stages, catalog, types)


def recursive_program(
    name: str,
    sql: str,
    planned: ViewPlan,
    catalog: Mapping[str, Schema],
    types: TypeBook,
    component: tuple[str, ...],
    inner_name: str = "",
) -> ViewProgram:
    """The program of a view that is in a component; the catalog has its declared columns."""
    found, declared = len(planned.plan.columns), len(catalog[name])
    if found != declared:
        raise UserError(
            f"{declared} columns are declared for the {found} of {name}",
            where=f"view {name}",
            fix="declare every column of the SELECT once, in its order",
        )
    plan = with_declared_columns(planned.plan, catalog[name], catalog, types)
    if plan is not planned.plan:
        for node in plan.walk():
            if isinstance(node, Project):  # the casts to what is declared are new
                types.types(node, catalog)
    made = recursive(
        name, plan, component, catalog, lambda node: types.types(node, catalog), inner_name
    )
    rules = made.rules
    body = rules.branches[0] if len(rules.branches) == 1 else UnionAll(rules.branches)
    stages = (*made.stages, Stage(name, body, None, keeps_rows=True))
    program = _program(name, sql, plan, stages, catalog, types)
    _refuse_maps((each.type for each in program.schema), f"view {name}, which reads itself")
    last = replace(program.stages[-1], rules=rules)
    return replace(program, stages=(*program.stages[:-1], last))


def shared_program(
    relation: str,
    key: str,
    sql: str,
    planned: ViewPlan,
    catalog: Mapping[str, Schema],
    types: TypeBook,
    shared: Mapping[str, SharedNode],
) -> ViewProgram:
    """The program of a node that views share, which is in a query of one of them."""
    keys = NodeKeys()
    nodes = (each for each in planned.expanded.walk() if isinstance(each, STATEFUL))
    node = next((each for each in nodes if keys.of(each) == key), None)
    if node is None:
        raise InternalError(f"the query that the shared node {relation} is from doesn't have it")
    others = {each: known for each, known in shared.items() if each != key}
    stages = cut_shared(node, relation, others)
    return _program(relation, sql, node, stages, catalog, types)


def _program(
    name: str,
    sql: str,
    plan: Node,
    stages: tuple[Stage, ...],
    catalog: Mapping[str, Schema],
    types: TypeBook,
) -> ViewProgram:
    programs = []
    inner: dict[str, Schema] = dict(catalog)
    for stage in stages:
        program = _stage_program(stage, inner, types, f"view {name}")
        for node in stage.body.walk():
            if isinstance(node, Join | Filter | Project | UnionAll | Generate | Repeated):
                types.types(node, inner)
        inner[stage.relation] = program.output
        programs.append(program)
    reads = tuple(sorted(plan.relations - set(CLOCKS)))
    clocks = tuple(sorted(plan.relations & set(CLOCKS)))
    return ViewProgram(name, sql, plan, tuple(programs), reads, clocks, dict(types.book))


def _booked(plan: Node, book: Mapping[str, str]) -> dict[str, dict[str, DataType]]:
    result: dict[str, dict[str, DataType]] = {}
    for node in plan.walk():
        ddl = book.get(node.fingerprint)
        if ddl is not None and not is_untyped(ddl):
            known = parse_schema(ddl)
            types = zip(node.columns, known, strict=True)
            result[node.text] = {column: each.type for column, each in types}
    return result


def stage_catalog(
    program: ViewProgram, catalog: Mapping[str, Schema], below: Sequence[ViewProgram] = ()
) -> dict[str, Schema]:
    """The catalog with the program's own inner relations; `below` are the shared nodes."""
    stages = [stage for each in below for stage in each.stages] + list(program.stages[:-1])
    return {**catalog, **{stage.stage.relation: stage.output for stage in stages}}


def _stage_program(
    stage: Stage, catalog: Mapping[str, Schema], types: TypeBook, where: str
) -> StageProgram:
    body = types.types(stage.body, catalog)
    if stage.top is None or isinstance(stage.top, Kept):
        fields = tuple(Field(column, body[column]) for column in stage.columns)
        return StageProgram(stage, Schema(fields, internal=stage.top is not None))
    if isinstance(stage.top, Partitioned):
        found = types.types(stage.top, catalog)
        _refuse_maps((found[name] for name in stage.top.partition), where)
        pairs = zip(physical_names(stage.columns), stage.columns, strict=True)
        stored = tuple(Field(physical, found[column]) for physical, column in pairs)
        return StageProgram(stage, Schema(stored, internal=True))
    aggregate = stage.top
    names = physical_names(aggregate.columns)
    accumulators = tuple(
        accumulator_for(
            call.function,
            None if call.argument is None else body[call.argument],
            physical,
            where,
        )
        for call, physical in zip(aggregate.calls, names[len(aggregate.keys) :], strict=True)
    )
    keys = tuple(
        Field(physical, body[column])
        for physical, (_, column) in zip(names, aggregate.keys, strict=False)
    )
    _refuse_maps((key.type for key in keys), where)
    extremes = (call.argument for call in aggregate.calls if call.function in ("MIN", "MAX"))
    _refuse_maps((body[each] for each in extremes if each is not None), where)
    results = tuple(
        Field(physical, accumulator.result_type)
        for physical, accumulator in zip(names[len(keys) :], accumulators, strict=True)
    )
    state_keys = Schema(keys, internal=True) if keys else None
    output = keys + results or (Field("present", parse_schema("x BOOLEAN").fields[0].type),)
    return StageProgram(stage, Schema(output, internal=True), state_keys, accumulators)


def _refuse_maps(compared: Iterable[DataType], where: str) -> None:
    """Unsupported if values that are compared with one another have a MAP."""
    found = next((each for each in compared if has_map(each)), None)
    if found is not None:
        raise Unsupported(
            f"comparing values of type {found.ddl}",
            position=where,
            reason="GROUP BY, DISTINCT, PARTITION BY, joins and any_value need "
            "an equality or an order, which SQL has for no MAP",
            rewrite="array_sort(map_entries(m)), the entries that you need: m['key'], in a "
            "derived table, or max_by(m, x)",
        )


__all__ = ["Aggregate", "Analyser", "StageProgram", "ViewProgram", "compile_view"]
