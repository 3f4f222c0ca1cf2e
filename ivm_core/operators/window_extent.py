"""How far a change reaches in the order of a window without PARTITION BY.

    ROWS BETWEEN p PRECEDING AND f FOLLOWING    the f rows before it, and the p rows after it
    LAG(x, n), LEAD(x, n)                       the n rows after it, the n rows before it
    running COUNT, SUM, MIN, MAX; places        all rows from it on; what the rows before come to
                                                is taken from the last of them: c ⊕ f(rows since)

Rows that are equal in the first column of the order are taken together, so that the rest of the
order need not be known to tell which rows are before and which are after.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.model.types import Decimal
from ivm_core.operators.calls import core, function_name
from ivm_core.operators.sql import tree_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.model.types import DataType
    from ivm_core.plan.partitioned import Windowed

    Types = Mapping[str, DataType]

ROWS_BEFORE, SUM, ADDED, LEAST, GREATEST = "rows before", "sum", "added", "least", "greatest"
PLACES = {"row_number": ROWS_BEFORE, "rank": ROWS_BEFORE, "dense_rank": ADDED}
RUNNING = {"count": ADDED, "count_if": ADDED, "sum": SUM, "min": LEAST, "max": GREATEST}
ORDERED = frozenset(
    ["TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"]
)
"""Types whose order on the driver is Spark's."""
SUMMED = frozenset(["TINYINT", "SMALLINT", "INT", "BIGINT"])
WIDEST = 37
"""Digits of a DECIMAL of which two can be added without losing any."""


@dataclass(frozen=True)
class Extent:
    """What a change reaches, by places in the order."""

    column: str
    """The first column of the order, one of the input's."""
    descending: bool
    nulls_first: bool
    behind: int = 0
    """Rows that a row looks back on."""
    ahead: int = 0
    """Rows that a row looks forward to."""
    carried: tuple[tuple[str, str], ...] = ()
    """Calls over all rows up to a row, and how they go on from what those before come to."""

    def __str__(self) -> str:
        by = f"in the order of {self.column}, of which all values are read"
        if self.carried:
            return f"recomputed from the first changed row on, {by}"
        return f"recomputed {self.ahead} rows before a change to {self.behind} after, {by}"


def extent_of(node: Windowed, types: Types) -> Extent | None:
    """What a change reaches; None where it can be any row."""
    if node.partition or not node.calls:
        return None
    found: Extent | None = None
    for name, scalar in node.calls:
        tree = tree_of(scalar)
        if not isinstance(tree, exp.Window) or not scalar.columns <= set(node.input.columns):
            return None
        one = _of_call(name, tree, types)
        if one is None:
            return None
        found = one if found is None else _together(found, one)
        if found is None:
            return None
    return found


def _together(one: Extent, other: Extent) -> Extent | None:
    order = (one.column, one.descending, one.nulls_first)
    if order != (other.column, other.descending, other.nulls_first):
        return None
    return replace(
        one,
        behind=max(one.behind, other.behind),
        ahead=max(one.ahead, other.ahead),
        carried=one.carried + other.carried,
    )


def _of_call(name: str, window: exp.Window, types: Types) -> Extent | None:
    order = window.args.get("order")
    first = order.expressions[0] if order is not None else None
    if first is None or not isinstance(first.this, exp.Column):
        return None
    column = first.this.name
    if types[column].kind not in ORDERED:
        return None
    # Spark puts NULLs first in an ascending order, and last in a descending one
    descending = bool(first.args.get("desc"))
    placed = first.args.get("nulls_first")
    start = Extent(column, descending, not descending if placed is None else bool(placed))
    function = core(window.this)
    kind = function_name(function)
    if kind in ("lag", "lead"):
        return None if window.find(exp.IgnoreNulls) else _of_offset(start, kind, function)
    if kind in PLACES:
        return replace(start, carried=((name, PLACES[kind]),))
    return _of_frame(start, name, window, types)


def _of_offset(start: Extent, kind: str, function: exp.Expr) -> Extent | None:
    arguments = function.expressions
    rows = 1 if len(arguments) < 2 else _whole(arguments[1])
    if rows is None:
        return None
    back = rows if kind == "lag" else -rows
    return replace(start, behind=max(0, back), ahead=max(0, -back))


def _of_frame(start: Extent, name: str, window: exp.Window, types: Types) -> Extent | None:
    spec = window.args.get("spec")
    if spec is None or (_begins_at_the_first(spec) and _ends_here(spec)):
        how = RUNNING.get(function_name(window.this))
        function = core(window.this)
        if how is None or window.find(exp.Distinct) or not _carries(how, function, types):
            return None
        return replace(start, carried=((name, how),))
    if spec.args.get("kind") != "ROWS":
        return None
    first = _offset(spec.args.get("start"), spec.args.get("start_side"))
    last = _offset(spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"))
    if first is None or last is None:
        return None
    return replace(start, behind=max(0, -first), ahead=max(0, last))


def _carries(how: str, function: exp.Expr, types: Types) -> bool:
    """Whether the values so far are enough to go on: a sum must be exact."""
    if how == ADDED:
        return True
    columns = [types[each.name] for each in function.find_all(exp.Column)]
    if not isinstance(function.this, exp.Column) or len(columns) != 1:
        return False
    if how == SUM:
        of = columns[0]
        return of.kind in SUMMED or (isinstance(of, Decimal) and of.precision + 10 <= WIDEST)
    return columns[0].kind in ORDERED


def _begins_at_the_first(spec: exp.Expr) -> bool:
    return spec.args.get("start") == "UNBOUNDED" and spec.args.get("start_side") == "PRECEDING"


def _ends_here(spec: exp.Expr) -> bool:
    return spec.args.get("end") in (None, "CURRENT ROW")


def _offset(bound: object, side: object) -> int | None:
    """Rows from the current one to a bound of a frame; None where they are not a number."""
    if bound == "CURRENT ROW":
        return 0
    rows = _whole(bound) if isinstance(bound, exp.Expr) else None
    if rows is None:
        return None
    return -rows if side == "PRECEDING" else rows


def _whole(tree: exp.Expr) -> int | None:
    if isinstance(tree, exp.Neg):
        rows = _whole(tree.this)
        return None if rows is None else -rows
    if isinstance(tree, exp.Literal) and not tree.is_string and str(tree.this).isdigit():
        return int(tree.this)
    return None
