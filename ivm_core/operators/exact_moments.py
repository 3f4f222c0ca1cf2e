"""Variance, deviation, covariance, correlation, skewness, kurtosis and regressions, exactly.

What Spark gives for these depends on the order of rows, because it rounds at every row. Here the
numbers are summed up as what they are, fractions of whole numbers, and the result is rounded once:

    TIDEVIEW_MOMENT('var_samp', COLLECT_LIST(x))

It is a Python function, because Spark has no numbers of unlimited size: the squares of doubles
have bits at more than 4,000 places.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FUNCTION = "TIDEVIEW_MOMENT"


@dataclass(frozen=True)
class _Sums:
    """Sums of powers of numbers and of products of pairs, with what follows from them."""

    n: int
    powers: tuple[Fraction, ...]
    """Σx, Σx², …"""
    others: tuple[Fraction, ...] = ()
    """Σy, Σy² where pairs were given."""
    product: Fraction = Fraction(0)

    @property
    def spread(self) -> Fraction:
        """Σ(x − mean)²."""
        return self.powers[1] - self.powers[0] ** 2 / self.n

    @property
    def other_spread(self) -> Fraction:
        """Σ(y − mean)²."""
        return self.others[1] - self.others[0] ** 2 / self.n

    @property
    def together(self) -> Fraction:
        """Σ(x − mean)(y − mean)."""
        return self.product - self.powers[0] * self.others[0] / self.n

    @property
    def third(self) -> Fraction:
        """Σ(x − mean)³."""
        mean = self.powers[0] / self.n
        return self.powers[2] - 3 * mean * self.powers[1] + 2 * self.n * mean**3

    @property
    def fourth(self) -> Fraction:
        """Σ(x − mean)⁴."""
        first, second, third, fourth = self.powers
        mean = first / self.n
        return fourth - 4 * mean * third + 6 * mean**2 * second - 3 * self.n * mean**4


def _sample(sums: _Sums, total: Fraction) -> Fraction | None:
    return None if sums.n == 1 else total / (sums.n - 1)


def _skewness(sums: _Sums) -> float | None:
    spread, third = sums.spread, sums.third
    return None if not spread else _root(sums.n * third**2 / spread**3, negative=third < 0)


def _correlation(sums: _Sums) -> float | None:
    if sums.n == 1:
        return None
    product = sums.spread * sums.other_spread
    if not product:
        raise ZeroDivisionError("[DIVIDE_BY_ZERO] the correlation with values that are all equal")
    together = sums.together
    return _root(together**2 / product, negative=together < 0)


def _slope(sums: _Sums) -> Fraction | None:
    return None if not sums.spread else sums.together / sums.spread


def _intercept(sums: _Sums) -> Fraction | None:
    slope = _slope(sums)
    return None if slope is None else (sums.others[0] - slope * sums.powers[0]) / sums.n


def _determination(sums: _Sums) -> Fraction | None:
    if not sums.spread:
        return None
    if not sums.other_spread:
        return Fraction(1)
    return sums.together**2 / (sums.spread * sums.other_spread)


def _kurtosis(sums: _Sums) -> Fraction | None:
    return sums.n * sums.fourth / sums.spread**2 - 3 if sums.spread else None


OF_ONE: dict[str, tuple[int, Callable[[_Sums], Fraction | float | None]]] = {
    "var_pop": (2, lambda s: s.spread / s.n),
    "var_samp": (2, lambda s: _sample(s, s.spread)),
    "stddev_pop": (2, lambda s: _root(s.spread / s.n)),
    "stddev_samp": (2, lambda s: None if s.n == 1 else _root(s.spread / (s.n - 1))),
    "skewness": (3, _skewness),
    "kurtosis": (4, _kurtosis),
}
"""By name: the powers that are summed up, and the result."""
OF_TWO: dict[str, Callable[[_Sums], Fraction | float | None]] = {
    "covar_pop": lambda s: s.together / s.n,
    "covar_samp": lambda s: _sample(s, s.together),
    "corr": _correlation,
    "regr_slope": _slope,
    "regr_intercept": _intercept,
    "regr_r2": _determination,
    "regr_sxx": lambda s: s.spread,
    "regr_syy": lambda s: s.other_spread,
    "regr_sxy": lambda s: s.together,
    "regr_avgx": lambda s: s.powers[0] / s.n,
    "regr_avgy": lambda s: s.others[0] / s.n,
}
"""Of pairs in the order of the arguments; for regressions that is (y, x)."""
SAME_AS = {"variance": "var_samp", "stddev": "stddev_samp", "std": "stddev_samp"}
NAMES = frozenset([*OF_ONE, *OF_TWO, *SAME_AS])


def moment(kind: str, rows: Sequence[Sequence[float]] | None) -> float | None:
    """The moment of rows of one number, or of pairs; None for no rows."""
    if not rows:
        return None
    columns = [list(column) for column in zip(*rows, strict=True)]
    if not all(math.isfinite(value) for column in columns for value in column):
        return _not_finite(kind, columns)
    if kind in OF_ONE:
        count, result = OF_ONE[kind]
        return _rounded(result(_Sums(len(rows), _powers(columns[0], count))))
    ys, xs = columns
    product = _total([a * b for a, b in zip(map(Fraction, ys), map(Fraction, xs), strict=True)])
    sums = _Sums(len(rows), _powers(xs, 2), _powers(ys, 2), product)
    return _rounded(OF_TWO[kind](sums))


def _not_finite(kind: str, columns: list[list[float]]) -> float | None:
    """What Spark makes of NaN and infinite values."""
    if len(columns[0]) == 1 and (kind.endswith("_samp") or kind == "corr"):
        return None
    if kind in ("regr_avgx", "regr_sxx", "regr_avgy", "regr_syy"):
        column = columns[1 if kind.endswith("x") else 0]
        if not all(map(math.isfinite, column)):
            return math.nan if kind.startswith("regr_s") else sum(column) / len(column)
        sums = _Sums(len(column), _powers(column, 2))
        return _rounded(sums.spread if kind.startswith("regr_s") else sums.powers[0] / sums.n)
    varies = len(columns) == 1 or len(set(columns[1])) > 1
    if kind in ("regr_slope", "regr_intercept", "regr_r2") and not varies:
        return None
    return math.nan


def gathered(arguments: list[exp.Expr], *, is_distinct: bool) -> exp.Expr:
    """The aggregate that lists the numbers of a group; rows with a NULL don't count."""
    numbers = [exp.cast(each.copy(), "DOUBLE", dialect="spark") for each in arguments]
    row: exp.Expr = exp.Anonymous(this="ARRAY", expressions=numbers)
    known = exp.and_(*[each.copy().is_(exp.null()).not_() for each in arguments])
    row = exp.case().when(known, row)
    if is_distinct:
        row = exp.Distinct(expressions=[row])
    return exp.Anonymous(this="COLLECT_LIST", expressions=[row])


