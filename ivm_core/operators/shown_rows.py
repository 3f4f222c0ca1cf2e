"""Rows as Python has their values, for people and messages.

Spark has dates and times that Python hasn't, before the year 1 and behind 9999: those are text.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

BEYOND_PYTHON = (OverflowError, ValueError)
"""What Python raises for such a value."""


def shown_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows by the names of their columns."""
    columns = [shown_values(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def shown_values(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of one column."""
    try:
        found: list[Any] = values.to_pylist()
    except BEYOND_PYTHON:
        return [_shown(each) for each in values]
    return found


def _shown(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except BEYOND_PYTHON:
        if isinstance(value, pa.MapScalar):
            keys, items = (value.values.field(at) for at in range(2))
            return list(zip(shown_values(keys), shown_values(items), strict=True))
        if isinstance(value, pa.ListScalar):
            return shown_values(value.values)
        if isinstance(value, pa.StructScalar):
            return {name: _shown(value[name]) for name in value}
        return value.cast(pa.string()).as_py()
