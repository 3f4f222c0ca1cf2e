"""Orders made total: what SQL leaves open about order becomes part of the query.

    LIMIT, row_number, lag, frames of ROWS    the remaining columns break ties
    first, last, nth_value over peers         by the place in that total order
    aggregates of a group                     `compile.settled_aggregates`
    sums of FLOAT and DOUBLE in a window      in the total order, peers together

So the normalised query has one answer, however Spark lays out the rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.compile.settled_aggregates import (
    PICKS,
    filter_of,
    in_order,
    in_order_of_values,
    listed,
    settle_values,
    skips_nulls,
    ties,
)
from ivm_core.model.errors import Unsupported
from ivm_core.operators.calls import core, function_name
from ivm_core.operators.exact_moments import NAMES
from ivm_core.operators.formula import formula
from ivm_core.operators.sql import column, scalar_of, tree_of
from ivm_core.plan.partitioned import Grouped, Top, Windowed
from ivm_core.plan.rewriting import rewrite

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ivm_core.model.types import DataType
    from ivm_core.plan.nodes import Node
    from ivm_core.plan.scalar import Scalar

    Types = Mapping[str, DataType]

RANKS = frozenset(["rank", "dense_rank", "percent_rank", "cume_dist"])
PLACES = frozenset(["row_number", "ntile", "lag", "lead"])
ROUNDED = NAMES | {"avg", "mean", "sum", "try_avg", "try_sum"}
"""Aggregates whose result is rounded on the way, where it is a floating-point number."""
WHOLE = {"start": "UNBOUNDED", "start_side": "PRECEDING", "end": "UNBOUNDED"}


def with_total_orders(plan: Node, types_of: Callable[[Node], Types], where: str) -> Node:
    """The plan with nothing left open about order."""

    def rule(node: Node) -> Node:
        if isinstance(node, Top):
            order = [tree_of(scalar) for scalar in node.order]
            order += ties(order, types_of(node.input))
            return replace(node, order=tuple(scalar_of(each) for each in order))
        if isinstance(node, Windowed):
            calls: list[tuple[str, Scalar]] = []
            for name, scalar in node.calls:
                settled = _WindowCall(name, tree_of(scalar), types_of(node.input), where).settled()
                calls += [(each, scalar_of(tree)) for each, tree in settled]
            return replace(node, calls=tuple(calls))
        if isinstance(node, Grouped):
            types = types_of(node.input)
            settled_calls = [
                (name, scalar_of(in_order(tree_of(scalar), types, where)))
                for name, scalar in node.calls
            ]
            return replace(node, calls=tuple(settled_calls))
        return node

    return rewrite(plan, rule)


class _WindowCall:
    """One window function."""

    def __init__(self, name: str, tree: exp.Expr, types: Types, where: str) -> None:
        if not isinstance(tree, exp.Window):
            raise TypeError(f"{tree} is no window function")
        self._name = name
        self._tree = tree
        self._types = types
        self._where = where
        self._function = core(tree.this)
        self._kind = function_name(self._function)
        order = tree.args.get("order")
        self._order: list[exp.Expr] = [] if order is None else list(order.expressions)
        spec = tree.args.get("spec")
        self._has_rows = spec is not None and spec.args.get("kind") == "ROWS"
        self._has_spec = spec is not None and not _is_default(spec)

    def settled(self) -> list[tuple[str, exp.Expr]]:
        """The call, and what it needs beside it, with nothing left open."""
        if self._kind in RANKS:
            return [(self._name, self._tree)]
        settle_values(self._function, self._types)
        if self._kind in ("listagg", "string_agg"):
            return [(self._name, self._listed())]
        if self._kind in PLACES or self._has_rows:
            return [(self._name, self._ordered(self._tree))]
        is_rounded = self._kind in ROUNDED and self._is_rounded()
        if self._kind in PICKS or is_rounded:
            if not self._order:
                whole = self._ordered(self._tree)
                whole.set("spec", exp.WindowSpec(kind="ROWS", end_side="FOLLOWING", **WHOLE))
                return [(self._name, whole)]
            return self._running() if is_rounded else self._picked()
        if self._kind == "collect_set":
            return [(self._name, in_order_of_values(self._tree))]
        return [(self._name, self._tree)]

    def _ordered(self, window: exp.Expr) -> exp.Expr:
        """The window in the total order."""
        window = window.copy()
        whole = [each.copy() for each in self._order]
        window.set("order", exp.Order(expressions=[*whole, *ties(whole, self._types)]))
        return window

    def _is_rounded(self) -> bool:
        """Whether it adds doubles; an average of BIGINT does, one of DECIMAL doesn't."""
        kinds = {self._types[each.name].kind for each in self._function.find_all(exp.Column)}
        if self._kind in ("sum", "try_sum"):
            return bool(kinds & {"FLOAT", "DOUBLE"})
        if self._kind in ("avg", "mean", "try_avg"):
            return bool(kinds & {"FLOAT", "DOUBLE", "BIGINT"})
        return True

    def _listed(self) -> exp.Expr:
        """A list of texts over a whole partition, in the order of the values."""
        if self._order or self._tree.args.get("spec"):
            raise Unsupported(
                f"{self._kind.upper()} over a window with an order",
                position=self._where,
                reason="which of its peers come first is open",
                rewrite="ARRAY_JOIN(COLLECT_LIST(x) OVER (…), ',')",
            )
        window = self._tree.copy()
        window.set("this", listed(window.this, core(window.this)))
        return window

    def _place(self) -> tuple[str, exp.Expr]:
        """The place of each row in the total order of its partition."""
        window = exp.Window(
            this=exp.Anonymous(this="ROW_NUMBER"),
            partition_by=[each.copy() for each in self._tree.args.get("partition_by") or ()],
            over="OVER",
        )
        return f"{self._name}.place", self._ordered(window)

    def _running(self) -> list[tuple[str, exp.Expr]]:
        """A running total that ends with the last of the peers."""
        if self._has_spec:
            raise Unsupported(
                f"{self._kind.upper()} of floating-point numbers over a frame of RANGE",
                position=self._where,
                reason="the order in which peers are added is open, and so is the last bit",
                rewrite=f"{self._kind.upper()}(CAST(x AS DECIMAL(38, 10))), or a frame of ROWS",
            )
        place, numbered = self._place()
        rows = self._ordered(self._tree)
        rows.set(
            "spec",
            exp.WindowSpec(
                kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW"
            ),
        )
        partial = f"{self._name}.rows"
        last = self._tree.copy()
        last.set("this", formula("MAX_BY(:x, :place)", x=column(partial), place=column(place)))
        return [(place, numbered), (partial, rows), (self._name, last)]

    def _picked(self) -> list[tuple[str, exp.Expr]]:
        """A value among peers by its place."""
        place, numbered = self._place()
        value, options = self._function.expressions[0], self._function.expressions[1:]
        if isinstance(value, exp.IgnoreNulls):
            value, skips = value.this, True
        else:
            skips = skips_nulls(self._tree.this, options if self._kind != "nth_value" else [])
        at: exp.Expr = column(place)
        if skips or self._kind in ("collect_list", "array_agg"):
            at = exp.case().when(value.copy().is_(exp.null()).not_(), at)
        kept = filter_of(self._tree.this)
        if kept is not None:
            at = exp.case().when(kept, at)
        window = self._tree.copy()
        if PICKS[self._kind]:
            text = f"{PICKS[self._kind].upper()}_BY(:x, :at)"
            window.set("this", formula(text, x=value, at=at))
            return [(place, numbered), (self._name, window)]
        pair = formula(
            "CASE WHEN NOT :at IS NULL THEN NAMED_STRUCT('at', :at, 'x', :x) END", x=value, at=at
        )
        window.set("this", exp.Anonymous(this="COLLECT_LIST", expressions=[pair]))
        values = formula("TRANSFORM(ARRAY_SORT(:pairs), e -> e.x)", pairs=window)
        if self._kind == "nth_value":
            values = formula("GET(:xs, :n - 1)", xs=values, n=options[0])
        return [(place, numbered), (self._name, values)]


def _is_default(spec: exp.Expr) -> bool:
    """Whether a frame is the one that an ORDER BY has anyway."""
    return (
        spec.args.get("kind") == "RANGE"
        and spec.args.get("start") == "UNBOUNDED"
        and spec.args.get("end") in (None, "CURRENT ROW")
    )
