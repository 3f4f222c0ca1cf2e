"""The relational tree: frozen nodes whose constructors refuse malformed trees.

Every node names its output columns. Names are unique within a node, and expressions refer to the
names of the node's input. A scan of `orders AS o` yields `o.id`, `o.amount`, …: one quoted
identifier each, so that a join of any inputs never has two columns of one name.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ivm_core.model.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ivm_core.plan.scalar import Scalar

NOW = "__now"
TODAY = "__today"
CLOCKS = {NOW: ("now", "TIMESTAMP"), TODAY: ("today", "DATE")}
"""Logical time as relations of one row: views that read them are dirty when they change."""

PRESENT = "present"
"""The column of rows of which nothing is wanted but that they are there."""


class Node:
    """A relation computed from its inputs."""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the output columns, in order."""
        raise NotImplementedError

    @property
    def inputs(self) -> tuple[Node, ...]:
        """Nodes that this one reads."""
        return ()

    def walk(self) -> Iterator[Node]:
        """All nodes from here down, inputs first; one that is read in several places once."""
        seen: set[int] = set()

        def visit(node: Node) -> Iterator[Node]:
            if id(node) in seen:
                return
            seen.add(id(node))
            for child in node.inputs:
                yield from visit(child)
            yield node

        yield from visit(self)

    @cached_property
    def relations(self) -> frozenset[str]:
        """Names of all relations that are scanned below."""
        return frozenset(node.relation for node in self.walk() if isinstance(node, Scan))

    @cached_property
    def text(self) -> str:
        """Canonical text of the tree: equal texts mean equal plans."""
        raise NotImplementedError

    @cached_property
    def fingerprint(self) -> str:
        """Short stable identity of the tree."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Scan(Node):
    """All rows of a named relation; `fields` are the relation's columns that are wanted."""

    relation: str
    alias: str
    fields: tuple[str, ...]

    def __post_init__(self) -> None:
        unique(self.fields, "scan")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"{self.alias}.{name}" for name in self.fields)

    def field_of(self, column: str) -> str:
        """The relation's own name of an output column."""
        return self.fields[self.columns.index(column)]

    @cached_property
    def text(self) -> str:
        return f"scan({self.relation} as {self.alias}: {', '.join(self.fields)})"


@dataclass(frozen=True)
class Constant(Node):
    """One row that says only that it is there: what a SELECT without FROM reads."""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return (PRESENT,)

    @cached_property
    def text(self) -> str:
        return "one row"


@dataclass(frozen=True)
class Listed(Node):
    """Rows that are written out, as literals."""

    names: tuple[str, ...]
    rows: tuple[tuple[Scalar, ...], ...]

    def __post_init__(self) -> None:
        unique(self.names, "list of rows")
        if not self.rows or any(len(row) != len(self.names) for row in self.rows):
            raise InternalError(f"rows that don't have the columns {self.names}")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return self.names

    @cached_property
    def text(self) -> str:
        return f"rows({', '.join(self.names)}: {self.values})"

    @cached_property
    def values(self) -> str:
        """The rows as text."""
        return ", ".join(f"({', '.join(each.sql for each in row)})" for row in self.rows)


@dataclass(frozen=True)
class Filter(Node):
    """Rows of the input for which the predicate is true."""

    input: Node
    predicate: Scalar

    def __post_init__(self) -> None:
        known(self.predicate, self.input)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return self.input.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @cached_property
    def text(self) -> str:
        return f"filter({self.predicate.sql}, {self.input.text})"


@dataclass(frozen=True)
class Project(Node):
    """One output row per input row."""

    input: Node
    outputs: tuple[tuple[str, Scalar], ...]

    def __post_init__(self) -> None:
        unique(self.columns, "project")
        for _, scalar in self.outputs:
            known(scalar, self.input)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.outputs)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def source_of(self, column: str) -> str | None:
        """The input column that an output column merely renames, or None."""
        scalar = self.scalar_of(column)
        return scalar.column if scalar.is_column else None

    def scalar_of(self, column: str) -> Scalar:
        """What an output column is."""
        return dict(self.outputs)[column]

    @cached_property
    def text(self) -> str:
        outputs = ", ".join(f"{name}={scalar.sql}" for name, scalar in self.outputs)
        return f"project({outputs}; {self.input.text})"


@dataclass(frozen=True)
class UnionAll(Node):
    """All rows of all inputs, columns matched by position and named by the first input."""

    branches: tuple[Node, ...]

    def __post_init__(self) -> None:
        widths = {len(branch.columns) for branch in self.branches}
        if len(widths) != 1:
            raise InternalError(f"UNION ALL of inputs with {sorted(widths)} columns")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return self.branches[0].columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.branches

    @cached_property
    def text(self) -> str:
        return f"union({'; '.join(branch.text for branch in self.branches)})"


