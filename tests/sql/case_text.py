"""A case written as text, so that what a random test found can be kept as data."""

from __future__ import annotations

import math
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.sql.case_format import Case, Change, SourceSpec, ViewSpec


def case_text(case: Case) -> str:
    """The case as a piece of a `.sql` file."""
    lines = [f"-- case: {case.title}"]
    lines += [_source(source) for source in case.sources]
    lines += [line for view in case.views for line in _view(view)]
    for tick in case.ticks:
        lines.append(f"-- tick: {tick.title}")
        if tick.at is not None:
            lines.append(f"-- at: {tick.at:%Y-%m-%d %H:%M:%S.%f}")
        if tick.only:
            lines.append(f"-- only: {', '.join(tick.only)}")
        if tick.fails is not None:
            lines.append(f"-- fails: {tick.fails}")
        lines += [line for view in tick.views for line in _view(view)]
        lines += [_change(change) for change in tick.changes]
    return "\n".join(lines) + "\n"


def _view(view: ViewSpec) -> list[str]:
    means = [f"-- means: {' '.join(view.means.split())}"] if view.means else []
    return [*means, f"CREATE VIEW {view.name} AS {view.sql};"]


def _source(source: SourceSpec) -> str:
    key = f" PRIMARY KEY ({', '.join(source.primary_key)})" if source.primary_key else ""
    return f"CREATE SOURCE {source.name} ({source.ddl}){key};"


def _change(change: Change) -> str:
    rows = []
    for row, weight in zip(change.rows, change.weights, strict=True):
        text = f"({', '.join(literal(value) for value in row)})"
        rows.append(text if weight == 1 else f"{text} * {weight}")
    return f"{change.verb} {change.source} VALUES {', '.join(rows)};"


def literal(value: Any) -> str:
    """A value as the case format reads it back."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and not math.isfinite(value):
        return f"'{str(value).replace('inf', 'Infinity').replace('nan', 'NaN')}'"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return f"MAP({', '.join(literal(part) for pair in value for part in pair)})"
    if isinstance(value, list):
        return f"ARRAY({', '.join(literal(each) for each in value)})"
    if isinstance(value, dict):
        return f"STRUCT({', '.join(literal(each) for each in value.values())})"
    if isinstance(value, str | date | datetime):
        text = str(value).replace("\\", "\\\\").replace("'", "\\'")
        return f"'{text.removesuffix('+00:00')}'"
    return str(value)
