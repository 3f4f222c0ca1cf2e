"""SUM and AVG of integers, and the halves that sums of BIGINT are kept in.

x = high·2³² + low with 0 ≤ low < 2³²; Σ weight·high and Σ weight·low are BIGINT and don't overflow
in the middle, so that only the exact final value decides. AVG is the correctly rounded quotient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.model.types import BIGINT, DOUBLE, INTEGER_BITS, DataType
from ivm_core.operators.accumulator import (
    AccColumn,
    Counted,
    Digits,
    Finalised,
    OneByOne,
    OnlySpark,
    added,
    required,
    weighted_sum,
)
from ivm_core.operators.correct_rounding import divide_and_round, scaled
from ivm_core.operators.formula import Level, formula
from ivm_core.operators.sql import column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    import numpy as np
    from sqlglot import exp

DIGIT = "CAST(4294967295 AS BIGINT)"
EXACT_IN_DOUBLE = 2**53


@dataclass(frozen=True)
class IntegerTotal:
    """The columns that hold Σ weight·x of an integer x: one where |x| ≤ 2³¹, else its halves."""

    prefix: str
    wide: bool

    @property
    def columns(self) -> tuple[AccColumn, ...]:
        """`s`, or `hi` and `lo`."""
        names = ("hi", "lo") if self.wide else ("s",)
        return tuple(AccColumn(f"{self.prefix}_{name}", BIGINT) for name in names)

    def fold(self, x: exp.Expr) -> Level:
        """The columns' aggregates over a BIGINT."""
        names = [one.name for one in self.columns]
        if not self.wide:
            return ((names[0], weighted_sum(x)),)
        return (
            (names[0], weighted_sum(formula("SHIFTRIGHT(:x, 32)", x=x))),
            (names[1], weighted_sum(formula("(:x & :digit)", x=x, digit=DIGIT))),
        )

    def digits(self, values: np.ndarray, weights: np.ndarray) -> Digits:
        """What `fold` adds up, for every row of the driver."""
        names = [one.name for one in self.columns]
        if not self.wide:
            return {names[0]: values * weights}
        return {names[0]: (values >> 32) * weights, names[1]: (values & 0xFFFFFFFF) * weights}

    def high(self, state: Callable[[str], exp.Expr]) -> exp.Expr:
        """⌊total / 2³²⌋."""
        totals = [state(one.name) for one in self.columns]
        if not self.wide:
            return formula("SHIFTRIGHT(:s, 32)", s=totals[0])
        return formula("(:hi + SHIFTRIGHT(:lo, 32))", hi=totals[0], lo=totals[1])

    def low(self, state: Callable[[str], exp.Expr]) -> exp.Expr:
        """The total mod 2³²."""
        return formula("(:lo & :digit)", lo=state(self.columns[-1].name), digit=DIGIT)

    def added(self, state: Callable[[str], list[Any]], rows: Sequence[int]) -> int:
        """The total over state rows on the driver."""
        totals = [added(state(one.name), rows) for one in self.columns]
        return int(totals[0] if not self.wide else totals[0] * 2**32 + totals[1])

    def totals(self, total: Callable[[str], pa.Array]) -> pa.Array:
        """The totals of many groups; Arrow's own error beyond BIGINT."""
        parts = [total(one.name) for one in self.columns]
        if not self.wide:
            return parts[0]
        return pc.add_checked(pc.multiply_checked(parts[0], 2**32), parts[1])

    def decimal(self, state: Callable[[str], exp.Expr]) -> exp.Expr:
        """The total as DECIMAL(38,0), which always holds it."""
        totals = [state(one.name) for one in self.columns]
        if not self.wide:
            return formula("CAST(:s AS DECIMAL(38, 0))", s=totals[0])
        return formula(
            "CAST(CAST(:hi AS DECIMAL(20, 0)) * CAST(4294967296 AS DECIMAL(10, 0)) + :lo"
            " AS DECIMAL(38, 0))",
            hi=totals[0],
            lo=totals[1],
        )