@dataclass(frozen=True)
class Join(Node):
    """The product of all inputs, kept where every condition is true."""

    parts: tuple[Node, ...]
    conditions: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        if len(self.parts) < 2:
            raise InternalError("a join needs two inputs")
        unique(self.columns, "join")
        for condition in self.conditions:
            known(condition, self)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for part in self.parts for column in part.columns)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts

    def part_of(self, column: str) -> int:
        """Position of the input that has the column."""
        return next(i for i, part in enumerate(self.parts) if column in part.columns)

    @cached_property
    def text(self) -> str:
        conditions = " and ".join(condition.sql for condition in self.conditions) or "true"
        return f"join({conditions}; {'; '.join(part.text for part in self.parts)})"


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate: COUNT_STAR, COUNT, SUM, AVG, MIN or MAX of an input column."""

    name: str
    function: str
    argument: str | None

    @cached_property
    def text(self) -> str:
        return f"{self.name}={self.function}({self.argument or ''})"


@dataclass(frozen=True)
class Aggregate(Node):
    """One row per group of equal keys; without keys one row, even for no input."""

    input: Node
    keys: tuple[tuple[str, str], ...]
    """(output name, input column)."""
    calls: tuple[AggregateCall, ...]

    def __post_init__(self) -> None:
        unique(self.columns, "aggregate")
        wanted = [column for _, column in self.keys]
        wanted += [call.argument for call in self.calls if call.argument is not None]
        missing = [column for column in wanted if column not in self.input.columns]
        if missing:
            raise InternalError(f"aggregate over absent columns {missing}")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.keys) + tuple(call.name for call in self.calls)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @cached_property
    def text(self) -> str:
        keys = ", ".join(f"{name}={column}" for name, column in self.keys)
        calls = ", ".join(call.text for call in self.calls)
        return f"aggregate({keys}; {calls}; {self.input.text})"


@dataclass(frozen=True)
class Distinct(Node):
    """Each distinct row of the input once."""

    input: Node

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return self.input.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @cached_property
    def text(self) -> str:
        return f"distinct({self.input.text})"


@dataclass(frozen=True)
class Match(Node):
    """Rows of the left input by the rows of the right one for which every condition is true.

    SEMI: those that have one. ANTI: those that have none. LEFT: each beside every one that it has,
    or beside NULLs.
    """

    left: Node
    right: Node
    kind: str
    conditions: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        if self.kind not in ("SEMI", "ANTI", "LEFT"):
            raise InternalError(f"a match of kind {self.kind}")
        unique(self.left.columns + self.right.columns, "match")
        there = set(self.left.columns + self.right.columns)
        for condition in self.conditions:
            missing = sorted(condition.columns - there)
            if missing:
                raise InternalError(f"{condition.sql} reads absent columns {missing}")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return self.left.columns + (self.right.columns if self.kind == "LEFT" else ())

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @cached_property
    def text(self) -> str:
        conditions = " and ".join(condition.sql for condition in self.conditions) or "true"
        return f"{self.kind.lower()}({conditions}; {self.left.text}; {self.right.text})"


@dataclass(frozen=True)
class SetOperation(Node):
    """INTERSECT or EXCEPT [ALL]: rows by whether each input has them, NULLs being equal."""

    left: Node
    right: Node
    kind: str

    def __post_init__(self) -> None:
        if len(self.left.columns) != len(self.right.columns):
            raise InternalError(f"{self.kind} of inputs of different width")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return self.left.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @cached_property
    def text(self) -> str:
        return f"{self.kind.lower()}({self.left.text}; {self.right.text})"


@dataclass(frozen=True)
class Negated(Node):
    """The input with every weight negated: what a sum subtracts. No query of its own has it."""

    input: Node

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return self.input.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @cached_property
    def text(self) -> str:
        return f"minus({self.input.text})"


@dataclass(frozen=True)
class Kept(Node):
    """The input's rows, which the view keeps because several of its nodes read them.

    `keys` are the columns by which they are looked up.
    """

    input: Node
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        missing = [name for name in self.keys if name not in self.input.columns]
        if missing:
            raise InternalError(f"rows kept by absent columns {missing}")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return self.input.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @cached_property
    def text(self) -> str:
        return f"kept({', '.join(self.keys)}: {self.input.text})"


@dataclass(frozen=True)
class Repeated(Node):
    """Every row as often as its column `times` says; that column is dropped."""

    input: Node
    times: str

    def __post_init__(self) -> None:
        if self.times not in self.input.columns:
            raise InternalError(f"no column {self.times} says how often rows are repeated")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for column in self.input.columns if column != self.times)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @cached_property
    def text(self) -> str:
        return f"repeat({self.times}; {self.input.text})"


@dataclass(frozen=True)
class Generate(Node):
    """The input's columns beside every row of a generator, `explode(xs)`, over each input row."""

    input: Node
    generator: Scalar
    is_outer: bool
    """Whether a row for which nothing is generated stays, beside NULLs."""
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        known(self.generator, self.input)
        unique(self.columns, "generate")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return self.input.columns + self.names

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @cached_property
    def text(self) -> str:
        names = ", ".join(self.names)
        outer = "outer " if self.is_outer else ""
        return f"generate({outer}{self.generator.sql} as {names}; {self.input.text})"


def unique(names: tuple[str, ...], where: str) -> None:
    """InternalError for two columns of one name, whatever their case."""
    folded = [name.lower() for name in names]
    twice = sorted({name for name in folded if folded.count(name) > 1})
    if twice:
        raise InternalError(f"{where} with columns of one name: {twice}")


def known(scalar: Scalar, node: Node) -> None:
    """InternalError for an expression that reads what the node doesn't have."""
    missing = sorted(scalar.columns - set(node.columns))
    if missing:
        raise InternalError(f"{scalar.sql} reads absent columns {missing}")
