"""SUM and AVG of FLOAT and DOUBLE: the exact sum, rounded once.

A finite x is cut into four digits of base 2³², x = Σ dᵢ·2^(32·i + 64·bin − 88) with |dᵢ| ≤ 2³²,
where bin depends on x's magnitude only: bin 0 holds 0 and 2⁻²⁴ ≤ |x| < 2⁴⁰, each further bin 64
binary places more, from −16 to 16. Each cut is exact, so Σ weight·dᵢ per bin is the exact sum, and
taking a row back leaves no mark. Bins are keys of the trace; a group whose numbers are of ordinary
size has one, and its sum is rounded without a loop. Bins overlap, and their edges lie only about
where LOG2 puts them: any choice that leaves room for all of x's bits gives the same sum.

The infinities and NaN have bins of their own, where d₀ counts them: they decide the sum as in
IEEE 754. A sum of 0 is +0.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ivm_core.model.types import BIGINT, DOUBLE, INT, DataType
from ivm_core.operators.accumulator import (
    AccColumn,
    Counted,
    Finalised,
    required,
    weighted_sum,
)
from ivm_core.operators.correct_rounding import (
    divide_and_round,
    divided,
    nearest_to_four,
    round_to_odd,
    scaled,
    two_to,
)
from ivm_core.operators.exact_integer import DIGIT
from ivm_core.operators.formula import Level, formula
from ivm_core.operators.sql import column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from sqlglot import exp

HIGHEST_BIN, INFINITY_BIN, MINUS_INFINITY_BIN, NAN_BIN = 16, 17, 18, 19
UNIT = -88
_DIGITS = ("d0", "d1", "d2", "d3")


_BIN = f"""
CASE
    WHEN ABS(:x) >= {two_to(-24)} AND ABS(:x) < {two_to(40)} THEN 0
    WHEN :x IS NULL OR :x = 0 THEN 0
    WHEN ISNAN(:x) THEN {NAN_BIN}
    WHEN :x = CAST('Infinity' AS DOUBLE) THEN {INFINITY_BIN}
    WHEN :x = CAST('-Infinity' AS DOUBLE) THEN {MINUS_INFINITY_BIN}
    ELSE CAST(GREATEST(-{HIGHEST_BIN}, FLOOR((LOG2(ABS(:x)) + 24) / 64)) AS INT)
