"""The delta of a tree over rows that are on the driver, by the operators' own equations.

    Δσ(A) = σ(ΔA)        Δπ(A) = π(ΔA)        Δ(A + B) = ΔA + ΔB        Δ(−A) = −ΔA
    Δ(A₁ ⋈ … ⋈ Aₙ) = Σᵢ  A₁′ ⋈ … ⋈ Aᵢ₋₁′ ⋈ ΔAᵢ ⋈ Aᵢ₊₁ ⋈ … ⋈ Aₙ        (′ is NEW)

A statement costs Spark some hundred milliseconds, however few rows it reads. Filters, renamings,
exact arithmetic (`scalars_on_driver`) and joins (`pairs_on_driver`) mean the same in Arrow as in
Spark, so that small changes go through them where they are. Everything else is `OnlySpark`: some of
it for tables without rows already, some, like what can raise, only in the middle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ivm_core.model.names import WEIGHT
from ivm_core.operators.accumulator import OnlySpark, TooMany
from ivm_core.operators.arrow_types import to_arrow
from ivm_core.operators.join import terms_of
from ivm_core.operators.netting import stacked
from ivm_core.operators.operator import Form
from ivm_core.operators.pairs_on_driver import MOST_BYTES, joined, kept
from ivm_core.operators.row_sets import taken_away
from ivm_core.operators.scalars_on_driver import values_of
from ivm_core.plan.nodes import Filter, Join, Negated, Project, Scan, UnionAll

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ivm_core.model.types import DataType
    from ivm_core.plan.nodes import Node


class DeltaOnDriver:
    """Evaluates trees over the rows that a tick has on the driver."""

    def __init__(
        self,
        rows_of: Callable[[str, Form], pa.Table],
        types_of: Callable[[Node], Mapping[str, DataType]],
        dirty: frozenset[str],
        empty: frozenset[str] = frozenset(),
    ) -> None:
        """`rows_of` gives a relation's OLD or DELTA, `types_of` what Spark says of a projection.

        `dirty` relations have changed, `empty` ones had no rows before. Both may raise `OnlySpark`.
        """
        self._rows_of = rows_of
        self._types_of = types_of
        self._dirty = dirty
        self._empty = empty
        self._found: dict[tuple[int, Form], pa.Table | None] = {}
        self._bytes = 0

    def change(self, node: Node) -> pa.Table:
        """The delta in the node's columns, with weights; it is not netted."""
        found = self._rows(node, Form.DELTA)
        if found is None:
            raise OnlySpark("nothing of it has changed")
        return found

    def _rows(self, node: Node, form: Form) -> pa.Table | None:
        """A node in a form; None where it is known to be empty."""
        key = (id(node), form)
        if key not in self._found:
            self._found[key] = self._evaluated(node, form)
        return self._found[key]

    def _evaluated(self, node: Node, form: Form) -> pa.Table | None:
        if form is Form.DELTA and node.relations.isdisjoint(self._dirty):
            return None
        if isinstance(node, Join):
            is_change = form is Form.DELTA
            terms = terms_of(node, self._dirty) if is_change else [[form] * len(node.parts)]
            return _sum([self._pairs(node, forms) for forms in terms])
        if form is Form.NEW:
            return _sum([self._rows(node, each) for each in (Form.OLD, Form.DELTA)])
        if isinstance(node, Scan):
            return self._scanned(node, form)
        if isinstance(node, UnionAll):
            names = [*node.columns, WEIGHT]
            branches = [self._rows(each, form) for each in node.branches]
            return _sum([each if each is None else each.rename_columns(names) for each in branches])
        if not isinstance(node, Filter | Project | Negated):
            raise OnlySpark(type(node).__name__)
        rows = self._rows(node.input, form)
        if rows is None:
            return None
        if isinstance(node, Filter):
            return kept(rows, node.predicate)
        return taken_away(rows) if isinstance(node, Negated) else self._projected(node, rows)

    def _scanned(self, node: Scan, form: Form) -> pa.Table | None:
        if form is Form.OLD and node.relation in self._empty:
            return None
        rows = self._rows_of(node.relation, form)
        arrays = [rows.column(each) for each in (*node.fields, WEIGHT)]
        return pa.table(arrays, names=[*node.columns, WEIGHT])

    def _projected(self, node: Project, rows: pa.Table) -> pa.Table:
        columns = []
        for name, scalar in node.outputs:
            if scalar.is_column:
                columns.append(rows.column(scalar.column))
                continue
            found = values_of(scalar, rows)
            is_number = pa.types.is_integer(found.type) or pa.types.is_decimal(found.type)
            of = self._types_of(node).get(name)
            if not is_number or of is None or found.type != to_arrow(of):
                raise OnlySpark("an expression of another type")
            columns.append(found)
        return pa.table([*columns, rows.column(WEIGHT)], names=[*node.columns, WEIGHT])

    def _pairs(self, node: Join, forms: list[Form]) -> pa.Table | None:
        """The product of the parts in these forms."""
        parts = []
        for part, form in zip(node.parts, forms, strict=True):
            rows = self._rows(part, form)
            if rows is None:
                return None
            parts.append(rows)
        made = joined(node, parts)
        self._bytes += made.nbytes
        if self._bytes > MOST_BYTES:
            raise TooMany(f"{self._bytes >> 20} MiB of pairs")
        return made


def _sum(parts: list[pa.Table | None]) -> pa.Table | None:
    there = [each for each in parts if each is not None]
    return stacked(*there) if there else None
