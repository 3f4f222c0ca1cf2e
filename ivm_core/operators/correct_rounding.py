"""From an exact number in base 2³² to the nearest DOUBLE, ties to even.

The number is top·2^e + Σ digitᵢ·2^(e − 32·i), i = 1, 2, …, with a signed BIGINT top and digits in [0, 2³²).
Digits are shifted into a BIGINT h from the top down until |h| ≥ 2⁵⁴; what doesn't get in, if it is not 0,
sets h's last bit. That is rounding to odd, for either sign because digits are not negative; the rounding
to nearest that follows in CAST(h AS DOUBLE) is then the only one (Boldo and Melquiond: two bits more than
the target suffice). h never reaches below 2^-1076, so that a subnormal result is rounded only once too,
by the scaling with powers of two, which is exact everywhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.operators.formula import formula

if TYPE_CHECKING:
    from sqlglot import exp

_SHIFT = "GREATEST(0, LEAST(32, s.e + 1076, 55 - LENGTH(BIN(ABS(s.h)))))"
_TAKE_IN = """
(SHIFTLEFT(s.h, {shift}) + SHIFTRIGHTUNSIGNED(SHIFTLEFT({digit}, {shift}), 32))
| LEAST(SHIFTLEFT({digit}, {shift}) & CAST(4294967295 AS BIGINT), CAST(1 AS BIGINT))
"""
_ROUND = f"""
AGGREGATE(:digits, STRUCT(:top AS h, :exponent AS e), (s, digit) -> TRANSFORM(
    ARRAY({_SHIFT}),
    shift -> STRUCT({_TAKE_IN.format(shift="shift", digit="digit")} AS h, s.e - shift AS e))[0])
"""
_DIVIDE = f"""
AGGREGATE(
    CONCAT(:digits, ARRAY(CAST(0 AS BIGINT), CAST(0 AS BIGINT), CAST(0 AS BIGINT))),
    STRUCT((:top - PMOD(:top, :n)) DIV :n AS h, :exponent AS e, PMOD(:top, :n) AS r),
    (s, digit) -> TRANSFORM(
        ARRAY(STRUCT({_SHIFT} AS shift,
                     (s.r * 4294967296 + digit) DIV :n AS q,
                     (s.r * 4294967296 + digit) % :n AS r)),
        t -> STRUCT({_TAKE_IN.format(shift="t.shift", digit="t.q")} AS h,
                    s.e - t.shift AS e, t.r AS r))[0],
    s -> STRUCT(s.h | LEAST(s.r, CAST(1 AS BIGINT)) AS h, s.e AS e))
"""


def round_to_odd(
    top: exp.Expression, digits: exp.Expression, exponent: exp.Expression
) -> exp.Expression:
    """STRUCT(h, e) for `scaled`; `exponent` is that of `top`'s unit, `digits` an ARRAY<BIGINT>."""
    return formula(_ROUND, top=top, digits=digits, exponent=exponent)


def divide_and_round(
    top: exp.Expression, digits: exp.Expression, exponent: exp.Expression, n: exp.Expression
) -> exp.Expression:
    """The same for the number divided by a BIGINT 0 < n < 2³¹; a NULL n gives NULL.

    Three digits of 0 are appended: if the number is not 0 its quotient is at least 2⁻³¹ of the last digit's
    unit, and 2⁵⁴ of the new last unit, so that the remainder is always past h's end.
    """
    return formula(_DIVIDE, top=top, digits=digits, exponent=exponent, n=n)


def scaled(rounded: exp.Expression) -> exp.Expression:
    """h·2^e as DOUBLE, ±Infinity where it is too large; in two steps, as 2^e may be no DOUBLE."""
    return formula(
        "CAST(:x.h AS DOUBLE) * POWER(CAST(2 AS DOUBLE), SHIFTRIGHT(:x.e, 1))"
        " * POWER(CAST(2 AS DOUBLE), :x.e - SHIFTRIGHT(:x.e, 1))",
        x=rounded,
    )
