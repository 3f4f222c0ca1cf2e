"""Aggregates of a group whose result does not depend on the order of its rows.

collect_list, collect_set, listagg        in the order of their values, or what is stated first
min_by, max_by, mode                      among equals by the value
first, last                               the row that is first or last by all columns it reads
approx_percentile                         the exact one
variances, correlations, regressions      from exact sums (`operators.exact_moments`)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.model.errors import Unsupported
from ivm_core.model.types import has_float, has_map
from ivm_core.operators.calls import WRAPPERS, core, function_name
from ivm_core.operators.consolidation import goes_by_bits
from ivm_core.operators.exact_moments import NAMES, gathered, moment_of
from ivm_core.operators.extremes import with_one_zero
from ivm_core.operators.formula import formula
from ivm_core.operators.row_identity import encoded_column
from ivm_core.operators.sql import column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.model.types import DataType

    Types = Mapping[str, DataType]

PICKS = {
    "first": "min",
    "first_value": "min",
    "last": "max",
    "last_value": "max",
    "nth_value": "",
    "collect_list": "",
    "array_agg": "",
}
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
BY_BITS = "CASE WHEN a.bits < b.bits THEN -1 WHEN a.bits > b.bits THEN 1 ELSE 0 END"
"""The order of values that have none of their own."""


def ties(order: list[exp.Expr], types: Types) -> list[exp.Expr]:
    """The columns that an order lacks; where values can be equal and differ, their bits."""
    there = {each.this.name for each in order if isinstance(each.this, exp.Column)}
    found: list[exp.Expr] = [
        _ascending(column(name))
        for name, each in types.items()
        if name not in there and not has_map(each)
    ]
    found += [
        _ascending(encoded_column(column(name), each))
        for name, each in types.items()
        if goes_by_bits(each)
    ]
    return found


def in_order(call: exp.Expr, types: Types, where: str) -> exp.Expr:
    """A call of an aggregate whose result does not depend on the order of rows."""
    function = core(call)
    kind = function_name(function)
    settle_values(function, types)
    by_bits = any(goes_by_bits(types[each.name]) for each in function.find_all(exp.Column))
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
        return in_order_of_values(call)
    if kind in ("collect_list", "array_agg"):
        value = function.expressions[0]
        if isinstance(value, exp.Distinct):
            _with_one_zero(value, types)
        if not by_bits or isinstance(value, exp.Distinct):
            return in_order_of_values(call)
        bits = encoded_column(value.copy(), types[value.name])
        pair = formula("NAMED_STRUCT('x', :x, 'bits', :bits)", x=value, bits=bits)
        value.replace(exp.case().when(value.copy().is_(exp.null()).not_(), pair))
        order = f", (a, b) -> {BY_BITS}" if has_map(types[value.name]) else ""
        return formula(f"TRANSFORM(ARRAY_SORT(:pairs{order}), e -> e.x)", pairs=call)
    if kind in ("listagg", "string_agg"):
        return listed(call, function)
    return call


def _picked(call: exp.Expr, end: str, types: Types) -> exp.Expr:
    """FIRST and LAST: the value in the row that is first or last by all columns."""
    function = core(call)
    value, options = function.expressions[0], function.expressions[1:]
    skips = isinstance(value, exp.IgnoreNulls) or skips_nulls(call, options)
    if isinstance(value, exp.IgnoreNulls | exp.RespectNulls):
        value = value.this
    order = [each.this for each in ties([], types)]
    at: exp.Expr = exp.Anonymous(this="STRUCT", expressions=order)
    if skips:
        at = exp.case().when(value.copy().is_(exp.null()).not_(), at)
    kept = filter_of(call)
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
    kept = filter_of(call)
    values = in_order_of_values(values if kept is None else _with_filter(values, kept))
    is_list = isinstance(asked, exp.Anonymous) and asked.name.lower() == "array"
    place = "CAST(GREATEST(CEIL(CAST({} AS DOUBLE) * SIZE(:xs)), 1) AS INT)"
    if is_list:
        text = f"TRANSFORM(:asked, p -> ELEMENT_AT(:xs, {place.format('p')}))"
    else:
        text = f"ELEMENT_AT(:xs, {place.format(':asked')})"
    return formula(f"CASE WHEN SIZE(:xs) > 0 THEN {text} END", xs=values, asked=asked)


def _with_filter(call: exp.Expr, kept: exp.Expr) -> exp.Expr:
    return exp.Filter(this=call, expression=exp.Where(this=kept))


def listed(call: exp.Expr, function: exp.Expr) -> exp.Expr:
    """A list of texts in the order that is stated, then in that of the values."""
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


def settle_values(function: exp.Expr, types: Types) -> None:
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
    parts = [exp.Literal.string("by"), by.copy()]
    if not (isinstance(value, exp.Column) and has_map(types[value.name])):
        parts += [exp.Literal.string("x"), value.copy()]
    if isinstance(value, exp.Column) and goes_by_bits(types[value.name]):
        bits = encoded_column(value.copy(), types[value.name])
        parts += [exp.Literal.string("bits"), bits]
    pair = exp.Anonymous(this="NAMED_STRUCT", expressions=parts)
    known = exp.case().when(by.copy().is_(exp.null()).not_(), pair)
    function.set("expressions", [value, known])


def _with_one_zero(tree: exp.Expr, types: Types) -> None:
    for each in list(tree.find_all(exp.Column)):
        if has_float(types[each.name]):
            each.replace(with_one_zero(each.copy(), types[each.name]))


def in_order_of_values(call: exp.Expr) -> exp.Expr:
    """A list in the order of its values."""
    return exp.Anonymous(this="ARRAY_SORT", expressions=[call])


def filter_of(call: exp.Expr) -> exp.Expr | None:
    """What FILTER asks of a row; None without it."""
    while isinstance(call, WRAPPERS):
        if isinstance(call, exp.Filter):
            condition: exp.Expr = call.expression.this.copy()
            return condition
        call = call.this
    return None


def skips_nulls(call: exp.Expr, options: list[exp.Expr]) -> bool:
    """IGNORE NULLS, or `first(x, true)`."""
    while isinstance(call, WRAPPERS):
        if isinstance(call, exp.IgnoreNulls):
            return True
        call = call.this
    return any(isinstance(each, exp.Boolean) and each.this for each in options)


def _ascending(tree: exp.Expr) -> exp.Ordered:
    return exp.Ordered(this=tree, nulls_first=True)
