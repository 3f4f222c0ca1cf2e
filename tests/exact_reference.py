"""What SUM and AVG mean, in Python's own exact numbers; shares nothing with the product.

Every function takes (value, weight) pairs, NULLs as None.
"""

from __future__ import annotations

import decimal
import math
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

BIGINT_LIMITS = (-(2**63), 2**63 - 1)


def nearest_double(exact: Fraction) -> float:
    """The nearest double, ties to even; infinite past the largest."""
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def double_sum(rows: Iterable[tuple[float | None, int]], *, average: bool = False) -> float | None:
    """SUM or AVG of DOUBLE: the exact result rounded once."""
    present = [(value, weight) for value, weight in rows if value is not None]
    count = sum(weight for _, weight in present)
    if count == 0:
        return None
    special: dict[str, int] = {}
    exact = Fraction(0)
    for value, weight in present:
        if math.isfinite(value):
            exact += Fraction(value) * weight
        else:
            special[str(value)] = special.get(str(value), 0) + weight
    kinds = {kind for kind, number in special.items() if number}
    if "nan" in kinds or kinds == {"inf", "-inf"}:
        return math.nan
    if kinds:
        return float(kinds.pop())
    return nearest_double(exact / count if average else exact)


def integer_sum(rows: Iterable[tuple[int | None, int]]) -> int | None:
    """SUM of integers; OverflowError where the exact sum is no BIGINT."""
    present = [(value, weight) for value, weight in rows if value is not None]
    if sum(weight for _, weight in present) == 0:
        return None
    exact = sum(value * weight for value, weight in present)
    if not BIGINT_LIMITS[0] <= exact <= BIGINT_LIMITS[1]:
        raise OverflowError(exact)
    return exact


def integer_average(rows: Iterable[tuple[int | None, int]]) -> float | None:
    """AVG of integers: the exact quotient as the nearest double."""
    present = [(value, weight) for value, weight in rows if value is not None]
    count = sum(weight for _, weight in present)
    if count == 0:
        return None
    return nearest_double(Fraction(sum(value * weight for value, weight in present), count))


def decimal_result(
    rows: Iterable[tuple[decimal.Decimal | None, int]], precision: int, scale: int, *, average: bool
) -> decimal.Decimal | None:
    """SUM or AVG as DECIMAL(precision, scale), half up; OverflowError where it doesn't fit."""
    present = [(value, weight) for value, weight in rows if value is not None]
    count = sum(weight for _, weight in present)
    if count == 0:
        return None
    exact = sum((Fraction(value) * weight for value, weight in present), Fraction(0))
    shifted = (exact / count if average else exact) * 10**scale
    magnitude = math.floor(abs(shifted) + Fraction(1, 2))
    if magnitude >= 10**precision:
        raise OverflowError(shifted)
    digits = tuple(int(digit) for digit in str(magnitude))
    return decimal.Decimal((int(shifted < 0 and magnitude > 0), digits, -scale))
