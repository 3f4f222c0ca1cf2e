"""Explaining a view: what it means, how each node is maintained, and the statements that run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.compile.lowering import Lowering
from ivm_core.compile.program import stage_catalog
from ivm_core.compile.recursive_steps import label_of_rules, verdict_of_rules
from ivm_core.compile.steps import FULL, extents_by_node, reads_of, steps_by_node
from ivm_core.compile.verdicts import IN_FULL, Verdict, keys_of, label_of, verdict_of, worst
from ivm_core.engine.declaring import draft_view
from ivm_core.engine.explanation import (
    ExplainedNode,
    Explanation,
    KeptTrace,
    Step,
    TickCost,
    WhyNot,
)
from ivm_core.engine.normalised import normalised_sql
from ivm_core.engine.recursion.declaring import draft_component
from ivm_core.engine.requiring import costs_more
from ivm_core.engine.stage_run import parts_of, statements_of
from ivm_core.operators.fixpoint import FixpointStatements
from ivm_core.operators.operator import Form
from ivm_core.operators.sql import text_of
from ivm_core.plan.lineage import column_origins
from ivm_core.plan.nodes import Kept, Scan
from ivm_core.plan.recursion import BAG, SET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.compile.program import StageProgram, ViewProgram
    from ivm_core.engine.core import Engine
    from ivm_core.engine.recursion.declaring import Component
    from ivm_core.model.schema import Schema
    from ivm_core.plan.nodes import Node
    from ivm_core.plan.recursion import Rules

UNNAMED = "this query"
"""What SQL is called that is explained without being registered: no view can have the name."""


def explain(engine: Engine, view: str) -> Explanation:
    """Explain a registered view; nothing of it needs Spark."""
    engine.refresh()
    name = engine.catalog.view_name(view)
    definition = engine.history.views[name]
    return _explain(engine, engine.catalog.program(name), definition.require)


def explain_sql(engine: Engine, sql: str) -> Explanation:
    """Explain SQL as if it were registered; raises what registering it would."""
    engine.refresh()
    with engine.catalog.drafting():
        return explain_draft(engine, UNNAMED, sql)


def explain_draft(engine: Engine, name: str, sql: str, require: str = "") -> Explanation:
    """Explain a view that becomes a draft of the catalog: the next one may read it."""
    draft_view(engine, name, sql)
    return _explain(engine, engine.catalog.program(name), require)


def explain_component(
    engine: Engine, component: Component, require: Mapping[str, str]
) -> dict[str, Explanation]:
    """Explain views that read each other, as drafts of the catalog."""
    draft_component(engine, component)
    return {
        name: _explain(engine, engine.catalog.program(name), require.get(name, ""))
        for name in component.names
    }


def _explain(engine: Engine, program: ViewProgram, require: str) -> Explanation:
    inner = [engine.catalog.program(name) for name in _inner(engine, program.name)]
    below = [*engine.catalog.below(program.name), *inner]
    schemas = engine.catalog.relations()
    costs = _costs(engine, program.name)
    catalog = stage_catalog(program, schemas, below)
    steps = tuple(
        _step(engine, each, stage, catalog, program.name)
        for each in (*below, program)
        for stage in each.stages
    )
    tree = _Tree(program, below, steps).root(program)
    reasons = costs_more(program, schemas, below)
    return Explanation(
        view=program.name,
        fingerprint=program.fingerprint,
        require=require,
        verdict=worst([each.verdict for each in tree.walk()]),
        normalised=normalised_sql(engine, program),
        tree=tree,
        steps=steps,
        last=costs,
        why_not=tuple(WhyNot.of(verdict, each) for verdict, each in reasons),
        origins=column_origins(program.plan),
        key=engine.catalog.row_key(program),
    )


def _inner(engine: Engine, name: str) -> list[str]:
    """The recursive expressions of a view's text, as the views that they are, inputs first."""
    recursions = set(engine.catalog.definition(name).recursions.values())
    return [each for each in engine.catalog.schedule([name]) if each in recursions]


class _Tree:
    """The plan with what is known of each node; one that is read in several places once."""

    def __init__(
        self, program: ViewProgram, below: list[ViewProgram], steps: tuple[Step, ...]
    ) -> None:
        self._steps = {each.step: each for each in steps}
        self._owned = steps_by_node(program, below)
        self._extents = extents_by_node(program, below)
        self._shown: set[int] = set()
        self._reads = [read for each in steps for read in each.reads]
        self._inner = {each.name: each for each in below if each.rules is not None}

    def root(self, program: ViewProgram, depth: int = 0) -> ExplainedNode:
        """The view's whole plan; of a recursive one its rules."""
        if program.rules is None:
            return self.node(program.plan, depth)
        verdict = verdict_of_rules(program.rules)
        step = self._steps[program.name]
        return ExplainedNode(
            node=label_of_rules(program.rules),
            verdict=verdict.verdict,
            reason=verdict.reason,
            keys=program.rules.keys,
            steps=(program.name,),
            state=step.state,
            reads=step.reads,
            last=(f"{step.step}: {step.last}",) if step.last else (),
            shared_with=(),
            depth=depth,
            inputs=tuple(self.node(each, depth + 1) for each in program.rules.branches),
        )

    def node(self, node: Node, depth: int) -> ExplainedNode:
        is_again = id(node) in self._shown and bool(node.inputs)
        self._shown.add(id(node))
        verdict = verdict_of(node, self._extents.get(id(node)))
        names = self._owned.get(id(node), ())
        steps = [self._steps[name] for name in names]
        reads = []
        if isinstance(node, Scan):
            reads = [each for each in self._reads if each.relation == node.relation]
            full = next((each for each in reads if each.how == FULL), None)
            if full is not None:
                verdict = Verdict(IN_FULL, full.reason)
        inner = self._inner.pop(node.relation, None) if isinstance(node, Scan) else None
        below = [] if inner is None else [self.root(inner, depth + 1)]
        return ExplainedNode(
            node=f"{label_of(node)}, as above" if is_again else label_of(node),
            verdict=verdict.verdict,
            reason=verdict.reason,
            keys=keys_of(node),
            steps=tuple(names),
            state=tuple(trace for step in steps for trace in step.state),
            reads=tuple(dict.fromkeys(reads)),
            last=tuple(f"{step.step}: {step.last}" for step in steps if step.last),
            shared_with=tuple(dict.fromkeys(view for step in steps for view in step.shared_with)),
            depth=depth,
            inputs=()
            if is_again
            else (*below, *(self.node(each, depth + 1) for each in node.inputs)),
        )


