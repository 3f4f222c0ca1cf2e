"""The identity of a node whatever its columns are called.

Two nodes of one key have the same rows, column by column in order, when they are computed over the
same relations: `SELECT o.x FROM a o` and `SELECT p.x FROM a p` are one. The text of a node has the
names in it, because the nodes above refer to them; a key has positions.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ivm_core.model.errors import InternalError
from ivm_core.operators.sql import renamed
from ivm_core.plan.nodes import (
    Aggregate,
    Constant,
    Distinct,
    Filter,
    Generate,
    Join,
    Kept,
    Listed,
    Match,
    Negated,
    Node,
    Project,
    Repeated,
    Scan,
    SetOperation,
    UnionAll,
)
from ivm_core.plan.partitioned import Grouped, Top, Windowed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ivm_core.plan.scalar import Scalar


class NodeKeys:
    """Keys of nodes, each worked out once."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._known: dict[int, tuple[Node, str]] = {}

    def of(self, node: Node) -> str:
        """The key of a node and all that is below it."""
        if id(node) not in self._known:
            below = [self.of(child) for child in node.inputs]
            content = "|".join([type(node).__name__, *_own(node), *below])
            key = hashlib.sha256(content.encode()).hexdigest()[:16]
            self._known[id(node)] = (node, key)
        return self._known[id(node)][1]


def _own(node: Node) -> list[str]:
    """What a node says itself, in positions of its inputs' columns."""
    # the calls of a window may read those before them, which come behind the input's columns
    names = node.columns if isinstance(node, Windowed) else _read(node)
    places = {name: f"c{number}" for number, name in enumerate(names)}

    def texts(scalars: Iterable[Scalar]) -> str:
        return ", ".join(renamed(each, places).sql for each in scalars)

    def at(columns: Iterable[str]) -> str:
        return ", ".join(places[name] for name in columns)

    if isinstance(node, Scan):
        return [node.relation, ", ".join(node.fields)]
    if isinstance(node, Filter):
        return [texts([node.predicate])]
    if isinstance(node, Project):
        return [texts(scalar for _, scalar in node.outputs)]
    if isinstance(node, Join):
        return [texts(node.conditions)]
    if isinstance(node, Match):
        return [node.kind, texts(node.conditions)]
    if isinstance(node, SetOperation):
        return [node.kind]
    if isinstance(node, Aggregate):
        calls = [f"{each.function}({places.get(each.argument or '', '')})" for each in node.calls]
        return [at(column for _, column in node.keys), ", ".join(calls)]
    if isinstance(node, Windowed | Grouped):
        return [at(node.partition), texts(scalar for _, scalar in node.calls)]
    if isinstance(node, Top):
        return [at(node.partition), texts(node.order), f"{node.limit} from {node.offset}"]
    if isinstance(node, Kept):
        return [at(node.keys)]
    if isinstance(node, Repeated):
        return [at([node.times])]
    if isinstance(node, Generate):
        outer = "outer" if node.is_outer else ""
        return [outer, texts([node.generator]), str(len(node.names))]
    if isinstance(node, Listed):
        return [node.values]
    if isinstance(node, Constant | UnionAll | Distinct | Negated):
        return []
    raise InternalError(f"{node.text} has no key")


def _read(node: Node) -> tuple[str, ...]:
    """The columns that a node's own expressions see."""
    if isinstance(node, UnionAll | SetOperation):
        return ()
    return tuple(column for child in node.inputs for column in child.columns)
