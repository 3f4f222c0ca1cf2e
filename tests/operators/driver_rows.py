"""Rows of many types, with the values at which the driver and Spark could differ."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from ivm_core.frontend.dialect import Verbatim
from ivm_core.model.names import WEIGHT
from ivm_core.model.schema import Field, Schema, parse_type
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.sql import scalar_of
from ivm_core.plan.nodes import Scan

if TYPE_CHECKING:
    import random

    from ivm_core.plan.scalar import Scalar

TYPES = {
    "k": "STRING",
    "d": "DATE",
    "i": "INT",
    "b": "BIGINT",
    "p": "DECIMAL(12,2)",
    "q": "DECIMAL(18,0)",
    "z": "DECIMAL(9,9)",
    "w": "DECIMAL(25,3)",
    "v": "DECIMAL(38,6)",
}
SCHEMA = Schema(tuple(Field(name, parse_type(of)) for name, of in TYPES.items()))
WEIGHTED = arrow_schema(SCHEMA).append(pa.field(WEIGHT, pa.int64()))
SCAN = Scan("t", "t", tuple(TYPES))
OF = {f"t.{name}": parse_type(of) for name, of in TYPES.items()}
VALUES: dict[str, list[Any]] = {
    "k": ["", "a", "B", "b", "é", "\U0001f30a", "￮", "a%_b", None],
    "d": [date(1, 1, 1), date(2026, 2, 28), date(9999, 12, 31), date(1582, 10, 10), None],
    "i": [0, 1, -1, 2**31 - 1, -(2**31), None],
    "b": [0, -1, 2**63 - 1, -(2**63), 2**32, None],
    "p": [Decimal("0.00"), Decimal("-0.01"), Decimal("9999999999.99"), None],
    "q": [Decimal(10**18 - 1), Decimal(1 - 10**18), Decimal(0), None],
    "z": [Decimal("0.999999999"), Decimal("-0.000000001"), None],
    "w": [Decimal("1.5"), Decimal("9999999999999999999999.999"), Decimal("-0.001"), None],
    "v": [Decimal("999999999999.999999"), Decimal("-0.000001"), Decimal(0), None],
}
SMALL: dict[str, list[Any]] = {
    **VALUES,
    "i": [0, 7, -3, None],
    "b": [2**40, -5, None],
    "v": [Decimal("-1.000001"), Decimal("2.500000"), None],
    "w": [Decimal("12345.678"), None],
    "q": [Decimal(-77), None],
    "p": [Decimal("-12.34"), Decimal("0.01"), None],
}


def drawn(
    draw: random.Random,
    count: int,
    weights: list[int],
    values: dict[str, list[Any]] | None = None,
) -> pa.Table:
    """Some rows, each with one of the weights."""
    known = values or VALUES
    columns = {name: [draw.choice(known[name]) for _ in range(count)] for name in TYPES}
    columns[WEIGHT] = [draw.choice(weights) for _ in range(count)]
    return pa.table(columns, schema=WEIGHTED)


def scalar(text: str, alias: str = "t") -> Scalar:
    """An expression over the columns of a scan."""
    tree = sqlglot.parse_one(text, dialect=Verbatim)
    for each in list(tree.find_all(exp.Column)):
        table = each.table or alias
        each.replace(exp.column(exp.to_identifier(f"{table}.{each.name}", quoted=True)))
    if isinstance(tree, exp.Column):
        tree = exp.column(exp.to_identifier(f"{tree.table or alias}.{tree.name}", quoted=True))
    return scalar_of(tree)