def moment_of(kind: str, rows: exp.Expr) -> exp.Expr:
    """The call over what was gathered."""
    name = exp.Literal.string(SAME_AS.get(kind, kind))
    return exp.Anonymous(this=FUNCTION, expressions=[name, rows])


def as_people_write_it(query: exp.Query) -> exp.Query:
    """The query with Spark's own aggregates, which round on the way; for reading, and for Spark."""
    for call in list(query.find_all(exp.Anonymous)):
        if call.name.upper() != FUNCTION:
            continue
        kind, rows = call.expressions
        gathering = next(
            each for each in rows.find_all(exp.Anonymous) if each.name.upper() == "COLLECT_LIST"
        )
        row = gathering.expressions[0]
        is_distinct = isinstance(row, exp.Distinct)
        numbers = next(
            each for each in row.find_all(exp.Anonymous) if each.name.upper() == "ARRAY"
        ).expressions
        values: list[exp.Expr] = [number.this.copy() for number in numbers]
        if is_distinct:
            values = [exp.Distinct(expressions=values)]
        plain = exp.Anonymous(this=kind.name.upper(), expressions=values)
        if gathering is rows:
            rows = plain
        else:
            gathering.replace(plain)
        call.replace(rows.copy())
    return query


def _powers(values: list[float], count: int) -> tuple[Fraction, ...]:
    """Σx, Σx², … as whole numbers over one power of two."""
    ratios = [value.as_integer_ratio() for value in values]
    shift = max(denominator.bit_length() for _, denominator in ratios) - 1
    whole = [top << (shift - (bottom.bit_length() - 1)) for top, bottom in ratios]
    return tuple(
        Fraction(sum(each**power for each in whole), 1 << (shift * power))
        for power in range(1, count + 1)
    )


def _total(values: list[Fraction]) -> Fraction:
    shift = max(value.denominator.bit_length() for value in values) - 1
    whole = sum(
        value.numerator << (shift - (value.denominator.bit_length() - 1)) for value in values
    )
    return Fraction(whole, 1 << shift)


def _rounded(value: Fraction | float | None) -> float | None:
    """The nearest double; Python divides whole numbers correctly rounded."""
    if value is None or isinstance(value, float):
        return value
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _root(square: Fraction, *, negative: bool = False) -> float:
    """The double that is nearest to the square root."""
    if not square:
        return 0.0
    # so many bits that rounding to whole numbers can't decide; the last one says what was cut off
    missing = 160 + square.denominator.bit_length() - square.numerator.bit_length()
    shift = max(0, (missing + 1) // 2)
    scaled, rest = divmod(square.numerator << (2 * shift), square.denominator)
    root = math.isqrt(scaled)
    is_exact = not rest and root * root == scaled
    value = _rounded(Fraction(2 * root + (0 if is_exact else 1), 2 << shift)) or 0.0
    return -value if negative else value
