"""Explaining a view: what it means, how each node is maintained, and the statements that run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.compile.lowering import Lowering
from ivm_core.compile.program import node_types, stage_catalog
from ivm_core.compile.reach import ReachFinder
from ivm_core.engine.checking import normalised_sql
from ivm_core.engine.stage_run import parts_of, statements_of
from ivm_core.operators.operator import Form
from ivm_core.operators.sql import text_of
from ivm_core.plan.nodes import (
    Aggregate,
    Constant,
    Distinct,
    Filter,
    Generate,
    Join,
    Match,
    Node,
    Project,
    Scan,
    SetOperation,
)
from ivm_core.plan.partitioned import Partitioned

if TYPE_CHECKING:
    from ivm_core.compile.program import StageProgram, ViewProgram
    from ivm_core.engine.core import Engine

VERDICTS: dict[type[Node], tuple[str, str]] = {
    Scan: ("incremental", "reads its change"),
    Constant: ("incremental", "never changes"),
    Filter: ("incremental", "linear: applied to the change"),
    Project: ("incremental", "linear: applied to the change"),
    Join: ("incremental", "bilinear: one term a changed input"),
    Distinct: ("incremental", "counts per row, changed rows only"),
    Match: ("incremental", "a join with the matching keys, each once, added or subtracted"),
    SetOperation: ("incremental", "counts per row on both sides, changed rows only"),
    Generate: ("incremental", "linear: applied to the change"),
}


@dataclass(frozen=True)
class NodeVerdict:
    """How one node is maintained."""

    node: str
    verdict: str
    reason: str
    depth: int


@dataclass(frozen=True)
class Explanation:
    """Everything about a view; `str` shows it."""

    view: str
    fingerprint: str
    normalised: str
    nodes: tuple[NodeVerdict, ...]
    reads: tuple[str, ...]
    statements: tuple[str, ...]
    last: tuple[str, ...]

    def __str__(self) -> str:
        """For people."""
        lines = [
            f"view {self.view}, plan {self.fingerprint}",
            "",
            "means",
            _indent(self.normalised),
        ]
        lines += ["", "is maintained"]
        for node in self.nodes:
            lines.append(f"  {'  ' * node.depth}{node.node}: {node.verdict} ({node.reason})")
        lines += ["", "reads", *(f"  {line}" for line in self.reads)]
        if self.last:
            lines += ["", "did in its last tick", *(f"  {line}" for line in self.last)]
        lines += ["", "statements of a tick in which every input changes"]
        for statement in self.statements:
            lines += [_indent(statement), ""]
        return "\n".join(lines)


def explain(engine: Engine, view: str) -> Explanation:
    """Explain a registered view."""
    engine.refresh()
    name = engine.catalog.view_name(view)
    program = engine.catalog.program(name)
    nodes: list[NodeVerdict] = []
    _verdicts(program.plan, 0, nodes)
    reads: list[str] = []
    statements: list[str] = []
    for stage in program.stages:
        dirty = frozenset(stage.stage.body.relations)
        catalog = stage_catalog(program, engine.catalog.schemas())
        finder = ReachFinder(catalog, dirty)
        if isinstance(stage.stage.top, Partitioned):
            reach = finder.of_parts(stage.stage.body, stage.stage.top.partition)
        else:
            reach = finder.of_delta(stage.stage.body)
        reads += [str(hop) for hop in reach.hops]
        reads += [f"{relation} in full: {why}" for relation, why in reach.full.items()]
        lowering = Lowering(catalog, node_types(program), dirty)
        statements += _statements(stage, lowering, program)
    upto = engine.history.states[name].upto
    last = engine.history.commits.get(upto, {}).get("views", {}).get(name, {}).get("ways", {})
    return Explanation(
        name,
        program.fingerprint,
        normalised_sql(engine, program),
        tuple(nodes),
        tuple(dict.fromkeys(reads)) or ("its changes only",),
        tuple(statements),
        tuple(f"{relation}: {way}" for relation, way in last.items()),
    )


def _statements(stage: StageProgram, lowering: Lowering, program: ViewProgram) -> list[str]:
    body = stage.stage.body
    if stage.stage.aggregate is None:
        if stage.stage.top is None:
            query = lowering.render(body, Form.DELTA)
        else:
            query = parts_of(stage).change(lowering)
        return [] if query is None else [text_of(query, pretty=True)]
    aggregate = statements_of(stage)
    fold = aggregate.fold(Form.DELTA, lowering, lowering.types(body))
    rows = aggregate.rows(with_old=True, with_redone=False, only_changed=False)
    found = [fold, rows]
    return [text_of(query, pretty=True) for query in found if query is not None]


def _verdicts(node: Node, depth: int, found: list[NodeVerdict]) -> None:
    found.append(NodeVerdict(_label(node), *_verdict(node), depth))
    for child in node.inputs:
        _verdicts(child, depth + 1, found)


def _verdict(node: Node) -> tuple[str, str]:
    if isinstance(node, Aggregate):
        extremes = [call.function for call in node.calls if call.function in ("MIN", "MAX")]
        if extremes:
            names = " and ".join(sorted(set(extremes)))
            reason = f"sums fold; {names} recomputed for groups whose extreme is deleted"
            return "incremental, affected keys only on deletion", reason
        return "incremental", "accumulators fold the change, changed groups only"
    if isinstance(node, Partitioned):
        if not node.partition:
            return "recomputed", "there is one partition, of all rows"
        return "affected keys only", f"recomputed for changed {', '.join(node.partition)}"
    for kind, verdict in VERDICTS.items():
        if isinstance(node, kind):
            return verdict
    return "incremental", "linear: the changes of its branches, one after the other"


def _label(node: Node) -> str:
    if isinstance(node, Scan):
        return f"scan {node.relation}"
    if isinstance(node, Filter):
        return f"filter {node.predicate.sql}"
    if isinstance(node, Aggregate):
        keys = ", ".join(name for name, _ in node.keys) or "nothing"
        calls = ", ".join(call.text for call in node.calls)
        return f"aggregate by {keys}: {calls}" if calls else f"aggregate by {keys}"
    if isinstance(node, Join):
        conditions = " AND ".join(condition.sql for condition in node.conditions)
        return f"join on {conditions}" if conditions else "cross join"
    if isinstance(node, Project):
        return f"project {', '.join(node.columns)}"
    return type(node).__name__.lower()


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
