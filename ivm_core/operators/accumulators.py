"""The one place that maps an aggregate and its argument's type to an accumulator."""

from __future__ import annotations

from ivm_core.model.errors import InternalError, Unsupported
from ivm_core.model.types import FLOAT_KINDS, INTEGER_BITS, DataType, Decimal
from ivm_core.operators.accumulator import Accumulator, CountRows, CountValues
from ivm_core.operators.exact_decimal import ExactDecimal
from ivm_core.operators.exact_double import ExactDouble
from ivm_core.operators.exact_integer import ExactInteger
from ivm_core.operators.extremes import Extreme


def accumulator_for(
    function: str, argument: DataType | None, prefix: str, where: str = ""
) -> Accumulator:
    """The accumulator of COUNT_STAR, COUNT, SUM, AVG, MIN or MAX.

    SUM and AVG of one argument keep the same columns, so that with one prefix they can share them.
    `Unsupported` for SUM and AVG of what is no number; `where` is its position.
    """
    if function == "COUNT_STAR":
        return CountRows(prefix)
    if argument is None:
        raise InternalError(f"{function} without the type of its argument")
    match function:
        case "COUNT":
            return CountValues(prefix)
        case "MIN" | "MAX":
            return Extreme(prefix, function, argument)
        case "SUM" | "AVG":
            if argument.kind in INTEGER_BITS:
                return ExactInteger(prefix, function, argument)
            if argument.kind in FLOAT_KINDS:
                return ExactDouble(prefix, function, argument)
            if isinstance(argument, Decimal):
                return ExactDecimal(prefix, function, argument)
            raise Unsupported(
                f"{function} of {argument.ddl}",
                where,
                "only numbers can be added",
                f"{function}(CAST(… AS DOUBLE)), or the number type that is meant",
            )
    raise InternalError(f"there is no accumulator for {function}")
