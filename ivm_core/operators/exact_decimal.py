"""SUM and AVG of DECIMAL(p, s), exact in the unscaled integer U = x·10ˢ.

Where p ≤ 18, U is a BIGINT and is summed as one. Where p ≤ 28 and s ≤ 6, 10¹⁰ values have room in
a DECIMAL(38, s), in which Spark sums them without losing a digit. Otherwise
U = Σ limbᵢ·10^(18·i) with |limbᵢ| < 10¹⁸, and each limb is a BIGINT and summed as one, so that
nothing overflows in the middle. Most numbers are short, whatever their type has room for: up to 15
digits U is told from a DOUBLE, and the higher limbs are 0.

SUM raises where the exact sum doesn't fit Spark's result type; AVG is the exact quotient, rounded
half up as Spark does.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context
from decimal import Decimal as Number
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.model.names import WEIGHT
from ivm_core.model.types import KEPT_SCALE, WIDEST_DECIMAL, DataType, Decimal
from ivm_core.operators.accumulator import (
    AccColumn,
    Counted,
    Digits,
    Finalised,
    OneByOne,
    OnlySpark,
    required,
)
from ivm_core.operators.arrow_types import to_arrow
from ivm_core.operators.exact_integer import IntegerTotal
from ivm_core.operators.formula import Bindings, Level, formula
from ivm_core.operators.sql import column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from sqlglot import exp

LIMB = 18
_EXACT_AS_DOUBLE = 15
_ONE_COLUMN = 9
_ROOM = 10
_ANY_LENGTH = Context(prec=100)


@dataclass(frozen=True)
class ExactDecimal(Counted):
    """SUM or AVG of DECIMAL."""

    function: Literal["SUM", "AVG"]
    argument_type: Decimal

    @property
    def result_type(self) -> Decimal:
        """SUM widens the precision by 10, AVG precision and scale by 4, as far as 38 allows."""
        more = (10, 0) if self.function == "SUM" else (4, 4)
        return Decimal(
            min(WIDEST_DECIMAL, self.argument_type.precision + more[0]),
            min(WIDEST_DECIMAL, self.argument_type.scale + more[1]),
        )

    @property
    def columns(self) -> tuple[AccColumn, ...]:
        """The count and the sum."""
        if self._total is not None:
            return (self.count, *self._total.columns)
        if self._has_room:
            return (self.count, AccColumn(self.named("sum"), self._sum_type))
        return (self.count, *(one for limb in self._limb_totals for one in limb.columns))

    @property
    def _total(self) -> IntegerTotal | None:
        precision = self.argument_type.precision
        return IntegerTotal(self.prefix, precision > _ONE_COLUMN) if precision <= LIMB else None

    @property
    def _limb_totals(self) -> list[IntegerTotal]:
        return [IntegerTotal(self.named(limb), wide=True) for limb in self._limbs]

    @property
    def _has_room(self) -> bool:
        of = self.argument_type
        return LIMB < of.precision <= WIDEST_DECIMAL - _ROOM and of.scale <= KEPT_SCALE

    @property
    def _sum_type(self) -> Decimal:
        return Decimal(WIDEST_DECIMAL, self.argument_type.scale)

    @property
    def _limbs(self) -> list[str]:
        return [f"l{i}" for i in range(-(-self.argument_type.precision // LIMB))]

    def prepare(self, argument: exp.Expr | None) -> tuple[Level, ...]:
        """The unscaled integer, whole or in limbs."""
        x = required(argument)
        if self._has_room:
            return (((self.named("x"), x),),)
        precision, scale = self.argument_type.precision, self.argument_type.scale
        if precision > LIMB:
            return (
                tuple((self.named(limb), self._limb(x, i)) for i, limb in enumerate(self._limbs)),
            )
        if scale == 0:
            unscaled = formula("CAST(:x AS BIGINT)", x=x)
        elif precision <= _EXACT_AS_DOUBLE:
            unscaled = self._short(x)
        else:
            unscaled = formula("CAST(:x * :shift AS BIGINT)", x=x, shift=_power_of_ten(scale))
        return (((self.named("l0"), unscaled),),)

    def _short(self, x: exp.Expr) -> exp.Expr:
        """U of at most 15 digits: three roundings of a DOUBLE put it less than half beside it."""
        shift = f"1E{self.argument_type.scale}D"
        return formula("CAST(RINT(CAST(:x AS DOUBLE) * :shift) AS BIGINT)", x=x, shift=shift)

    def _limb(self, x: exp.Expr, i: int) -> exp.Expr:
        scale = self.argument_type.scale
        below = _power_of_ten(LIMB * i - scale)
        if i == len(self._limbs) - 1:
            limb = formula(":x DIV :unit", x=x, unit=below)
        else:
            above = _power_of_ten(LIMB * (i + 1) - scale)
            limb = formula("(:x % :next) DIV :unit", x=x, unit=below, next=above)
        # not ABS: it rounds to 34 digits
        return formula(
            "IF(:x < :short AND :x > -:short, :low, :limb)",
            x=x,
            short=_power_of_ten(_EXACT_AS_DOUBLE - scale),
            low=formula("CAST(0 AS BIGINT)") if i else self._short(x),
            limb=limb,
        )

    def digits(self, argument: pa.ChunkedArray | None, weights: np.ndarray) -> Digits:
        """As `fold`, for every row of the driver; where U is a BIGINT."""
        values = required(argument)
        try:
            if self._has_room:
                return self.counts(values, weights) | {self.named("sum"): _times(values, weights)}
            unscaled = np.concatenate(
                [np.empty(0, np.int64), *(_unscaled(chunk) for chunk in values.chunks)]
            )
        except pa.ArrowInvalid as error:
            raise OnlySpark("sums of long decimals") from error
        if self._total is not None:
            return self.counts(values, weights) | self._total.digits(unscaled, weights)
        found = self.counts(values, weights)
        for place, limb in enumerate(self._limb_totals):
            found |= limb.digits(np.zeros_like(unscaled) if place else unscaled, weights)
        return found

    @property
    def fold(self) -> Level:
        """Σ weight and Σ weight·U."""
        if self._has_room:
            total = formula(
                "COALESCE(SUM(IF(:w = 1, :x, CAST(:x * :w AS :type))), CAST(0 AS :type))".replace(
                    ":type", self._sum_type.ddl
                ),
                x=column(self.named("x")),
                w=column(WEIGHT),
            )
            total = formula("CAST(:t AS :type)".replace(":type", self._sum_type.ddl), t=total)
            return (self.counting(self.named("x")), (self.named("sum"), total))
        counting = self.counting(self.named("l0"))
        if self._total is not None:
            return (counting, *self._total.fold(column(self.named("l0"))))
        sums = zip(self._limb_totals, self._limbs, strict=True)
        folds = [total.fold(column(self.named(limb))) for total, limb in sums]
        return (counting, *(one for fold in folds for one in fold))

    @property
    def collapse(self) -> Level:
        """Sums, of the type that they had."""
        return tuple(
            (
                one.name,
                formula(
                    "CAST(SUM(:x) AS :type)".replace(":type", one.type.ddl), x=column(one.name)
                ),
            )
            for one in self.columns
        )

    def finalise(self, state: Callable[[str], exp.Expr], tag: str = "") -> Finalised:
        """NULL without values; raises where the exact value is outside of the result type."""
        n = state(self.count.name)
        names = self.bindings(tag)
        limbs = self._carried(names, state)
        if self.function == "SUM":
            unscaled = limbs[0]
            for i, limb in enumerate(limbs[1:]):
                (unscaled,) = names.bind(**{f"u{i}": _joined(unscaled, limb, LIMB)})
        else:
            unscaled = self._quotient(names, limbs, formula("NULLIF(:n, 0)", n=n))
        value = formula(
            "CASE WHEN :n > 0 THEN :value END", n=n, value=_rescaled(unscaled, self.result_type)
        )
        return Finalised(names.levels, value)

    def value_of(self, state: Callable[[str], list[Any]], rows: Sequence[int]) -> Any:
        """As `finalise`, over integers of any length."""
        n = self.counted(state, rows)
        if n <= 0:
            return None
        return self._value(self._unscaled(state, rows), n)

    def _value(self, unscaled: int, n: int) -> Number:
        """The value of n arguments that add up to an unscaled integer."""
        to = self.result_type
        if self.function == "AVG":
            quotient, remainder = divmod(unscaled * 10 ** (to.scale - self.argument_type.scale), n)
            is_up = 2 * remainder > n or (2 * remainder == n and quotient >= 0)
            unscaled = quotient + is_up
        if abs(unscaled) >= 10**to.precision:
            raise OnlySpark(f"the value doesn't fit {to.ddl}")
        return Number(unscaled).scaleb(-to.scale, _ANY_LENGTH)

    def values_of(self, total: Callable[[str], pa.Array]) -> pa.Array:
        """Sums as they are; of averages only the totals are made at once."""
        if self._total is not None:
            whole = self._total.totals(total).cast(pa.decimal128(38, 0))
        elif self._has_room:
            whole = total(self.named("sum")).view(pa.decimal128(38, 0))
        else:
            raise OneByOne
        if self.function == "SUM":
            return self.where_any(total, whole.view(pa.decimal128(38, self.argument_type.scale)))
        pairs = zip(whole.to_pylist(), total(self.count.name).to_pylist(), strict=True)
        values = [self._value(int(unscaled), n) if n > 0 else None for unscaled, n in pairs]
        return pa.array(values, to_arrow(self.result_type))

    def _unscaled(self, state: Callable[[str], list[Any]], rows: Sequence[int]) -> int:
        """The exact total of the unscaled integers."""
        if self._total is not None:
            return self._total.added(state, rows)
        if self._has_room:
            sums = state(self.named("sum"))
            scale = self.argument_type.scale
            return sum(int(sums[row].scaleb(scale, _ANY_LENGTH)) for row in rows)
        limbs = enumerate(self._limb_totals)
        return sum(limb.added(state, rows) * 10 ** (LIMB * i) for i, limb in limbs)

    def _carried(self, names: Bindings, state: Callable[[str], exp.Expr]) -> list[exp.Expr]:
        """The total as limbs, highest first: the lower ones in [0, 10¹⁸), the highest signed."""
        if self._total is not None:
            return names.bind(total=self._total.decimal(state))
        if self._has_room:
            # the digits without the point: a product might have no room for them
            digits = "CAST(REPLACE(CAST(:t AS STRING), '.', '') AS DECIMAL(38, 0))"
            return names.bind(total=formula(digits, t=state(self.named("sum"))))
        base = _power_of_ten(LIMB)
        (carried,) = names.bind(t0=self._limb_totals[0].decimal(state))
        limbs: list[exp.Expr] = []
        for i, limb in enumerate(self._limb_totals[1:], start=1):
            higher = formula(
                "CAST(:higher + :carry AS DECIMAL(38, 0))",
                higher=limb.decimal(state),
                carry=_floor_divided(carried, base),
            )
            low, carried = names.bind(
                **{f"c{i}": formula("PMOD(:x, :base)", x=carried, base=base), f"t{i}": higher}
            )
            limbs.insert(0, low)
        return [carried, *limbs]

    def _quotient(self, names: Bindings, limbs: list[exp.Expr], n: exp.Expr) -> exp.Expr:
        """⌊total·10ᵏ / n⌋ by long division, then up where the remainder says so."""
        divisor = formula("CAST(:n AS DECIMAL(20, 0))", n=n)
        quotient, remainder = names.bind(
            q0=_floor_divided(limbs[0], divisor),
            r0=formula("PMOD(:x, :n)", x=limbs[0], n=divisor),
        )
        steps = [(limb, LIMB) for limb in limbs[1:]]
        steps.append((formula("0"), self.result_type.scale - self.argument_type.scale))
        for i, (limb, digits) in enumerate(steps, start=1):
            (dividend,) = names.bind(
                **{
                    f"d{i}": formula(
                        "CAST(CAST(:r AS DECIMAL(20, 0)) * :base + :limb AS DECIMAL(38, 0))",
                        r=remainder,
                        base=_power_of_ten(digits),
                        limb=limb,
                    )
                }
            )
            quotient, remainder = names.bind(
                **{
                    f"q{i}": _joined(quotient, _floor_divided(dividend, divisor), digits),
                    f"r{i}": formula("PMOD(:x, :n)", x=dividend, n=divisor),
                }
            )
        return formula(
            "IF(2 * :r > :n OR (2 * :r = :n AND :q >= 0), :q + 1, :q)",
            q=quotient,
            r=remainder,
            n=divisor,
        )


def _unscaled(values: pa.Decimal128Array) -> np.ndarray:
    """U of decimals of at most 18 digits, 0 for NULL; Arrow's own error for longer ones."""
    whole = pa.Array.from_buffers(
        pa.decimal128(values.type.precision, 0),
        len(values),
        values.buffers(),
        offset=values.offset,
    )
    if values.type.precision > LIMB:
        whole = whole.cast(pa.decimal128(LIMB, 0))
    found: np.ndarray = pc.fill_null(whole.cast(pa.int64()), 0).to_numpy()
    return found


