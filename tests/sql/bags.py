"""Bags of rows by their bits, and what differs between two of them."""

from __future__ import annotations

import math
import struct
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Row = tuple[Any, ...]
NAN = struct.pack(">d", math.nan)


def bits(value: Any) -> Any:
    """A hashable stand-in that is equal only for values of the same bits."""
    if isinstance(value, float):
        return ("float", NAN if math.isnan(value) else struct.pack(">d", value))
    if isinstance(value, dict):
        return ("struct", tuple((name, bits(each)) for name, each in value.items()))
    if isinstance(value, list):
        return ("array", tuple(bits(each) for each in value))
    if isinstance(value, tuple):
        return ("entry", tuple(bits(each) for each in value))
    return value


def identity(row: Sequence[Any]) -> Row:
    return tuple(bits(value) for value in row)


def bag(rows: Iterable[Sequence[Any]]) -> Counter[Row]:
    return Counter(identity(row) for row in rows)


def differences(expected: Counter[Row], got: Counter[Row]) -> str:
    """What is missing and what is too much, for people; empty for equal bags."""
    lines = [f"  missing × {n}: {shown(row)}" for row, n in (expected - got).items()]
    lines += [f"  extra   × {n}: {shown(row)}" for row, n in (got - expected).items()]
    return "\n".join(sorted(lines)[:20])


def rounded_differences(
    expected: Sequence[Row], got: Sequence[Row], rounded: Sequence[int], tolerance: float
) -> str:
    """The same for rows some of whose columns are equal only up to rounding."""
    one, other = _by_rest(expected, rounded), _by_rest(got, rounded)
    lines = []
    for rest in one.keys() | other.keys():
        left = sorted(one.get(rest, []), key=_order)
        right = sorted(other.get(rest, []), key=_order)
        if len(left) != len(right):
            lines.append(f"  {len(left)} rows expected, {len(right)} got: {shown(rest)}")
            continue
        for a, b in zip(left, right, strict=True):
            if not all(_near(x, y, tolerance) for x, y in zip(a, b, strict=True)):
                lines.append(f"  {shown(rest)}: expected about {a}, got {b}")
    return "\n".join(sorted(lines)[:20])


def _by_rest(rows: Sequence[Row], rounded: Sequence[int]) -> dict[Row, list[Row]]:
    found: dict[Row, list[Row]] = {}
    for row in rows:
        rest = identity([value for i, value in enumerate(row) if i not in rounded])
        found.setdefault(rest, []).append(tuple(row[i] for i in rounded))
    return found


def _order(row: Row) -> list[tuple[int, float]]:
    return [
        (0, 0.0) if value is None else (2, 0.0) if math.isnan(value) else (1, float(value))
        for value in row
    ]


def _near(one: Any, other: Any, tolerance: float) -> bool:
    if one is None or other is None:
        return one is other
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return one == other or math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)


def shown(row: Row) -> str:
    return "(" + ", ".join(_shown(value) for value in row) + ")"


def _shown(value: Any) -> str:
    if isinstance(value, tuple) and value and value[0] == "float":
        return repr(struct.unpack(">d", value[1])[0])
    return str(value) if not isinstance(value, str) else repr(value)
