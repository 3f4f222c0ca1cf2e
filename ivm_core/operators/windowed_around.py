"""Window functions without PARTITION BY, recomputed around the change.

    Δω(A) = ω((A + ΔA) where near)  −  ω(A)      each where the change reaches (`window_extent`)

A is read from the node's own rows: they have all columns of the input. `near` are the rows that
the change reaches, and those that they look back on and forward to. Of functions of all rows up to
a row, ω gives what they come to since the first of `near`; the rows before it add what is stored
beside the last of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.model.names import INTERNAL_PREFIX, PLACE, WEIGHT
from ivm_core.model.schema import Field, Schema
from ivm_core.model.types import BIGINT, BOOLEAN
from ivm_core.operators.consolidation import consolidated
from ivm_core.operators.formula import formula
from ivm_core.operators.operator import Form
from ivm_core.operators.partitioned import repeated
from ivm_core.operators.sql import (
    column,
    named,
    negated,
    number,
    relation,
    select,
    tree_of,
    union_all,
    weight,
)
from ivm_core.operators.window_extent import ADDED, GREATEST, LEAST, ROWS_BEFORE, SUM
from ivm_core.operators.windowed import WindowedOperator
from ivm_core.plan.partitioned import Windowed

if TYPE_CHECKING:
    from ivm_core.model.types import DataType
    from ivm_core.operators.operator import Rendering
    from ivm_core.operators.partitioned import PartitionedStatements
    from ivm_core.operators.window_extent import Extent

IS_REACHED = f"{INTERNAL_PREFIX}is_reached"
BEFORE = f"{INTERNAL_PREFIX}before"
COMBINED = {
    ROWS_BEFORE: ":x + COALESCE(:c, 0)",
    ADDED: ":x + COALESCE(:c, 0)",
    SUM: "CASE WHEN :c IS NULL THEN :x WHEN :x IS NULL THEN :c ELSE :x + :c END",
    LEAST: "LEAST(:x, :c)",
    GREATEST: "GREATEST(:x, :c)",
}


@dataclass(frozen=True)
class AroundStatements:
    """The statements of one such node in a tick."""

    parts: PartitionedStatements
    node: Windowed
    types: dict[str, DataType]
    """Of the input's columns."""
    extent: Extent

    @classmethod
    def of(
        cls, parts: PartitionedStatements, extent: Extent, rendering: Rendering
    ) -> AroundStatements:
        """For a node where the extent of a change is known."""
        node = parts.node
        if not isinstance(node, Windowed) or node.partition:
            raise TypeError("only a window of one partition has rows around a change")
        return cls(parts, node, dict(rendering.types(node.input)), extent)

    @property
    def key(self) -> str:
        """The first column of the order, as the node's own rows call it."""
        return self._stored[self.extent.column]

    @property
    def change_schema(self) -> Schema:
        """Columns of the change of the input, as the statement reads them."""
        fields = (Field(stored, self.types[ours]) for ours, stored in self._inputs)
        return Schema(tuple(fields), internal=True)

    @property
    def near_schema(self) -> Schema:
        """The node's own rows near the change, marked where it reaches them."""
        return Schema((*self.parts.schema, Field(IS_REACHED, BOOLEAN)), internal=True)

    @property
    def last_schema(self) -> Schema:
        """The last of the node's own rows that are not near, with how many there are."""
        return Schema((*self.parts.schema, Field(BEFORE, BIGINT)), internal=True)

    @property
    def needs_one_row_each(self) -> bool:
        """Whether rows that are equal in all the input's columns leave open which is the last."""
        specs = {name: tree_of(scalar).args.get("spec") for name, scalar in self.node.calls}
        sums = [specs[name] for name, how in self.extent.carried if how == SUM]
        return any(spec is not None and spec.args.get("kind") == "ROWS" for spec in sums)

    @property
    def change_name(self) -> str:
        """The relation of the input's change."""
        return f"{self.parts.output}@change"

    @property
    def near_name(self) -> str:
        """The relation of the node's own rows near the change."""
        return f"{self.parts.output}@near"

    @property
    def last_name(self) -> str:
        """The relation of the last rows before those near the change."""
        return f"{self.parts.output}@last"

    def change(self, rendering: Rendering) -> exp.Query | None:
        """ΔA, netted, under the names that the node's own rows have."""
        delta = rendering.render(self.node.input, Form.DELTA)
        if delta is None:
            return None
        outputs: list[exp.Expr] = [named(column(ours), stored) for ours, stored in self._inputs]
        return select([*outputs, weight()], consolidated(delta, self.types))

    def around(self) -> exp.Query:
        """Δω(A), not yet netted."""
        reached = column(IS_REACHED)
        near = relation(self.near_name)
        inputs: list[exp.Expr] = [named(column(stored), ours) for ours, stored in self._inputs]
        own = select([*inputs, reached.copy(), weight()], near)
        came = select(
            [*[each.copy() for each in inputs], named(exp.true(), IS_REACHED), weight()],
            relation(self.change_name),
        )
        types = {**self.types, IS_REACHED: BOOLEAN}
        rows = repeated(consolidated(union_all([own, came]), types), types)
        after = self._carried(WindowedOperator().over(self.node, rows, (IS_REACHED,)))
        before = select([column(name) for name in (*self.parts.schema.names, WEIGHT)], near.copy())
        return union_all([after, negated(before.where(reached.copy(), copy=False))])

    def _carried(self, query: exp.Query) -> exp.Query:
        """The rows that the change reaches, with what the rows before them add."""
        carried = dict(self.extent.carried)
        outputs = []
        for ours, stored in zip(self.node.columns, self.parts.schema.names, strict=True):
            value: exp.Expr = column(ours, "t")
            if ours in carried:
                value = self._combined(ours, carried[ours], value)
            outputs.append(named(value, stored))
        once = named(exp.cast(number(1), "BIGINT", dialect="spark"), WEIGHT)
        rows = select([*outputs, once], query.subquery("t", copy=False))
        rows = rows.where(column(IS_REACHED, "t"), copy=False)
        if not carried:
            return rows
        return rows.join(self._last().subquery("c", copy=False), join_type="CROSS", copy=False)

    def _combined(self, call: str, how: str, value: exp.Expr) -> exp.Expr:
        of = self.parts.schema.field(self._stored[call]).type
        known = column(BEFORE if how == ROWS_BEFORE else self._stored[call], "c")
        both = formula(COMBINED[how], x=value, c=known)
        return exp.cast(both, of.ddl, dialect="spark")

    def _last(self) -> exp.Query:
        """One row: what the calls come to in the last row before."""
        outputs: list[exp.Expr] = [named(exp.Max(this=column(BEFORE)), BEFORE)]
        source: list[exp.Expr] = [column(name) for name in (*self.parts.schema.names, BEFORE)]
        windows = {name: tree_of(scalar) for name, scalar in self.node.calls}
        for position, (call, how) in enumerate(self.extent.carried):
            stored = self._stored[call]
            value = column(stored)
            if how == ROWS_BEFORE:
                continue
            if how == LEAST:
                outputs.append(named(exp.Min(this=value), stored))
            elif how in (ADDED, GREATEST):
                # neither ever gets less from row to row
                outputs.append(named(exp.Max(this=value), stored))
            else:
                place = f"{PLACE}{position}"
                source.append(named(self._place(windows[call]), place))
                last = exp.Anonymous(this="MAX_BY", expressions=[value, column(place)])
                outputs.append(named(last, stored))
        return select(outputs, select(source, relation(self.last_name)))

    def _place(self, window: exp.Expr) -> exp.Expr:
        """The place of a stored row in the order of a call."""
        order = window.args["order"].copy()
        for each in list(order.find_all(exp.Column)):
            each.replace(column(self._stored[each.name]))
        return exp.Window(this=exp.Anonymous(this="ROW_NUMBER"), order=order, over="OVER")

    @property
    def _stored(self) -> dict[str, str]:
        return dict(zip(self.node.columns, self.parts.schema.names, strict=True))

    @property
    def _inputs(self) -> list[tuple[str, str]]:
        """The input's columns, and what the node's own rows call them."""
        return [(name, self._stored[name]) for name in self.node.input.columns]
