"""Cutting a view's plan into stages.

A stage is a tree of linear and bilinear nodes over relations (sources, views, clocks, earlier
stages), and on top of it either the view itself or one node with state. The stages of a view run
in order; each reads only relations before it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from ivm_core.compile.node_keys import NodeKeys
from ivm_core.operators.sql import column_scalar
from ivm_core.plan.nodes import Aggregate, Distinct, Join, Kept, Node, Project, Scan
from ivm_core.plan.partitioned import STATEFUL, Partitioned
from ivm_core.plan.rewriting import with_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


NOTHING_SHARED: Mapping[str, SharedNode] = MappingProxyType({})


@dataclass(frozen=True)
class Stage:
    """One step of a view's tick."""

    relation: str
    """What later stages call the output: the view's name, or `view#1`, `view#2`, …"""
    body: Node
    """The stateless tree that is read."""
    top: Aggregate | Partitioned | Kept | None
    """The node over `body` that keeps something; None for the view itself."""
    keeps_rows: bool
    """Whether someone needs the output as it was before the tick: then it has a trace."""
    origin: Node | None = None
    """The node of the whole plan that `top` is, over the relations outside of the view."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the output columns."""
        return self.body.columns if self.top is None else self.top.columns

    @property
    def aggregate(self) -> Aggregate | None:
        """The node on top, if it folds changes into accumulators."""
        return self.top if isinstance(self.top, Aggregate) else None

    @property
    def keys(self) -> tuple[str, ...]:
        """Output columns that say which rows belong together."""
        if isinstance(self.top, Aggregate):
            return tuple(name for name, _ in self.top.keys)
        if isinstance(self.top, Kept):
            return self.top.keys
        return self.top.partition if isinstance(self.top, Partitioned) else ()


def cut(
    plan: Node,
    view: str,
    shared: Mapping[str, SharedNode] = NOTHING_SHARED,
    inner_name: str = "",
) -> tuple[Stage, ...]:
    """The stages of a view in order; the last one is the view.

    `shared` has the nodes, by their keys, that the flow keeps for several views; `inner_name` is
    what the inner stages are called after, if not after the view.
    """
    cutting = StageCutting(inner_name or view, shared)
    body = cutting.descend(plan, needs_old=False)
    return (*cutting.stages, Stage(view, body, None, keeps_rows=True))


def cut_shared(node: Node, relation: str, shared: Mapping[str, SharedNode]) -> tuple[Stage, ...]:
    """The stages of a node that several views share; the last one is the node."""
    cutting = StageCutting(relation, shared)
    cutting.descend(node, needs_old=True)
    return (*cutting.stages[:-1], replace(cutting.stages[-1], relation=relation))


class StageCutting:
    """The stages that were cut off so far."""

    def __init__(self, view: str, shared: Mapping[str, SharedNode] = NOTHING_SHARED) -> None:
        """`view` is what the stages are called after."""
        self.stages: list[Stage] = []
        self._view = view
        self._shared = shared
        self._keys = NodeKeys()
        self._done: dict[tuple[int, bool], tuple[Node, Node]] = {}
        """What stands for nodes, by what they are in memory; each is held, or another could be."""

    def descend(self, node: Node, *, needs_old: bool) -> Node:
        """What stands for a node in the stage above it: itself, or a scan of its rows."""
        key = (id(node), needs_old)
        if key not in self._done:
            stands_for = self._found(node) or self._cut_off(node, needs_old=needs_old)
            self._done[key] = (node, stands_for)
        return self._done[key][1]

    def _found(self, node: Node) -> Node | None:
        """A scan of the node's rows, where several views share it."""
        if not (self._shared and isinstance(node, STATEFUL)):
            return None
        known = self._shared.get(self._keys.of(node))
        return None if known is None else known.output(node.columns)

    def _cut_off(self, origin: Node, *, needs_old: bool) -> Node:
        below = needs_old or isinstance(origin, Join)
        stateful = isinstance(origin, STATEFUL)
        inner = isinstance(origin, Partitioned) or (
            isinstance(origin, Aggregate) and is_extremal(origin)
        )
        inputs = tuple(
            self.descend(child, needs_old=inner if stateful else below) for child in origin.inputs
        )
        node = with_inputs(origin, inputs)
        if not isinstance(node, Aggregate | Distinct | Partitioned | Kept):
            return node
        columns = node.columns
        if isinstance(node, Kept):
            node = _as_stored(node)
        top = as_aggregate(node) if isinstance(node, Distinct) else node
        keeps = needs_old or not isinstance(top, Aggregate) or is_extremal(top)
        # the same node in several places of the plan is one stage
        stages = self.stages
        number = next((n for n, each in enumerate(stages) if _is_same(each.top, top)), None)
        if number is None:
            number = len(stages)
            stages.append(Stage(f"{self._view}#{number + 1}", top.input, top, keeps, origin))
        elif keeps:
            stages[number] = replace(stages[number], keeps_rows=True)
        return Output.named(stages[number].relation, columns)


