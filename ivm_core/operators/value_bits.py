"""Numbers behind values, as Spark SQL trees: the bits of a double, the microseconds of a clock.

Spark has no function for either, and no cast under ANSI: both are put together by exact arithmetic.
"""

from __future__ import annotations

import math
import sys

from sqlglot import exp

from ivm_core.operators.sql_trees import call, cast, number, string

_LARGEST = sys.float_info.max


def double_bits(value: exp.Expr) -> exp.Expr:
    """Build the IEEE-754 bits of a double as BIGINT, by arithmetic that is exact where it matters.

    Within one binade, 2ᵏ ≤ a < 2ᵏ⁺¹, the bits of a > 0 are the line (k + 1022) · 2⁵² + a · 2⁵²⁻ᵏ.
    The lines for all k together are concave in a, so the bits are the least of any lines among
    which the right one is: those for r and r - 1, where r is the rounded binary logarithm of a
    (that may be off by much less than a half). Scaling by a power of two is exact. Subnormal
    numbers and zero lie on the line for k = -1022. Infinity is one more than the largest double,
    NaN is 2⁵¹ more than infinity, and the sign bit is -2⁶³.
    """
    magnitude = call("ABS", value)
    finite = call("LEAST", magnitude, number(_LARGEST))
    logarithm = call("LN", finite) * number(1 / math.log(2))
    rounded = call("GREATEST", call("RINT", logarithm), number(-1021.0))
    scaled = finite * call("POWER", number(2.0), exp.Neg(this=rounded))

    def line(below: int) -> exp.Expr:
        start = cast(rounded + number(1022.0 - below), "BIGINT") * number(1 << 52)
        return start + cast(scaled * number(2.0 ** (52 + below)), "BIGINT")

    is_negative_zero = value.eq(number(0.0)).and_(cast(value, "STRING").eq(string("-0.0")))
    bits = call("LEAST", line(0), line(1))
    for condition, amount in ((magnitude > number(_LARGEST), 1), (call("ISNAN", value), 1 << 51)):
        bits = bits + exp.Case().when(condition, number(amount)).else_(number(0))
    sign = exp.Case().when((value < number(0.0)).or_(is_negative_zero), number(-(1 << 63)))
    # LEAST passes over NULL: this addend is what makes the whole NULL with the value.
    return bits + sign.when(value.is_(exp.Null()).not_(), number(0))


def wall_clock_micros(value: exp.Expr) -> exp.Expr:
    """Build the microseconds of a TIMESTAMP_NTZ from its parts, which no time zone touches."""
    days = cast(call("UNIX_DATE", cast(value, "DATE")), "BIGINT") * number(86_400_000_000)
    hours = cast(call("HOUR", value), "BIGINT") * number(3_600_000_000)
    minutes = cast(call("MINUTE", value), "BIGINT") * number(60_000_000)
    seconds = call("DATE_PART", string("SECOND"), value) * number(1_000_000)
    return days + hours + minutes + cast(seconds, "BIGINT")