def _times(values: pa.ChunkedArray, weights: np.ndarray) -> pa.ChunkedArray:
    """Decimals times weights, with room for their sum; 0 for NULL."""
    room = pa.decimal128(WIDEST_DECIMAL - _ROOM - 1, values.type.scale)
    factors = pa.array(weights).cast(pa.decimal128(20, 0)).cast(pa.decimal128(_ROOM, 0))
    product = pc.multiply(values.cast(room), factors)
    return pc.fill_null(product, pa.scalar(0, product.type))


def _power_of_ten(exponent: int) -> exp.Expr:
    kind = Decimal(exponent + 1, 0) if exponent >= 0 else Decimal(-exponent, -exponent)
    return formula(f"CAST('1E{exponent}' AS {kind.ddl})")


def _floor_divided(x: exp.Expr, by: exp.Expr) -> exp.Expr:
    """⌊x / by⌋ of integers; DIV of DECIMAL would wrap where the quotient is no BIGINT."""
    return formula(
        "CAST((CAST(:x AS DECIMAL(38, 0)) - PMOD(:x, :by)) / :by AS DECIMAL(38, 0))", x=x, by=by
    )


def _joined(high: exp.Expr, low: exp.Expr, digits: int) -> exp.Expr:
    """high·10^digits + low for 0 ≤ low < 10^digits; raises only if that is past 38 digits.

    A negative high is taken one nearer to 0 first, as high·10^digits alone may be one too large.
    """
    return formula(
        "CAST(IF(:high < 0, (:high + 1) * :base + (:low - :base), :high * :base + :low)"
        " AS DECIMAL(38, 0))",
        high=high,
        low=low,
        base=_power_of_ten(digits),
    )


def _rescaled(unscaled: exp.Expr, to: DataType) -> exp.Expr:
    """An unscaled DECIMAL(38,0) at its scale: by text where a product would lose digits."""
    if not isinstance(to, Decimal):
        raise TypeError(to)
    if to.precision + to.scale + 1 <= WIDEST_DECIMAL:
        text = f"CAST(CAST(:u AS {Decimal(to.precision, 0).ddl}) * :unit AS {to.ddl})"
        return formula(text, u=unscaled, unit=_power_of_ten(-to.scale))
    text = f"CAST(CONCAT(CAST(:u AS STRING), 'E-{to.scale}') AS {to.ddl})"
    return formula(text, u=unscaled)
