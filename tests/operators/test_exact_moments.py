"""Moments against formulas in decimal arithmetic of many digits, and against Python's statistics."""

from __future__ import annotations

import math
import random
import statistics
from decimal import Decimal, localcontext

import pytest

from ivm_core.operators.exact_moments import OF_ONE, OF_TWO, moment

DIGITS = 2500


def reference(kind: str, rows: list[tuple[float, ...]]) -> float:
    """By the textbook: means first, then sums of differences, in 2,500 digits."""
    with localcontext() as context:
        context.prec = DIGITS
        context.Emax, context.Emin = 10**6, -(10**6)
        n = Decimal(len(rows))
        xs = [Decimal(row[-1]) for row in rows]
        ys = [Decimal(row[0]) for row in rows]
        mx, my = sum(xs) / n, sum(ys) / n
        sxx = sum((x - mx) ** 2 for x in xs)
        syy = sum((y - my) ** 2 for y in ys)
        sxy = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True))
        m3 = sum((x - mx) ** 3 for x in xs)
        m4 = sum((x - mx) ** 4 for x in xs)
        results = {
            "var_pop": lambda: sxx / n,
            "var_samp": lambda: sxx / (n - 1),
            "stddev_pop": lambda: (sxx / n).sqrt(),
            "stddev_samp": lambda: (sxx / (n - 1)).sqrt(),
            "skewness": lambda: n.sqrt() * m3 / (sxx**3).sqrt(),
            "kurtosis": lambda: n * m4 / sxx**2 - 3,
            "covar_pop": lambda: sxy / n,
            "covar_samp": lambda: sxy / (n - 1),
            "corr": lambda: sxy / (sxx * syy).sqrt(),
            "regr_slope": lambda: sxy / sxx,
            "regr_intercept": lambda: my - sxy / sxx * mx,
            "regr_r2": lambda: sxy**2 / (sxx * syy),
            "regr_sxx": lambda: sxx,
            "regr_syy": lambda: syy,
            "regr_sxy": lambda: sxy,
            "regr_avgx": lambda: mx,
            "regr_avgy": lambda: my,
        }
        return float(results[kind]())


@pytest.mark.parametrize("kind", sorted([*OF_ONE, *OF_TWO]))
def test_moments_are_correctly_rounded(kind: str) -> None:
    dice = random.Random(kind)
    width = 2 if kind in OF_TWO else 1
    for _ in range(60):
        scale = 10.0 ** dice.randrange(-40, 40)
        base = dice.choice([0.0, 1e9, -3.5, 1e16])
        rows = [
            tuple(base + dice.uniform(-1, 1) * scale for _ in range(width))
            for _ in range(dice.randrange(2, 12))
        ]
        if len({row[-1] for row in rows}) < 2 or len({row[0] for row in rows}) < 2:
            continue
        expected = reference(kind, rows)
        assert moment(kind, rows) == expected, (kind, rows)
        dice.shuffle(rows)
        assert moment(kind, rows) == expected


def test_the_standard_library_agrees_on_plain_numbers() -> None:
    values = [2.5, 3.25, 5.5, 11.25, 11.75]
    rows = [(each,) for each in values]
    assert moment("var_samp", rows) == statistics.variance(values)
    assert moment("stddev_pop", rows) == statistics.pstdev(values)


@pytest.mark.parametrize("kind", sorted([*OF_ONE, *OF_TWO]))
def test_no_rows_have_no_moment(kind: str) -> None:
    assert moment(kind, []) is None
    assert moment(kind, None) is None


def test_one_row_has_no_sample_moment_and_equal_rows_no_shape() -> None:
    assert moment("var_samp", [(5.0,)]) is None
    assert moment("var_pop", [(5.0,)]) == 0.0
    assert moment("covar_samp", [(1.0, 2.0)]) is None
    assert moment("skewness", [(1.0,), (1.0,)]) is None
    assert moment("kurtosis", [(1.0,), (1.0,)]) is None
    assert moment("regr_slope", [(1.0, 2.0), (3.0, 2.0)]) is None
    assert moment("regr_r2", [(1.0, 2.0), (1.0, 3.0)]) == 1.0
    with pytest.raises(ZeroDivisionError, match="DIVIDE_BY_ZERO"):
        moment("corr", [(1.0, 2.0), (1.0, 3.0)])


def test_what_is_not_finite_is_not_a_number() -> None:
    for bad in (math.nan, math.inf, -math.inf):
        result = moment("var_pop", [(1.0,), (bad,)])
        assert result is not None
        assert math.isnan(result)


def test_the_largest_and_the_least_doubles() -> None:
    largest, least = 1.7976931348623157e308, 5e-324
    assert moment("var_pop", [(largest,), (-largest,)]) == math.inf
    assert moment("stddev_pop", [(largest,), (-largest,)]) == largest
    assert moment("stddev_pop", [(least,), (3 * least,)]) == least
    assert moment("var_pop", [(least,), (3 * least,)]) == 0.0