def _step(
    engine: Engine,
    program: ViewProgram,
    stage: StageProgram,
    catalog: Mapping[str, Schema],
    view: str,
) -> Step:
    """A step of a view, or of a node that it shares."""
    relation = stage.stage.relation
    dirty = frozenset(stage.stage.body.relations)
    lowering = Lowering(catalog, program.stage_types, dirty)
    return Step(
        step=relation,
        node=_what(stage),
        keys=stage.stage.keys,
        state=tuple(_kept(engine, stage)),
        reads=reads_of(stage, catalog),
        last=_ways(engine, program.name).get(relation, ""),
        statements=tuple(_statements(stage, lowering)),
        shared_with=tuple(each for each in engine.catalog.sharers(program.name) if each != view),
    )


def _what(stage: StageProgram) -> str:
    if stage.rules is not None:
        return label_of_rules(stage.rules)
    return "the view's rows" if stage.stage.top is None else label_of(stage.stage.top)


def _kept(engine: Engine, stage: StageProgram) -> list[KeptTrace]:
    """The traces of a step, with their size where they are there already."""
    relation, keys = stage.stage.relation, stage.stage.keys
    wanted = [("state", "accumulators")] if stage.stage.aggregate is not None else []
    wanted += [("rows", "rows")] if stage.stage.keeps_rows else []
    found = []
    for folder, holds in wanted:
        name, trace = engine.layout.stored(relation, folder)
        size: tuple[int | None, int | None] = (None, None)
        if trace is not None:
            files = trace.files(engine.history.committed)
            size = (sum(file.rows for file in files), len(files))
        found.append(KeptTrace(name, holds, keys, *size))
    return found


def _statements(stage: StageProgram, lowering: Lowering) -> list[str]:
    body = stage.stage.body
    if stage.rules is not None:
        return _of_rules(stage.rules, stage.output, lowering)
    if stage.stage.aggregate is None:
        if stage.stage.top is None or isinstance(stage.stage.top, Kept):
            query = lowering.render(body, Form.DELTA)
        else:
            query = parts_of(stage).change(lowering)
        return [] if query is None else [text_of(query, pretty=True)]
    aggregate = statements_of(stage)
    fold = aggregate.fold(Form.DELTA, lowering, lowering.types(body))
    rows = aggregate.rows(with_old=True, with_redone=False, only_changed=False)
    found = [fold, rows]
    return [text_of(query, pretty=True) for query in found if query is not None]


def _of_rules(rules: Rules, schema: Schema, lowering: Lowering) -> list[str]:
    """One iteration's statement for new rows of each relation, and what derives rows again."""
    made = FixpointStatements(rules, lowering, schema)
    names = dict.fromkeys(term.relation for term in rules.terms)
    found = [
        made.derived([term.plan for term in rules.terms if term.relation == name]) for name in names
    ]
    if rules.fold != BAG:
        found.append(made.derivable(by_key=rules.fold != SET))
    return [text_of(query, pretty=True) for query in found if query is not None]


def _ways(engine: Engine, name: str) -> Mapping[str, str]:
    state = engine.history.states.get(name)
    body = engine.history.commits.get(state.upto, {}) if state else {}
    entry = {**body.get("views", {}), **body.get("shared", {})}.get(name, {})
    costs = entry.get("costs", {})
    return {
        relation: f"{way}, {costs[relation]['ms']:,.0f} ms" if relation in costs else way
        for relation, way in entry.get("ways", {}).items()
    }


def _costs(engine: Engine, view: str) -> tuple[TickCost, ...]:
    """The newest tick of a view, and the newest that was not skipped if that is another."""
    found: list[TickCost] = []
    for tick in sorted(engine.history.commits, reverse=True):
        body = engine.history.commits[tick]
        entry = body["views"].get(view)
        if entry is None or (found and entry["skipped"]):
            continue
        found.append(
            TickCost(
                tick=tick,
                logical_time=body["logical_time"],
                duration_ms=entry["duration_ms"],
                rows_out=entry["rows_out"],
                deletions=entry["deletions"],
                rows=entry["rows"],
                skipped=entry["skipped"],
                hydrated=entry["hydrated"],
            )
        )
        if not entry["skipped"]:
            break
    return tuple(found)
