"""Recursion: what ties views together that read each other, and how each derives its rows.

A component is a largest set of views each of which reads every other one, itself or through others.
Its views have their rows together: they are the least fixpoint of all their rules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ivm_core.model.errors import InternalError
from ivm_core.plan.nodes import Match, Node, Scan, UnionAll
from ivm_core.plan.rewriting import with_inputs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SET = "set"
BAG = "bag"
MIN = "MIN"
MAX = "MAX"


@dataclass(frozen=True)
class Limits:
    """How far one tick of a component may go; reaching either fails the tick whole."""

    iterations: int = 10_000
    rows: int = 50_000_000
    """Rows that all iterations together may derive."""


@dataclass(frozen=True)
class Rules:
    """How one view of a component derives its rows: each branch is a rule.

    SET: the rows of all branches, each once. MIN, MAX: of the rows of all branches the extreme of
    the column `value` for every group of the others. BAG: the rows of all branches, as often as
    they are derived.
    """

    view: str
    component: tuple[str, ...]
    fold: str
    branches: tuple[Node, ...]
    value: str = ""

    def __post_init__(self) -> None:
        if self.view not in self.component:
            raise InternalError(f"{self.view} is not in its own component {self.component}")
        for union in (self.branches, *_unions(self.branches)):
            columns = {branch.columns for branch in union}
            if len(columns) != 1:
                raise InternalError(f"the rules of {self.view} have the columns {columns}")

    @property
    def columns(self) -> tuple[str, ...]:
        """The view's columns."""
        return self.branches[0].columns

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that tell rows apart."""
        return tuple(name for name in self.columns if name != self.value)

    @cached_property
    def relations(self) -> frozenset[str]:
        """Everything that the rules read, the component's views among them."""
        return frozenset().union(*(branch.relations for branch in self.branches))

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """All the places where a change can come in."""
        return tuple(term for branch in self.branches for term in terms_of(branch))

    @cached_property
    def bases(self) -> tuple[Node, ...]:
        """What the rules derive while no view of the component has a row."""
        members = frozenset(self.component)
        found = (_of_nothing(each, members) for each in self.branches)
        return tuple(each for each in found if each is not None)


@dataclass(frozen=True)
class Term:
    """One rule with one of its reads replaced by rows of a change.

    `plan` reads `changed` there, and everything else as it is. Where `is_negative`, the read is
    behind a NOT EXISTS: rows that come there take away derivations that there were while nothing
    else stood against them, and rows that go give those that nothing else stands against.
    """

    relation: str
    changed: str
    plan: Node
    is_negative: bool = False


CHANGED, AGAINST = "?changed", "?against"
"""What a replaced read is called after its relation; the other one behind a NOT EXISTS."""


def changed_name(relation: str) -> str:
    """The relation of the rows that come, or go, in one place of a rule."""
    return f"{relation}{CHANGED}"


def terms_of(branch: Node) -> Iterator[Term]:
    """A term for every read of a rule.

    Of a union on the way to the read a term has the branch that the read is in, and no other one:
    what these give doesn't come from the change.
    """
    for path, scan in _reads(branch, ()):
        behind = _negation(branch, path)
        if behind is None:
            changed = with_relation(scan, changed_name(scan.relation))
            plan = _replaced(branch, path, changed)
            yield Term(scan.relation, changed.relation, plan)
            continue
        match = _at(branch, behind)
        if not isinstance(match, Match):
            raise InternalError("a negation that is no match")
        changed = with_relation(scan, f"{scan.relation}{AGAINST}")
        right = _replaced(match.right, path[len(behind) + 1 :], changed)
        reached = Match(match.left, right, "SEMI", match.conditions)
        free = Match(reached, match.right, "ANTI", match.conditions)
        plan = _replaced(branch, behind, free)
        yield Term(scan.relation, changed.relation, plan, is_negative=True)


def with_relation(scan: Scan, relation: str) -> Scan:
    """The same columns of another relation."""
    return replace(scan, relation=relation)


def components(reads: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """Names in groups, those that are read first: each group reads itself in a circle, or is one.

    Within a group, and among groups that don't read each other, the given order stays.
    """
    order = {name: number for number, name in enumerate(reads)}
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[tuple[str, ...]] = []

    def visit(root: str) -> None:
        work = [(root, iter(sorted(set(reads[root]) & set(order), key=order.__getitem__)))]
        index[root] = lowest[root] = len(index)
        stack.append(root)
        while work:
            name, rest = work[-1]
            for each in rest:
                if each not in index:
                    index[each] = lowest[each] = len(index)
                    stack.append(each)
                    below = sorted(set(reads[each]) & set(order), key=order.__getitem__)
                    work.append((each, iter(below)))
                    break
                if each in stack:
                    lowest[name] = min(lowest[name], index[each])
            else:
                work.pop()
                if work:
                    outer = work[-1][0]
                    lowest[outer] = min(lowest[outer], lowest[name])
                if lowest[name] == index[name]:
                    at = stack.index(name)
                    found.append(tuple(sorted(stack[at:], key=order.__getitem__)))
                    del stack[at:]

    for name in reads:
        if name not in index:
            visit(name)
    return found


def _unions(branches: Iterable[Node]) -> Iterator[tuple[Node, ...]]:
    """The branches of every union within rules."""
    for branch in branches:
        for node in branch.walk():
            if isinstance(node, UnionAll):
                yield node.branches


Path = tuple[int, ...]


def _reads(node: Node, path: Path) -> Iterator[tuple[Path, Scan]]:
    if isinstance(node, Scan):
        yield path, node
    for number, child in enumerate(node.inputs):
        yield from _reads(child, (*path, number))


def _at(node: Node, path: Path) -> Node:
    for number in path:
        node = node.inputs[number]
    return node


def _negation(branch: Node, path: Path) -> Path | None:
    """Where the ANTI match is on whose right side a place lies; None for no such match."""
    for length in range(len(path)):
        node = _at(branch, path[:length])
        if isinstance(node, Match) and node.kind == "ANTI" and path[length] == 1:
            return path[:length]
    return None


def _replaced(node: Node, path: Path, by: Node) -> Node:
    """The part of a tree that reads one place, with something else there."""
    if not path:
        return by
    inputs = list(node.inputs)
    inputs[path[0]] = _replaced(inputs[path[0]], path[1:], by)
    if isinstance(node, UnionAll):
        return inputs[path[0]]
    return with_inputs(node, tuple(inputs))


def _of_nothing(node: Node, members: frozenset[str]) -> Node | None:
    """What is left of a tree when some relations have no rows; None where nothing is."""
    if not node.relations & members:
        return node
    inputs = [_of_nothing(each, members) for each in node.inputs]
    present = tuple(each for each in inputs if each is not None)
    if isinstance(node, UnionAll) and present:
        return UnionAll(present) if len(present) > 1 else present[0]
    if isinstance(node, Scan) or len(present) < len(inputs):
        return None
    return with_inputs(node, present)
