"""From an exact number in base 2³² to the nearest DOUBLE, ties to even.

The number is top·2^e + Σ digitᵢ·2^(e − 32·i), i = 1, 2, …, with a signed BIGINT top and digits in
[0, 2³²). Digits are shifted into a BIGINT h from the top down until |h| ≥ 2⁵⁵; what doesn't get in,
if it is not 0, sets h's last bit. That is rounding to odd, for either sign because digits are not
negative; the rounding to nearest that follows in CAST(h AS DOUBLE) is then the only one (Boldo and
Melquiond: two bits more than the target suffice; the third is for a negative h that is a power of
two, where the number itself is one bit shorter). h never reaches below 2^-1076, so that a subnormal
result is rounded only once too, by the scaling with powers of two, which is exact everywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.operators.formula import formula

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp

    from ivm_core.operators.formula import Bindings


def two_to(exponent: int) -> str:
    """The literal of a power of two that is a normal DOUBLE."""
    return f"{2.0**exponent!r}D".replace("e+", "E").replace("e", "E")


_SHIFT = "GREATEST(0, LEAST(32, s.e + 1076, 56 - LENGTH(BIN(ABS(s.h)))))"
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


def round_to_odd(top: exp.Expr, digits: exp.Expr, exponent: exp.Expr) -> exp.Expr:
    """STRUCT(h, e) for `scaled`; `exponent` is that of `top`'s unit, `digits` an ARRAY<BIGINT>."""
    return formula(_ROUND, top=top, digits=digits, exponent=exponent)


def divide_and_round(top: exp.Expr, digits: exp.Expr, exponent: exp.Expr, n: exp.Expr) -> exp.Expr:
    """The same for the number divided by a BIGINT 0 < n < 2³¹; a NULL n gives NULL.

    Three digits of 0 are appended: if the number is not 0 its quotient is at least 2⁻³¹ of the last
    digit's unit, and 2⁶⁵ of the new last unit, so that the remainder is always past h's end.
    """
    return formula(_DIVIDE, top=top, digits=digits, exponent=exponent, n=n)


def scaled(rounded: exp.Expr) -> exp.Expr:
    """h·2^e as DOUBLE, ±Infinity where it is too large; in two steps, as 2^e may be no DOUBLE."""
    return formula(
        "CAST(:x.h AS DOUBLE) * POWER(CAST(2 AS DOUBLE), SHIFTRIGHT(:x.e, 1))"
        " * POWER(CAST(2 AS DOUBLE), :x.e - SHIFTRIGHT(:x.e, 1))",
        x=rounded,
    )


@dataclass(frozen=True)
class Rounded:
    """A DOUBLE in units of the last digit, and whether it could not be told that way."""

    value: exp.Expr
    is_unknown: exp.Expr


def divided(
    names: Bindings, digits: Sequence[exp.Expr], n: exp.Expr
) -> tuple[list[exp.Expr], exp.Expr]:
    """Long division of signed top and digits by 0 < n < 2³¹: as many digits, and the remainder."""
    quotient, remainder = names.bind(
        q0=formula("(:top - PMOD(:top, :n)) DIV :n", top=digits[0], n=n),
        r0=formula("PMOD(:top, :n)", top=digits[0], n=n),
    )
    quotients = [quotient]
    for i, digit in enumerate(digits[1:], start=1):
        dividend = formula("(:r * 4294967296 + :digit)", r=remainder, digit=digit)
        quotient, remainder = names.bind(
            **{
                f"q{i}": formula(":x DIV :n", x=dividend, n=n),
                f"r{i}": formula(":x % :n", x=dividend, n=n),
            }
        )
        quotients.append(quotient)
    return quotients, remainder


def nearest_to_four(names: Bindings, digits: Sequence[exp.Expr], below: exp.Expr) -> Rounded:
    """Signed top and three digits without a loop; `below` is not 0 where more follows the last.

    Two exact DOUBLE make up the number's first bits: a without its last 11 bits, and those 11 with
    the next 41 and one bit for all that follows, so that their one addition rounds correctly. Where
    a is short, the number is a·2⁶⁴ + p·2³² + q and needs no such bit, unless something follows a
    number that is shorter still: that is unknown.
    """
    top, second, third, fourth = digits
    (large,) = names.bind(large=formula("ABS(:top) >= 1048576", top=top))
    a, p, q, z = names.bind(
        a=formula("IF(:large, :top, :top * 4294967296 + :d)", large=large, top=top, d=second),
        p=formula("IF(:large, :d2, :d1)", large=large, d2=second, d1=third),
        q=formula("IF(:large, :d1, :d0)", large=large, d1=third, d0=fourth),
        z=formula("IF(:large, :d0, 0) | :below", large=large, d0=fourth, below=below),
    )
    long = formula(
        f"(CAST(:a - (:a & 2047) AS DOUBLE) * {two_to(64)}"
        " + CAST((((:a & 2047) * 4294967296 + :p) * 512 + SHIFTRIGHT(:q, 23))"
        f" | LEAST((:q & 8388607) | :z, CAST(1 AS BIGINT)) AS DOUBLE) * {two_to(23)})"
        f" * IF(:large, {two_to(32)}, {two_to(0)})",
        a=a,
        p=p,
        q=q,
        z=z,
        large=large,
    )
    short = formula(
        f"CAST(:a * 4294967296 + :p AS DOUBLE) * {two_to(32)}"
        " + CAST(:q | LEAST(:z, CAST(1 AS BIGINT)) AS DOUBLE)",
        a=a,
        p=p,
        q=q,
        z=z,
    )
    return Rounded(
        formula("IF(ABS(:a) >= 1048576, :long, :short)", a=a, long=long, short=short),
        formula(":a BETWEEN -1 AND 0 AND :z <> 0", a=a, z=z),
    )
