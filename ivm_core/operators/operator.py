"""The contract of an operator: how a plan node is rendered in each of its forms.

A relation R with the change ΔR in this tick has the forms
    OLD    R before the tick            DELTA   ΔR, netted or not
    NEW    R + ΔR                       PLAIN   R without weights, for the normalised query
OLD, NEW and DELTA carry `_weight`. A form that is known to be empty renders as None.

An operator is one of
    Linear      op(A + B) = op(A) + op(B), so Δop(A) = op(ΔA)
    Bilinear    op(A + B, C) = op(A, C) + op(B, C), and so in every input
    Stateful    anything else: it keeps a trace of its own and is rendered as statements (`state`)
It owns no storage and starts no job.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from ivm_core.model.types import DataType
    from ivm_core.plan.nodes import Node
    from ivm_core.plan.scalar import Scalar


class Form(Enum):
    """Which state of a relation is meant."""

    PLAIN = "plain"
    OLD = "old"
    NEW = "new"
    DELTA = "delta"


class Rendering(Protocol):
    """What an operator may ask while it renders."""

    dirty: frozenset[str]
    """Relations that changed in this tick."""
    empty: frozenset[str]
    """Relations that had no rows before this tick."""

    exact: bool
    """Whether plain sums are spelled out so that they don't depend on the order of rows."""

    def render(self, node: Node, form: Form) -> exp.Query | None:
        """The query of an input."""

    def types(self, node: Node) -> Mapping[str, DataType]:
        """The types of a join's columns."""

    def is_total(self, scalar: Scalar, node: Node) -> bool:
        """Whether the scalar can't raise on any row."""

    def has_phantoms(self, node: Node, form: Form) -> bool:
        """Whether the form holds rows that cancel out and exist in no state."""


class Linear(Protocol):
    """Δop(A) = op(ΔA): the same query over every form of its inputs."""

    def render(self, node: Node, form: Form, rendering: Rendering) -> exp.Query | None:
        """The query in that form."""


class Bilinear(Protocol):
    """Δ(A ⋈ B) = ΔA ⋈ B + A′ ⋈ ΔB, one term a changed input."""

    def render(self, node: Node, form: Form, rendering: Rendering) -> exp.Query | None:
        """The query in that form."""
