"""What each step of a view's tick reads and keeps, and what stands between it and the change.

A step is a stage of the program. It reads a relation's change alone, or of the relation the rows
that keys limit, or all of it; the last is what a view that must be incremental may not do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.compile.node_keys import NodeKeys
from ivm_core.compile.program import stage_catalog
from ivm_core.compile.reach import ReachFinder
from ivm_core.compile.recursive_steps import DERIVED_AGAIN, reaches
from ivm_core.compile.stages import as_aggregate, is_extremal
from ivm_core.compile.verdicts import IN_FULL, RECOMPUTED, label_of, verdict_of
from ivm_core.plan.nodes import CLOCKS, Aggregate, Distinct, Match, SetOperation
from ivm_core.plan.partitioned import Grouped, Partitioned, Top, Windowed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ivm_core.compile.program import StageProgram, ViewProgram
    from ivm_core.compile.reach import Reach
    from ivm_core.model.schema import Schema
    from ivm_core.operators.window_extent import Extent
    from ivm_core.plan.nodes import Node

CHANGE, LIMITED, FULL = "change", "limited", "full"
ONE_GROUP = "there is one group"
WHEN_READING = "leave it out of the view and apply it when reading the snapshot"
OWN_VIEW = "compute the column in a view of its own, and use it from there"


@dataclass(frozen=True)
class Read:
    """How a step reads one relation, besides its change."""

    relation: str
    how: str
    """`change`, `limited` or `full`."""
    limits: tuple[str, ...] = ()
    """For `limited`: by which columns, to values of what."""
    reason: str = ""
    """For `full`: why no key limits it."""
    when: str = ""
    """The changes for which it is read so; empty for all."""

    def __str__(self) -> str:
        how = {CHANGE: "its change only", FULL: f"in full: {self.reason}"}.get(self.how)
        text = f"{self.relation} {how or ', '.join(self.limits)}"
        return f"{text} ({self.when})" if self.when else text


@dataclass(frozen=True)
class Obstacle:
    """A node that is recomputed, or a relation that is read in full."""

    construct: str
    verdict: str
    """`recomputed` or `read in full`."""
    kind: str
    """What to look for in the text: `window`, `limit`, `call` or `table`."""
    name: str
    reason: str
    rewrite: str


def reads_of(stage: StageProgram, catalog: Mapping[str, Schema]) -> tuple[Read, ...]:
    """What a step reads when all its inputs change; `catalog` has its inner relations."""
    if stage.rules is not None:
        terms, again = reaches(stage.rules, catalog)
        relations = sorted(stage.rules.relations - set(CLOCKS))
        later = [_read(name, again, DERIVED_AGAIN) for name in relations]
        first = [_read(name, terms, "") for name in relations]
        return (*first, *(each for each in later if each.how != CHANGE))
    body, top = stage.stage.body, stage.stage.top
    dirty = frozenset(body.relations)
    names = sorted(dirty - set(CLOCKS))
    finder = ReachFinder(catalog, dirty)
    when = ""
    if stage.extent is not None:
        reach = finder.of_delta(body)
    elif isinstance(top, Partitioned):
        reach = finder.of_parts(body, top.partition)
        if isinstance(top, Top) and not top.partition:
            when = "where one of the first rows goes"
    else:
        reach = finder.of_delta(body)
    found = [_read(name, reach, when) for name in names]
    if isinstance(top, Aggregate) and is_extremal(top):
        columns = tuple(column for _, column in top.keys)
        redone = ReachFinder(catalog, dirty).of_keys(body, columns)
        when = "where a MIN or MAX is deleted"
        found += [_read(name, redone, when) for name in names]
    return tuple(found)


def obstacles(
    program: ViewProgram, schemas: Mapping[str, Schema], below: Sequence[ViewProgram] = ()
) -> tuple[Obstacle, ...]:
    """What keeps a view from costing no more than its change; none for an incremental one.

    `below` are the shared nodes that it reads.
    """
    extents = extents_by_node(program, below)
    found = [
        _of_node(node)
        for node in program.plan.walk()
        if verdict_of(node, extents.get(id(node))).verdict == RECOMPUTED
    ]
    catalog = stage_catalog(program, schemas, below)
    stages = _all_stages(program, below)
    inner = {each.stage.relation: each.stage.top for each in stages if each.stage.top}
    small = {each.stage.relation for each in stages if _has_one_row(each)}
    for stage in stages:
        has_clock = not stage.stage.body.relations.isdisjoint(CLOCKS)
        found += [
            _of_read(read, inner.get(read.relation), has_clock)
            for read in reads_of(stage, catalog)
            if read.how == FULL and read.relation not in small and read.reason != ONE_GROUP
        ]
    return tuple(dict.fromkeys(found))


def steps_by_node(
    program: ViewProgram, below: Sequence[ViewProgram] = ()
) -> dict[int, tuple[str, ...]]:
    """Which steps do the work of which node of the plan, by `id` of the node.

    A node that keeps state is a step of its own, perhaps a shared one. What a match or a set
    operation is made of is counted to the smallest of them that reads the same relations.
    """
    plan = program.plan
    nodes = [each for each in plan.walk() if _signature(each)]
    keys = NodeKeys()
    by_relation = {name: key for each in (*below, program) for name, key in each.keys.items()}
    stages = _all_stages(program, below)
    bases = _base_relations(stages)
    found: dict[int, list[str]] = {id(plan): [program.name]}
    for stage in stages:
        top, relation = stage.stage.top, stage.stage.relation
        if top is None:
            continue
        owners = [each for each in nodes if keys.of(each) == by_relation[relation]]
        owners = owners or [each for each in nodes if _signature(each) == _signature(top)]
        if not owners:
            # the first rows below a window are its own
            kinds = (Windowed, Top) if isinstance(top, Top) else (Match, SetOperation, Top)
            around = [each for each in plan.walk() if isinstance(each, kinds)]
            around = [each for each in around if bases[relation] <= each.relations]
            owners = [min(around, key=lambda each: len(each.text), default=plan)]
        for owner in owners:
            names = found.setdefault(id(owner), [])
            names += [relation] if relation not in names else []
    return {node: tuple(names) for node, names in found.items()}


def extents_by_node(program: ViewProgram, below: Sequence[ViewProgram] = ()) -> dict[int, Extent]:
    """How far changes reach in windows of one partition, by `id` of the node."""
    known = {each.stage.relation: each.extent for each in _all_stages(program, below)}
    found = {}
    for node, names in steps_by_node(program, below).items():
        extents = [known[name] for name in names]
        if len(extents) == 1 and extents[0] is not None:
            found[node] = extents[0]
    return found


def _signature(node: Node) -> tuple[object, ...]:
    """What stays of a node with state when its input is rewritten; nothing for others."""
    if isinstance(node, Distinct):
        node = as_aggregate(node)
    if isinstance(node, Aggregate):
        return ("aggregate", node.keys, node.calls)
    if isinstance(node, Windowed | Grouped):
        calls = tuple((name, scalar.sql) for name, scalar in node.calls)
        return (type(node).__name__, node.partition, calls)
    if isinstance(node, Top):
        order = tuple(scalar.sql for scalar in node.order)
        return ("Top", node.partition, order, node.limit, node.offset)
    return ()


def _all_stages(program: ViewProgram, below: Sequence[ViewProgram]) -> list[StageProgram]:
    return [stage for each in (*below, program) for stage in each.stages]


def _base_relations(stages: list[StageProgram]) -> dict[str, frozenset[str]]:
    """The relations outside of the view that each of its steps stands on."""
    found: dict[str, frozenset[str]] = {}
    for stage in stages:
        names = stage.stage.body.relations
        below = (found.get(name, frozenset({name})) for name in names)
        found[stage.stage.relation] = frozenset().union(*below)
    return found


def _read(name: str, reach: Reach, when: str) -> Read:
    if name in reach.full:
        return Read(name, FULL, reason=reach.full[name], when=when)
    limits = dict.fromkeys(str(hop) for hop in reach.hops if hop.relation == name)
    return Read(name, LIMITED if limits else CHANGE, tuple(limits), when=when if limits else "")


def _has_one_row(stage: StageProgram) -> bool:
    return isinstance(stage.stage.top, Aggregate | Grouped) and not stage.stage.keys


def _of_node(node: Node) -> Obstacle:
    label, reason = label_of(node), verdict_of(node).reason
    if isinstance(node, Windowed):
        rewrite = "PARTITION BY a column, so that a change reaches the rows of its partition only"
        return Obstacle(
            f"a window function without PARTITION BY ({label})",
            RECOMPUTED,
            "window",
            "",
            reason,
            rewrite,
        )
    if isinstance(node, Top):
        rewrite = (
            "rank within a key: QUALIFY row_number() OVER (PARTITION BY … ORDER BY …) <= n; or "
            + WHEN_READING
        )
        return Obstacle(f"LIMIT over all rows ({label})", RECOMPUTED, "limit", "", reason, rewrite)
    rewrite = f"GROUP BY a column; or {WHEN_READING}"
    name = ""
    if isinstance(node, Aggregate):
        name = next((c.function for c in node.calls if c.function in ("MIN", "MAX")), "")
    elif isinstance(node, Grouped):
        name = node.calls[0][1].sql.partition("(")[0] if node.calls else ""
    return Obstacle(
        f"an aggregate without GROUP BY ({label})", RECOMPUTED, "call", name, reason, rewrite
    )


def _of_read(read: Read, inner: Node | None, has_clock: bool) -> Obstacle:
    what = f"the scan of {read.relation}"
    if inner is not None:
        what = f"reading what the node {label_of(inner)!r} keeps"
    reason = f"it is read in full: {read.reason}" + (f" ({read.when})" if read.when else "")
    if has_clock:
        reason = "it is read in full whenever logical time advances"
        rewrite = "store times in the view, and compare them with the clock when reading it"
    elif "equality" in read.reason:
        rewrite = (
            "join by an equality of plain columns; where one is computed, compute it in a view of "
            "its own and join with that"
        )
    else:
        rewrite = OWN_VIEW
    return Obstacle(what, IN_FULL, "table", read.relation, reason, rewrite)