def _is_same(one: Node | None, other: Node) -> bool:
    return one is not None and one.text == other.text


@dataclass(frozen=True)
class Output(Scan):
    """A scan of a stage's output under the names that the plan above uses."""

    names: tuple[str, ...] = ()

    @classmethod
    def named(cls, relation: str, columns: tuple[str, ...]) -> Output:
        """A relation that stores these columns."""
        return cls(relation, relation, physical_names(columns), columns)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names above, not those that are stored."""
        return self.names

    @cached_property
    def text(self) -> str:
        """Canonical text of the scan."""
        return f"{super().text[:-1]} as {', '.join(self.names)})"


@dataclass(frozen=True)
class SharedNode:
    """A node with state that the flow keeps for several views, as a relation."""

    relation: str
    fields: tuple[str, ...]

    def output(self, columns: tuple[str, ...]) -> Output:
        """A scan of it under the names of a plan; a row of no columns is stored as one."""
        return Output(self.relation, self.relation, self.fields[: len(columns)], columns)


def physical_names(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Column names as a stage's traces store them: without dots, unique.

    No column of a relation begins like an aggregate's accumulators, `aggregate_1_…`.
    """
    names: list[str] = []
    for column in columns:
        base = "".join(c if c.isalnum() or c == "_" else "_" for c in column).lstrip("_") or "c"
        if "." in column and base.startswith("aggregate_"):
            base = f"key_{base}"
        name, number = base, 2
        while name.lower() in {n.lower() for n in names}:
            name, number = f"{base}_{number}", number + 1
        names.append(name)
    return tuple(names)


def _as_stored(node: Kept) -> Kept:
    """The node under the names that its trace has."""
    names = dict(zip(node.columns, physical_names(node.columns), strict=True))
    outputs = tuple((name, column_scalar(column)) for column, name in names.items())
    return Kept(Project(node.input, outputs), tuple(names[key] for key in node.keys))


def as_aggregate(node: Distinct) -> Aggregate:
    """DISTINCT is a grouping by all columns whose hidden count says what is there."""
    return Aggregate(node.input, tuple((name, name) for name in node.columns), ())


def is_extremal(node: Aggregate) -> bool:
    """Whether a deletion may call for all rows of its group: MIN and MAX."""
    return any(call.function in ("MIN", "MAX") for call in node.calls)


def renaming(node: Node) -> tuple[Scan, tuple[str, ...]] | None:
    """The scan below a tree that only renames, and the field of each column; None for others."""
    if isinstance(node, Scan):
        return node, node.fields
    if not isinstance(node, Project):
        return None
    below = renaming(node.input)
    sources = [node.source_of(column) for column in node.columns]
    if below is None or None in sources:
        return None
    scan, fields = below
    of = dict(zip(node.input.columns, fields, strict=True))
    return scan, tuple(of[source] for source in sources if source is not None)


def scans(node: Node) -> Iterator[Scan]:
    """The scans of a stage's body."""
    return (leaf for leaf in node.walk() if isinstance(leaf, Scan))
