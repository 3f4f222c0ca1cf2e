"""Orders made total: what SQL leaves open about order becomes part of the query.

    LIMIT, row_number, lag, frames of ROWS    the remaining columns break ties
    first, last, nth_value over peers         by the place in that total order
    collect_list, collect_set, listagg        in the order of their values, or what is stated first
    min_by, max_by, mode                      among equals by the value
    first, last of a group                    the row that is first or last by all columns it reads
    approx_percentile                         the exact one
    sums of FLOAT and DOUBLE in a window      in the total order, peers together
    variances, correlations, regressions      from exact sums (`operators.exact_moments`)

So the normalised query has one answer, however Spark lays out the rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.model.errors import Unsupported
from ivm_core.operators.calls import WRAPPERS, core, function_name
from ivm_core.operators.consolidation import has_float
from ivm_core.operators.exact_moments import NAMES, gathered, moment_of
from ivm_core.operators.extremes import with_one_zero
from ivm_core.operators.formula import formula
from ivm_core.operators.row_identity import encoded_column
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
PICKS = {
    "first": "min",
    "first_value": "min",
    "last": "max",
    "last_value": "max",
    "nth_value": "",
    "collect_list": "",
    "array_agg": "",
}
ROUNDED = NAMES | {"avg", "mean", "sum", "try_avg", "try_sum"}
"""Aggregates whose result is rounded on the way, where it is a floating-point number."""
ONE_ZERO = frozenset(
    [
        "collect_set",
        "max",
        "median",
        "min",
        "mode",
        "percentile",
        "percentile_cont",
        "percentile_disc",
    ]
)
"""Aggregates that give back one of their values, or count them."""
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
                (name, scalar_of(_in_order(tree_of(scalar), types, where)))
                for name, scalar in node.calls
            ]
            return replace(node, calls=tuple(settled_calls))
        return node

    return rewrite(plan, rule)


def ties(order: list[exp.Expr], types: Types) -> list[exp.Expr]:
    """The columns that an order lacks; where values can be equal and differ, their bits."""
    there = {each.this.name for each in order if isinstance(each.this, exp.Column)}
    found: list[exp.Expr] = [_ascending(column(name)) for name in types if name not in there]
    found += [
        _ascending(encoded_column(column(name), each))
        for name, each in types.items()
        if has_float(each)
    ]
    return found


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
        _settle_values(self._function, self._types)
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
            return [(self._name, _sorted(self._tree))]
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
        window.set("this", _listed(window.this, core(window.this)))
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
            skips = _skips_nulls(self._tree.this, options if self._kind != "nth_value" else [])
        at: exp.Expr = column(place)
        if skips or self._kind in ("collect_list", "array_agg"):
            at = exp.case().when(value.copy().is_(exp.null()).not_(), at)
        kept = _filter_of(self._tree.this)
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


def _in_order(call: exp.Expr, types: Types, where: str) -> exp.Expr:
    """A call of an aggregate whose result does not depend on the order of rows."""
    function = core(call)
    kind = function_name(function)
    _settle_values(function, types)
    floats = [each for each in function.find_all(exp.Column) if has_float(types[each.name])]
    kinds = {types[each.name].kind for each in function.find_all(exp.Column)}
    if kind in ("try_sum", "try_avg") and not kinds <= {"TINYINT", "SMALLINT", "INT"}:
        raise Unsupported(
            f"{kind} of {', '.join(sorted(kinds))}",
            position=where,
            reason="whether it overflows on the way depends on the order in which Spark adds",
            rewrite=f"{kind.removeprefix('try_').upper()}, whose sums are exact",
        )
    if kind in NAMES:
        arguments = function.expressions
        is_distinct = isinstance(arguments[0], exp.Distinct)
        values = arguments[0].expressions if is_distinct else arguments
        rows = gathered(values, is_distinct=is_distinct)
        if call is not function:
            function.replace(rows)
            rows = call
        return moment_of(kind, rows)
    if PICKS.get(kind) in ("min", "max"):
        return _picked(call, PICKS[kind], types)
    if kind in ("approx_percentile", "percentile_approx"):
        return _percentile(call, types)
    if kind == "collect_set":
        return _sorted(call)
    if kind in ("collect_list", "array_agg"):
        value = function.expressions[0]
        if isinstance(value, exp.Distinct):
            _with_one_zero(value, types)
        if not floats or isinstance(value, exp.Distinct):
            return _sorted(call)
        pair = exp.Anonymous(
            this="NAMED_STRUCT",
            expressions=[
                exp.Literal.string("x"),
                value.copy(),
                exp.Literal.string("bits"),
                encoded_column(value.copy(), types[value.name]),
            ],
        )
        value.replace(exp.case().when(value.copy().is_(exp.null()).not_(), pair))
        return formula("TRANSFORM(ARRAY_SORT(:pairs), e -> e.x)", pairs=call)
    if kind in ("listagg", "string_agg"):
        return _listed(call, function)
    return call


def _picked(call: exp.Expr, end: str, types: Types) -> exp.Expr:
    """FIRST and LAST: the value in the row that is first or last by all columns."""
    function = core(call)
    value, options = function.expressions[0], function.expressions[1:]
    skips = isinstance(value, exp.IgnoreNulls) or _skips_nulls(call, options)
    if isinstance(value, exp.IgnoreNulls | exp.RespectNulls):
        value = value.this
    order = [each.this for each in ties([], types)]
    at: exp.Expr = exp.Anonymous(this="STRUCT", expressions=order)
    if skips:
        at = exp.case().when(value.copy().is_(exp.null()).not_(), at)
    kept = _filter_of(call)
    picked = formula(f"{end.upper()}_BY(:x, :at)", x=value, at=at)
    return picked if kept is None else _with_filter(picked, kept)


def _percentile(call: exp.Expr, types: Types) -> exp.Expr:
    """The value at the place that the percentage says, among all values in their order."""
    function = core(call)
    arguments = function.expressions
    is_distinct = isinstance(arguments[0], exp.Distinct)
    value, asked = (arguments[0].expressions if is_distinct else arguments)[:2]
    if isinstance(value, exp.Column) and has_float(types[value.name]):
        value = with_one_zero(value, types[value.name])
    value = exp.Distinct(expressions=[value]) if is_distinct else value
    values: exp.Expr = exp.Anonymous(this="COLLECT_LIST", expressions=[value])
    kept = _filter_of(call)
    values = _sorted(values if kept is None else _with_filter(values, kept))
    is_list = isinstance(asked, exp.Anonymous) and asked.name.lower() == "array"
    place = "CAST(GREATEST(CEIL(CAST({} AS DOUBLE) * SIZE(:xs)), 1) AS INT)"
    if is_list:
        text = f"TRANSFORM(:asked, p -> ELEMENT_AT(:xs, {place.format('p')}))"
    else:
        text = f"ELEMENT_AT(:xs, {place.format(':asked')})"
    return formula(f"CASE WHEN SIZE(:xs) > 0 THEN {text} END", xs=values, asked=asked)


def _with_filter(call: exp.Expr, kept: exp.Expr) -> exp.Expr:
    return exp.Filter(this=call, expression=exp.Where(this=kept))


def _listed(call: exp.Expr, function: exp.Expr) -> exp.Expr:
    argument = function.expressions[0]
    value = argument.expressions[0] if isinstance(argument, exp.Distinct) else argument
    within = call.find(exp.WithinGroup)
    if within is None:
        order = exp.Order(expressions=[_ascending(value.copy())])
        ordered = exp.WithinGroup(this=function.copy(), expression=order)
        if call is function:
            return ordered
        function.replace(ordered)
        return call
    order = within.expression
    if all(each.this != value for each in order.expressions):
        order.append("expressions", _ascending(value.copy()))
    return call


def _settle_values(function: exp.Expr, types: Types) -> None:
    """Among equal values one is chosen: of zeros the positive one, by MIN_BY and MODE the least."""
    kind = function_name(function)
    if kind in ONE_ZERO:
        _with_one_zero(function, types)
    if kind == "mode" and function.expressions:
        function.set("expressions", [function.expressions[0], exp.true()])
    if kind not in ("min_by", "max_by"):
        return
    arguments = function.expressions
    if isinstance(arguments[0], exp.Distinct):
        arguments = arguments[0].expressions
    if len(arguments) != 2:
        return
    value, by = arguments
    parts = [exp.Literal.string("by"), by.copy(), exp.Literal.string("x"), value.copy()]
    if isinstance(value, exp.Column) and has_float(types[value.name]):
        bits = encoded_column(value.copy(), types[value.name])
        parts += [exp.Literal.string("bits"), bits]
    pair = exp.Anonymous(this="NAMED_STRUCT", expressions=parts)
    known = exp.case().when(by.copy().is_(exp.null()).not_(), pair)
    function.set("expressions", [value, known])


def _with_one_zero(tree: exp.Expr, types: Types) -> None:
    for each in list(tree.find_all(exp.Column)):
        if has_float(types[each.name]):
            each.replace(with_one_zero(each.copy(), types[each.name]))


def _is_default(spec: exp.Expr) -> bool:
    """Whether a frame is the one that an ORDER BY has anyway."""
    return (
        spec.args.get("kind") == "RANGE"
        and spec.args.get("start") == "UNBOUNDED"
        and spec.args.get("end") in (None, "CURRENT ROW")
    )


def _sorted(call: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="ARRAY_SORT", expressions=[call])


def _filter_of(call: exp.Expr) -> exp.Expr | None:
    """What FILTER asks of a row; None without it."""
    while isinstance(call, WRAPPERS):
        if isinstance(call, exp.Filter):
            condition: exp.Expr = call.expression.this.copy()
            return condition
        call = call.this
    return None


def _skips_nulls(call: exp.Expr, options: list[exp.Expr]) -> bool:
    """IGNORE NULLS, or `first(x, true)`."""
    while isinstance(call, WRAPPERS):
        if isinstance(call, exp.IgnoreNulls):
            return True
        call = call.this
    return any(isinstance(each, exp.Boolean) and each.this for each in options)


def _ascending(tree: exp.Expr) -> exp.Ordered:
    return exp.Ordered(this=tree, nulls_first=True)
