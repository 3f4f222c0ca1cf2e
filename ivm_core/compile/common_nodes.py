"""Nodes with state that several programs have: the largest ones, and those that stay in several.

A node that is within a larger common one is a matter of that one alone, unless a program has it
elsewhere too; then the larger one reads it as the others do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.plan.nodes import CLOCKS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from ivm_core.compile.program import StageProgram, ViewProgram
    from ivm_core.model.types import DataType
    from ivm_core.plan.nodes import Node


@dataclass(frozen=True)
class CommonNode:
    """A node of several programs, and one of them."""

    key: str
    program: ViewProgram


@dataclass(frozen=True)
class _Place:
    """A stage of a program: the program's own last one, or one that is, or may be, shared."""

    program: ViewProgram
    stage: StageProgram

    @property
    def types(self) -> list[DataType]:
        return [each.type for each in self.stage.output]

    def below(self, taken: Iterable[str]) -> Iterator[tuple[str, _Place]]:
        """The nodes that this one stands on, by key; those below a taken one are not its own."""
        stages = {each.stage.relation: each for each in self.program.stages}
        seen: set[str] = set()
        waiting = [self.stage]
        while waiting:
            for relation in waiting.pop().stage.body.relations & set(stages):
                key = self.program.keys[relation]
                if relation not in seen and _reads_something(stages[relation]):
                    seen.add(relation)
                    yield key, _Place(self.program, stages[relation])
                    waiting += [] if key in taken else [stages[relation]]


def common_nodes(programs: Iterable[ViewProgram], known: Collection[str]) -> list[CommonNode]:
    """What is in two or more programs, larger nodes first; `known` are keys of shared nodes."""
    chosen: dict[str, _Place] = {}
    views = [_Place(program, program.stages[-1]) for program in programs]
    while True:
        places: dict[str, list[_Place]] = {}
        for reader in (*views, *chosen.values()):
            for key, place in reader.below({*known, *chosen}):
                places.setdefault(key, []).append(place)
        common = {
            key: found[0]
            for key, found in places.items()
            if len(found) > 1 and key not in known and key not in chosen and _have_one_type(found)
        }
        if not common:
            return [CommonNode(key, place.program) for key, place in chosen.items()]
        largest = max(common, key=lambda key: _height(common[key].stage.stage.origin))
        chosen[largest] = common[largest]


def _reads_something(stage: StageProgram) -> bool:
    origin = stage.stage.origin
    return origin is not None and bool(origin.relations - set(CLOCKS))


def _have_one_type(places: list[_Place]) -> bool:
    return all(place.types == places[0].types for place in places)


def _height(node: Node | None) -> int:
    known: dict[int, int] = {}
    if node is None:
        return 0
    for each in node.walk():
        known[id(each)] = 1 + max((known[id(child)] for child in each.inputs), default=0)
    return known[id(node)]
