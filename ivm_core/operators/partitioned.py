"""Nodes that are recomputed by affected key: what window functions, any aggregates and LIMIT share.

    ΔP(A) = Σ over keys k in ΔA:  P((A + ΔA) where key = k)  −  P(A where key = k)

The rows after the tick are computed from all rows of the affected keys, by Spark's own operator;
those before it are read from the node's own trace.

Of the first rows in an order (`Top`), those behind them are not asked for while no rows go:

    P(A + ΔA) = P(P(A) + ΔA)      for ΔA without deletions
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ivm_core.model.names import INTERNAL_PREFIX, WEIGHT
from ivm_core.model.schema import Field, Schema
from ivm_core.model.types import BOOLEAN
from ivm_core.operators.consolidation import consolidated
from ivm_core.operators.operator import Form
from ivm_core.operators.scan import bound_name
from ivm_core.operators.sql import (
    column,
    named,
    negated,
    number,
    relation,
    select,
    union_all,
    weight,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ivm_core.model.types import DataType
    from ivm_core.operators.operator import Rendering
    from ivm_core.plan.partitioned import Partitioned


class PartitionedOperator(ABC):
    """The plain form, for the normalised query; the tick's is in `PartitionedStatements`."""

    def render(self, node: Any, form: Form, rendering: Rendering) -> exp.Query | None:
        """The node over its plain input."""
        if form is not Form.PLAIN:
            raise TypeError(f"a {type(node).__name__} needs its own rows to render its delta")
        source = rendering.render(node.input, Form.PLAIN)
        if source is None:
            source = _no_rows(rendering.types(node.input))
        return self.over(node, source)

    @abstractmethod
    def over(self, node: Any, source: exp.Query) -> exp.Query:
        """The node's rows over a query without weights that has the input's columns."""


@dataclass(frozen=True)
class PartitionedStatements:
    """The statement of one such node in a tick."""

    node: Partitioned
    operator: PartitionedOperator
    output: str
    """Name of the node's relation."""
    schema: Schema
    """The node's columns as they are stored."""

    @property
    def partition(self) -> dict[str, str]:
        """The input's key columns, and what the node's own trace calls them."""
        stored = dict(zip(self.node.columns, self.schema.names, strict=True))
        return {name: stored[name] for name in self.node.partition}

    def rows(self, rendering: Rendering) -> exp.Query:
        """P(A′): all rows, for the first hydration."""
        types = rendering.types(self.node.input)
        source = rendering.render(self.node.input, Form.NEW)
        if source is None:
            return self._computed(_no_rows(types))
        if rendering.has_phantoms(self.node.input, Form.NEW):
            source = consolidated(source, types)
        return self._computed(repeated(source, types))

    @property
    def change_schema(self) -> Schema:
        """Columns of the change of the input."""
        return Schema((Field("present", BOOLEAN),), internal=True)

    def input_change(self, rendering: Rendering) -> exp.Query | None:
        """A row for every row that changes in the input."""
        delta = rendering.render(self.node.input, Form.DELTA)
        if delta is None:
            return None
        netted = consolidated(delta, rendering.types(self.node.input))
        return select([named(exp.true(), "present"), weight()], netted)

    def change(self, rendering: Rendering) -> exp.Query | None:
        """ΔP(A), not yet netted."""
        delta = rendering.render(self.node.input, Form.DELTA)
        if delta is None:
            return None
        types = rendering.types(self.node.input)
        source = rendering.render(self.node.input, Form.NEW)
        before = self._before(delta)
        if self.node.partition and source is not None:
            source = _of_keys(source, delta, {name: name for name in self.node.partition})
        if source is None:
            after = self._computed(_no_rows(types))
        else:
            after = self._computed(repeated(consolidated(source, types), types))
        return union_all([after, negated(before)])

    def growth(self, rendering: Rendering) -> exp.Query | None:
        """ΔP(A) = P(P(A) + ΔA) − P(A), of first rows and a change that takes no rows away."""
        delta = rendering.render(self.node.input, Form.DELTA)
        if delta is None:
            return None
        types = rendering.types(self.node.input)
        before = self._before(delta)
        pairs = zip(self.node.columns, self.schema.names, strict=True)
        outputs: list[exp.Expr] = [named(column(stored), ours) for ours, stored in pairs]
        known = union_all([select([*outputs, weight()], before.copy()), delta])
        after = self._computed(repeated(consolidated(known, types), types))
        return union_all([after, negated(before)])

    def _before(self, delta: exp.Query) -> exp.Query:
        """P(A), of the keys that the delta has."""
        old = relation(bound_name(self.output, Form.OLD))
        rows: exp.Query = select([column(name) for name in (*self.schema.names, WEIGHT)], old)
        return _of_keys(rows, delta.copy(), self.partition) if self.node.partition else rows

    def _computed(self, source: exp.Query) -> exp.Query:
        """The node over plain rows, each of its rows once."""
        query = self.operator.over(self.node, source)
        pairs = zip(self.node.columns, self.schema.names, strict=True)
        outputs = [named(column(ours), stored) for ours, stored in pairs]
        once = named(exp.cast(number(1), "BIGINT", dialect="spark"), WEIGHT)
        return select([*outputs, once], query)


def _of_keys(query: exp.Query, delta: exp.Query, names: Mapping[str, str]) -> exp.Query:
    """The rows whose keys are in the delta; `names` gives the query's name of each key."""
    keys = select([column(key) for key in names], delta).distinct(copy=False)
    same = [
        exp.NullSafeEQ(this=column(ours, "b"), expression=column(key, "k"))
        for key, ours in names.items()
    ]
    wanted = query.named_selects
    restricted = select([column(name, "b") for name in wanted], query.subquery("b", copy=False))
    return restricted.join(
        keys.subquery("k", copy=False), on=exp.and_(*same), join_type="LEFT SEMI", copy=False
    )


def repeated(query: exp.Query, types: Iterable[str]) -> exp.Query:
    """Every row as often as its weight says."""
    copies = exp.Anonymous(
        this="ARRAY_REPEAT",
        expressions=[exp.true(), exp.cast(weight(), "INT", dialect="spark")],
    )
    alias = exp.TableAlias(
        this=exp.to_identifier("g", quoted=True),
        columns=[exp.to_identifier(f"{INTERNAL_PREFIX}copy", quoted=True)],
    )
    repeated = select([column(name) for name in types], query)
    repeated.set("laterals", [exp.Lateral(this=exp.Explode(this=copies), view=True, alias=alias)])
    return repeated


def _no_rows(types: Mapping[str, DataType]) -> exp.Query:
    """A query of these columns that has no rows."""
    outputs = [
        named(exp.cast(exp.null(), each.ddl, dialect="spark"), name) for name, each in types.items()
    ]
    return select(outputs, None).where(exp.false(), copy=False)
