"""From a SELECT to the program of its ticks: parse, rewrite, analyse, cut.

Spark's analyzer judges names, types and determinism when a view is registered. What it said is
kept with the definition, so that a flow opens, and a fingerprint is made, without Spark.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ivm_core.compile.expansion import expand
from ivm_core.compile.meaning import meaning
from ivm_core.compile.orders import with_total_orders
from ivm_core.compile.rules import optimise
from ivm_core.compile.stages import Stage, cut, physical_names
from ivm_core.compile.type_book import UNTYPED, Analyser, TypeBook
from ivm_core.model.errors import Unsupported
from ivm_core.model.schema import Field, Schema, parse_schema
from ivm_core.operators.accumulators import accumulator_for
from ivm_core.operators.sql import column_scalar, scalar_of, tree_of
from ivm_core.plan.nodes import (
    CLOCKS,
    Aggregate,
    Distinct,
    Filter,
    Generate,
    Join,
    Kept,
    Node,
    Project,
    Repeated,
    SetOperation,
    UnionAll,
)
from ivm_core.plan.partitioned import Partitioned
from ivm_core.plan.rewriting import rewrite

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ivm_core.model.types import DataType
    from ivm_core.operators.accumulator import Accumulator
    from ivm_core.plan.scalar import Scalar

PLAN_FORMAT = "2"


@dataclass(frozen=True)
class StageProgram:
    """A stage with the schemas of what it stores."""

    stage: Stage
    output: Schema
    """Columns of the rows that later stages or readers see."""
    state_keys: Schema | None = None
    """Group keys as the state trace stores them."""
    accumulators: tuple[Accumulator, ...] = ()


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
    """Statements that were rendered before, by what they were rendered for."""

    @property
    def schema(self) -> Schema:
        """Columns of the view."""
        return self.stages[-1].output

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
    def fingerprint(self) -> str:
        """Identity of the view's meaning: equal for SQL that differs only in form."""
        content = f"{PLAN_FORMAT}|{meaning(self.plan)}|{self.schema.ddl}"
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
    plan = _with_common_types(parse(), catalog, types)
    # before pruning, so that a query that is read twice has one order
    plan = with_total_orders(plan, lambda node: types.types(node, catalog), f"view {name}")
    plan = optimise(plan, catalog)
    types.refuse_random(plan, catalog)
    programs = []
    inner: dict[str, Schema] = dict(catalog)
    for node in plan.walk():
        if isinstance(node, Aggregate):
            # what an exact recompute of the whole query needs to know
            types.types(node.input, catalog)
    expanded = expand(plan, lambda node: types.types(node, catalog))
    if expanded is not plan:
        expanded = optimise(expanded, catalog)
    for stage in cut(expanded, name, inner_name):
        program = _stage_program(stage, inner, types, f"view {name}")
        for node in stage.body.walk():
            if isinstance(node, Join | Filter | Project | UnionAll | Generate | Repeated):
                types.types(node, inner)
        inner[stage.relation] = program.output
        programs.append(program)
    reads = tuple(sorted(plan.relations - set(CLOCKS)))
    clocks = tuple(sorted(plan.relations & set(CLOCKS)))
    return ViewProgram(name, sql, plan, tuple(programs), reads, clocks, types.book)


def _booked(plan: Node, book: Mapping[str, str]) -> dict[str, dict[str, DataType]]:
    result: dict[str, dict[str, DataType]] = {}
    for node in plan.walk():
        ddl = book.get(node.fingerprint)
        if ddl is not None and ddl != UNTYPED:
            known = parse_schema(ddl)
            types = zip(node.columns, known, strict=True)
            result[node.text] = {column: each.type for column, each in types}
    return result


def stage_catalog(program: ViewProgram, catalog: Mapping[str, Schema]) -> dict[str, Schema]:
    """The catalog with the program's own inner relations."""
    inner = {stage.stage.relation: stage.output for stage in program.stages[:-1]}
    return {**catalog, **inner}


def _stage_program(
    stage: Stage, catalog: Mapping[str, Schema], types: TypeBook, where: str
) -> StageProgram:
    body = types.types(stage.body, catalog)
    if stage.top is None or isinstance(stage.top, Kept):
        fields = tuple(Field(column, body[column]) for column in stage.columns)
        return StageProgram(stage, Schema(fields, internal=stage.top is not None))
    if isinstance(stage.top, Partitioned):
        found = types.types(stage.top, catalog)
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
    results = tuple(
        Field(physical, accumulator.result_type)
        for physical, accumulator in zip(names[len(keys) :], accumulators, strict=True)
    )
    state_keys = Schema(keys, internal=True) if keys else None
    output = keys + results or (Field("present", parse_schema("x BOOLEAN").fields[0].type),)
    return StageProgram(stage, Schema(output, internal=True), state_keys, accumulators)


def _with_common_types(plan: Node, catalog: Mapping[str, Schema], types: TypeBook) -> Node:
    """Cast the branches of every UNION ALL to the types of the whole."""

    def rule(node: Node) -> Node:
        if isinstance(node, SetOperation):
            try:
                whole = list(types.types(node, catalog).values())
            except Unsupported:
                return node
            sides = [_cast_all(side, whole, catalog, types) for side in node.inputs]
            return SetOperation(sides[0], sides[1], node.kind)
        if not isinstance(node, UnionAll):
            return node
        try:
            whole = list(types.types(node, catalog).values())
        except Unsupported:
            # all branches of a column are untyped NULLs: what is above gives it a type, or refuses
            return node
        return UnionAll(tuple(_cast_all(each, whole, catalog, types) for each in node.branches))

    return rewrite(plan, rule)


def _cast_all(
    branch: Node, wanted: list[DataType], catalog: Mapping[str, Schema], types: TypeBook
) -> Node:
    """The branch with its columns in these types."""
    try:
        found = list(types.types(branch, catalog).values())
    except Unsupported:
        return _cast_below(branch, wanted, catalog, types)
    if found == wanted:
        return branch
    triples = zip(branch.columns, found, wanted, strict=True)
    outputs = [
        (name, column_scalar(name) if has == wants else _cast(column_scalar(name), wants))
        for name, has, wants in triples
    ]
    return Project(branch, tuple(outputs))


def _cast_below(
    branch: Node, wanted: list[DataType], catalog: Mapping[str, Schema], types: TypeBook
) -> Node:
    """Casts where the untyped NULLs are written, so that no relation has them as a column."""
    if isinstance(branch, Project):
        pairs = zip(branch.outputs, wanted, strict=True)
        outputs = tuple((name, _cast(scalar, wants)) for (name, scalar), wants in pairs)
        return Project(branch.input, outputs)
    if isinstance(branch, UnionAll):
        return UnionAll(tuple(_cast_all(each, wanted, catalog, types) for each in branch.branches))
    if isinstance(branch, Distinct):
        return Distinct(_cast_all(branch.input, wanted, catalog, types))
    types.types(branch, catalog)
    return branch


def _cast(scalar: Scalar, wanted: DataType) -> Scalar:
    return scalar_of(exp.cast(tree_of(scalar), wanted.ddl, dialect="spark"))


__all__ = ["Aggregate", "Analyser", "StageProgram", "ViewProgram", "compile_view"]
