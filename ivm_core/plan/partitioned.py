"""Nodes whose rows of one key depend on the input rows of that key, and on no others.

    P(A) = Σ over keys k:  P(A where key = k)

So a change of A reaches only the rows of the keys that it has. The key columns are in the output,
under the names that they have in the input. Without keys there is one part, of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ivm_core.model.errors import InternalError
from ivm_core.plan.nodes import Aggregate, Distinct, Kept, Node, known, unique

if TYPE_CHECKING:
    from ivm_core.plan.scalar import Scalar


@dataclass(frozen=True)
class Partitioned(Node):
    """What the nodes of this file have in common."""

    input: Node
    partition: tuple[str, ...]
    """Columns of the input, and of the output, that say which part a row belongs to."""

    def __post_init__(self) -> None:
        missing = [name for name in self.partition if name not in self.input.columns]
        if missing:
            raise InternalError(f"partitioned by absent columns {missing}")

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Windowed(Partitioned):
    """Every input row beside the values of window functions over its partition.

    A call may read columns of the calls before it.
    """

    calls: tuple[tuple[str, Scalar], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        unique(self.columns, "window")
        there = set(self.input.columns)
        for name, scalar in self.calls:
            missing = sorted(scalar.columns - there)
            if missing:
                raise InternalError(f"{scalar.sql} reads absent columns {missing}")
            there.add(name)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return self.input.columns + tuple(name for name, _ in self.calls)

    @cached_property
    def text(self) -> str:
        calls = ", ".join(f"{name}={scalar.sql}" for name, scalar in self.calls)
        return f"windowed({', '.join(self.partition)}; {calls}; {self.input.text})"


@dataclass(frozen=True)
class Grouped(Partitioned):
    """One row per group, of any aggregates; without keys one row, even for no input."""

    calls: tuple[tuple[str, Scalar], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        unique(self.columns, "group")
        for _, scalar in self.calls:
            known(scalar, self.input)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return self.partition + tuple(name for name, _ in self.calls)

    @cached_property
    def text(self) -> str:
        calls = ", ".join(f"{name}={scalar.sql}" for name, scalar in self.calls)
        return f"grouped({', '.join(self.partition)}; {calls}; {self.input.text})"


@dataclass(frozen=True)
class Top(Partitioned):
    """The first `limit` rows of every part in an order, after the first `offset`."""

    order: tuple[Scalar, ...]
    limit: int | None
    offset: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        for scalar in self.order:
            known(scalar, self.input)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return self.input.columns

    @cached_property
    def text(self) -> str:
        order = ", ".join(scalar.sql for scalar in self.order)
        rows = f"{'all' if self.limit is None else self.limit} from {self.offset}"
        return f"top({', '.join(self.partition)}; {rows} by {order}; {self.input.text})"


STATEFUL = (Aggregate, Distinct, Partitioned, Kept)
"""Nodes that keep something, each a step of its own: what they emit is netted."""