@dataclass(frozen=True)
class ExactInteger(Counted):
    """SUM or AVG of TINYINT, SMALLINT, INT or BIGINT."""

    function: Literal["SUM", "AVG"]
    argument_type: DataType

    @property
    def result_type(self) -> DataType:
        """SUM gives BIGINT, AVG gives DOUBLE."""
        return BIGINT if self.function == "SUM" else DOUBLE

    @property
    def total(self) -> IntegerTotal:
        """Where the sum is kept."""
        return IntegerTotal(self.prefix, INTEGER_BITS[self.argument_type.kind] > 32)

    @property
    def columns(self) -> tuple[AccColumn, ...]:
        """The count and the sum."""
        return (self.count, *self.total.columns)

    def prepare(self, argument: exp.Expr | None) -> tuple[Level, ...]:
        """The argument as BIGINT."""
        x = formula("CAST(:x AS BIGINT)", x=required(argument))
        return (((self.named("x"), x),),)

    @property
    def fold(self) -> Level:
        """Σ weight and Σ weight·x."""
        return (
            self.counting(self.named("x")),
            *self.total.fold(column(self.named("x"))),
        )

    def digits(self, argument: pa.ChunkedArray | None, weights: np.ndarray) -> Digits:
        """As `fold`, for every row of the driver."""
        values = required(argument)
        integers = pc.fill_null(values.cast(pa.int64()), 0).to_numpy()
        return self.counts(values, weights) | self.total.digits(integers, weights)

    def finalise(self, state: Callable[[str], exp.Expr], tag: str = "") -> Finalised:
        """NULL without values; SUM raises where the exact sum is no BIGINT."""
        n = state(self.count.name)
        if self.function == "SUM":
            value = formula("CASE WHEN :n > 0 THEN :sum END", n=n, sum=self._sum(state))
            return Finalised((), value)
        names = self.bindings(tag)
        high, low = names.bind(high=self.total.high(state), low=self.total.low(state))
        fits = formula(
            ":high BETWEEN -:limit AND :limit - 1", high=high, limit=EXACT_IN_DOUBLE // 2**32
        )
        both_exact = formula(
            "CAST(:high * 4294967296 + :low AS DOUBLE) / CAST(:n AS DOUBLE)",
            high=high,
            low=low,
            n=n,
        )
        rounded = divide_and_round(
            high, formula("ARRAY(:low)", low=low), formula("32"), formula("NULLIF(:n, 0)", n=n)
        )
        (long_way,) = names.bind(
            q=formula("CASE WHEN NOT (:fits) THEN :rounded END", fits=fits, rounded=rounded)
        )
        value = formula(
            "CASE WHEN NOT :n > 0 THEN NULL WHEN :fits THEN :quick ELSE :exact END",
            n=n,
            fits=fits,
            quick=both_exact,
            exact=scaled(long_way),
        )
        return Finalised(names.levels, value)

    def value_of(self, state: Callable[[str], list[Any]], rows: Sequence[int]) -> Any:
        """As `finalise`; division of Python's integers rounds correctly."""
        n, total = self.counted(state, rows), self.total.added(state, rows)
        if n <= 0:
            return None
        if self.function == "AVG":
            return total / n
        if not -(2**63) <= total < 2**63:
            raise OnlySpark("the sum is no BIGINT")
        return total

    def values_of(self, total: Callable[[str], pa.Array]) -> pa.Array:
        """Sums; averages where all that is divided is exact as DOUBLE."""
        sums = self.total.totals(total)
        if self.function == "AVG":
            counts = total(self.count.name)
            ends = [pc.max(pc.abs_checked(each)).as_py() or 0 for each in (sums, counts)]
            if max(ends) > EXACT_IN_DOUBLE:
                raise OneByOne
            divisors = pc.if_else(pc.greater(counts, 0), counts, 1)
            sums = pc.divide(sums.cast(pa.float64()), divisors.cast(pa.float64()))
        return self.where_any(total, sums)

    def _sum(self, state: Callable[[str], exp.Expr]) -> exp.Expr:
        if not self.total.wide:
            return state(self.total.columns[0].name)
        return formula(
            "CASE WHEN :high BETWEEN -2147483648 AND 2147483647 THEN :high * 4294967296 + :low"
            " ELSE CAST(:total AS BIGINT) END",
            high=self.total.high(state),
            low=self.total.low(state),
            total=self.total.decimal(state),
        )