END
"""
_WHOLE = f"""
CASE
    WHEN :bin = 0 THEN :x * {two_to(-UNIT)}
    WHEN :bin > {HIGHEST_BIN} THEN CAST(1 AS DOUBLE)
    ELSE :x * (POWER({two_to(32)}, -:bin) * {two_to(-UNIT // 2)})
            * (POWER({two_to(32)}, -:bin) * {two_to(-UNIT // 2)})
END
"""
_PART = "STRUCT(:bin AS bin, ARRAY(:d0, :d1, :d2, :d3) AS digits)"
_SPECIAL = f"""
CASE
    WHEN :bin <= {HIGHEST_BIN} OR :d0 = 0 THEN CAST(0 AS DOUBLE)
    WHEN :bin = {INFINITY_BIN} THEN CAST('Infinity' AS DOUBLE)
    WHEN :bin = {MINUS_INFINITY_BIN} THEN CAST('-Infinity' AS DOUBLE)
    ELSE CAST('NaN' AS DOUBLE)
END
"""
_ORDINARY = {
    "t3": ":d3 + SHIFTRIGHT(:d2 + SHIFTRIGHT(:d1 + SHIFTRIGHT(:d0, 32), 32), 32)",
    "t2": f"(:d2 + SHIFTRIGHT(:d1 + SHIFTRIGHT(:d0, 32), 32)) & {DIGIT}",
    "t1": f"(:d1 + SHIFTRIGHT(:d0, 32)) & {DIGIT}",
    "t0": f":d0 & {DIGIT}",
}
_CARRIED = f"""
AGGREGATE(
    TRANSFORM(
        SEQUENCE(2 * ARRAY_MIN(:parts.bin), 2 * ARRAY_MAX(:parts.bin) + 3),
        place -> AGGREGATE(:parts, CAST(0 AS BIGINT), (total, part) ->
            total + COALESCE(GET(part.digits, place - 2 * part.bin), CAST(0 AS BIGINT)))),
    STRUCT(CAST(0 AS BIGINT) AS top, CAST(ARRAY() AS ARRAY<BIGINT>) AS digits),
    (s, total) -> STRUCT(
        SHIFTRIGHT(s.top + total, 32) AS top,
        CONCAT(ARRAY((s.top + total) & {DIGIT}), s.digits) AS digits))
"""


@dataclass(frozen=True)
class ExactDouble(Counted):
    """SUM or AVG of FLOAT or DOUBLE."""

    function: Literal["SUM", "AVG"]
    argument_type: DataType

    @property
    def result_type(self) -> DataType:
        """DOUBLE."""
        return DOUBLE

    @property
    def columns(self) -> tuple[AccColumn, ...]:
        """The count and the four digits."""
        return (self.count, *(AccColumn(self.named(digit), BIGINT) for digit in _DIGITS))

    @property
    def bins(self) -> tuple[AccColumn, ...]:
        """The bin."""
        return (AccColumn(self.named("bin"), INT),)

    def prepare(self, argument: exp.Expr | None) -> tuple[Level, ...]:
        """The bin, and x in units of the bin's lowest place: an integer of up to 128 bits."""
        names = self.bindings()
        x = required(argument)
        if self.argument_type != DOUBLE:
            (x,) = names.bind(x=formula("CAST(:x AS DOUBLE)", x=x))
        (place,) = names.bind(bin=formula(_BIN, x=x))
        names.bind(whole=formula(_WHOLE, x=x, bin=place))
        return names.levels

    @property
    def fold(self) -> Level:
        """Σ weight and Σ weight·dᵢ."""
        whole = column(self.named("whole"))
        upper = [formula(f"RINT(:x * {two_to(-32 * i)})", x=whole) for i in (1, 2, 3)]
        digits = [
            formula(f":this - :next * {two_to(32)}", this=this, next=following)
            for this, following in zip([whole, *upper], upper, strict=False)
        ]
        sums = [weighted_sum(formula("CAST(:d AS BIGINT)", d=d)) for d in (*digits, upper[-1])]
        return (
            self.counting(self.named("whole")),
            *zip((self.named(digit) for digit in _DIGITS), sums, strict=True),
        )

    @property
    def collapse(self) -> Level:
        """Bin 0, what NaN and the infinities make of the sum, and the other bins in any order."""
        place = column(self.named("bin"))
        digits = {digit: column(self.named(digit)) for digit in _DIGITS}
        ordinary = [
            (self.named(digit), formula("SUM(IF(:bin = 0, :d, CAST(0 AS BIGINT)))", bin=place, d=d))
            for digit, d in digits.items()
        ]
        rest = formula(
            f"COLLECT_LIST({_PART}) FILTER(WHERE :bin <> 0 AND :bin <= {HIGHEST_BIN})",
            bin=place,
            **digits,
        )
        return (
            (self.count.name, formula("SUM(:n)", n=column(self.count.name))),
            *ordinary,
            (self.named("special"), formula(f"SUM({_SPECIAL})", bin=place, d0=digits["d0"])),
            (self.named("rest"), rest),
        )

    def finalise(self, state: Callable[[str], exp.Expr], tag: str = "") -> Finalised:
        """NULL without values; a sum past the largest DOUBLE is infinite."""
        n, special, rest = (state(self.named(part)) for part in ("n", "special", "rest"))
        totals = {digit: state(self.named(digit)) for digit in _DIGITS}
        count = formula("NULLIF(:n, 0)", n=n)
        names = self.bindings(tag)
        digits = names.bind(**{name: formula(text, **totals) for name, text in _ORDINARY.items()})
        below = formula("0")
        if self.function == "AVG":
            digits, below = divided(names, digits, count)
        ordinary = nearest_to_four(names, digits, below)
        (parts,) = names.bind(
            parts=formula(
                "CASE WHEN SIZE(:rest) > 0 OR (:is_unknown)"
                f" THEN CONCAT(ARRAY({_PART}), :rest) END",
                rest=rest,
                is_unknown=ordinary.is_unknown,
                bin=formula("0"),
                **totals,
            )
        )
        (exact,) = names.bind(exact=formula(_CARRIED, parts=parts))
        top, others = (formula(f":exact.{part}", exact=exact) for part in ("top", "digits"))
        exponent = formula(f"64 * ARRAY_MAX(:parts.bin) + {128 + UNIT}", parts=parts)
        if self.function == "SUM":
            rounded = round_to_odd(top, others, exponent)
        else:
            rounded = divide_and_round(top, others, exponent, count)
        (extraordinary,) = names.bind(rounded=rounded)
        value = formula(
            "CASE WHEN NOT :n > 0 THEN NULL"
            " WHEN :special <> 0 THEN NANVL(:special, CAST('NaN' AS DOUBLE))"
            f" WHEN :parts IS NULL THEN :ordinary * {two_to(UNIT)} ELSE :extraordinary END",
            n=n,
            special=special,
            parts=parts,
            ordinary=ordinary.value,
            extraordinary=scaled(extraordinary),
        )
        return Finalised(names.levels, value)

    def value_of(self, state: Callable[[str], list[Any]], rows: Sequence[int]) -> Any:
        """As `finalise`; division of Python's integers rounds correctly."""
        n = self.counted(state, rows)
        if n <= 0:
            return None
        bins = state(self.named("bin"))
        digits = [state(self.named(digit)) for digit in _DIGITS]
        total, special = 0, {INFINITY_BIN: 0, MINUS_INFINITY_BIN: 0, NAN_BIN: 0}
        for row in rows:
            if bins[row] in special:
                special[bins[row]] += digits[0][row]
            else:
                place = 64 * (bins[row] + HIGHEST_BIN)
                total += sum(each[row] << (place + 32 * i) for i, each in enumerate(digits))
        if any(special.values()):
            is_one = not special[NAN_BIN] and not all(
                special[each] for each in (INFINITY_BIN, MINUS_INFINITY_BIN)
            )
            sign = 1.0 if special[INFINITY_BIN] else -1.0
            return sign * float("inf") if is_one else float("nan")
        unit = 1 << (64 * HIGHEST_BIN - UNIT)
        try:
            return total / (unit * n if self.function == "AVG" else unit)
        except OverflowError:
            return float("inf") if total > 0 else float("-inf")
