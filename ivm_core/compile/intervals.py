"""INTERVALs as numbers, where an aggregate keeps them: no row can have an INTERVAL.

    SELECT k, MAX(b - a), AVG(b - a) FROM t GROUP BY k
    SELECT k, interval(m), interval(s) / n
    FROM (SELECT k, MAX(x) AS m, SUM(x) AS s, COUNT(x) AS n
          FROM (SELECT k, number(b - a) AS x FROM t) GROUP BY k)

A number is microseconds, or months. Order, equality and sums are those of the INTERVALs, and
dividing one rounds as Spark's average does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.operators.formula import AS_INTERVAL, formula
from ivm_core.operators.sql import column, column_scalar, scalar_of
from ivm_core.plan.nodes import Aggregate, AggregateCall, Distinct, Node, Project

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from ivm_core.plan.scalar import Scalar

MICROS = (
    "CAST(EXTRACT(DAY FROM :x) AS BIGINT) * 86400000000 "
    "+ CAST(EXTRACT(HOUR FROM :x) AS BIGINT) * 3600000000 "
    "+ CAST(EXTRACT(MINUTE FROM :x) AS BIGINT) * 60000000 "
    "+ CAST(EXTRACT(SECOND FROM :x) * 1000000 AS BIGINT)"
)
MONTHS = "EXTRACT(YEAR FROM :x) * 12 + EXTRACT(MONTH FROM :x)"
OF_MONTHS = "MAKE_YM_INTERVAL(0, CAST(:months AS INT))"
WHOLE = ("interval day to second", "interval year to month")
"""What the formulas give."""


@dataclass(frozen=True)
class Numbered:
    """An aggregate over numbers, and the columns that it lacks, made of those that it has."""

    node: Aggregate
    lifted: dict[str, exp.Expr]


def over_numbers(
    node: Aggregate, below: Node, found: Mapping[str, exp.Expr], kinds: Mapping[str, str]
) -> Numbered:
    """The aggregate over `below`, which lacks the columns of `found`; `kinds` are INTERVALs."""
    keys: list[tuple[str, str]] = []
    calls: list[AggregateCall] = []
    lifted: dict[str, exp.Expr] = {}
    for name, argument in node.keys:
        keys.append((_number_of(name) if argument in kinds else name, argument))
        if argument in kinds:
            lifted[name] = as_interval(column(_number_of(name)), kinds[argument])
    for call in node.calls:
        kind = kinds.get(call.argument or "")
        if kind is None or call.function == "COUNT":
            calls.append(call)
            continue
        is_average = call.function == "AVG"
        total = _number_of(call.name)
        calls.append(AggregateCall(total, "SUM" if is_average else call.function, call.argument))
        lifted[call.name] = as_interval(column(total), _whole(kind) if is_average else kind)
        if is_average:
            count = f"{call.name}?count"
            calls.append(AggregateCall(count, "COUNT", call.argument))
            lifted[call.name] = formula(":sum / :n", sum=lifted[call.name], n=column(count))
    outputs: list[tuple[str, Scalar]] = []
    for name in node.input.columns:
        tree = found.get(name)
        if tree is None:
            outputs.append((name, column_scalar(name)))
        else:
            tree = as_number(tree, kinds[name]) if name in kinds else tree.copy()
            outputs.append((name, scalar_of(tree)))
    rows = Project(below, tuple(outputs))
    return Numbered(Aggregate(rows, tuple(keys), tuple(calls)), lifted)


def distinct_numbers(
    node: Distinct, below: Node, found: Mapping[str, exp.Expr], kinds: Mapping[str, str]
) -> tuple[Distinct, dict[str, exp.Expr]]:
    """The same for DISTINCT, where all that `below` lacks are INTERVALs."""
    outputs = [
        (_number_of(name), scalar_of(as_number(found[name], kinds[name])))
        if name in kinds
        else (name, column_scalar(name))
        for name in node.columns
    ]
    lifted = {name: as_interval(column(_number_of(name)), kind) for name, kind in kinds.items()}
    return Distinct(Project(below, tuple(outputs))), lifted


def as_number(tree: exp.Expr, kind: str) -> exp.Expr:
    """The microseconds or months of an INTERVAL."""
    whole = tree if kind in WHOLE else formula(f"CAST(:x AS {_whole(kind).upper()})", x=tree)
    return formula(MONTHS if _is_of_months(kind) else MICROS, x=whole)


def as_interval(tree: exp.Expr, kind: str) -> exp.Expr:
    """The INTERVAL of a number."""
    if _is_of_months(kind):
        whole = formula(OF_MONTHS, months=tree)
    else:
        whole = formula(AS_INTERVAL, micros=tree)
    return whole if kind in WHOLE else formula(f"CAST(:x AS {kind.upper()})", x=whole)


def _whole(kind: str) -> str:
    return WHOLE[_is_of_months(kind)]


def _is_of_months(kind: str) -> bool:
    return kind.split()[1] in ("year", "month")


def _number_of(name: str) -> str:
    return f"{name}?number"
