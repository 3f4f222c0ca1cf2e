"""Expressions over rows on the driver, where they mean the same there as in Spark.

Columns, literals, comparisons and three-valued logic; sums, differences and products of integers,
which overflow where Spark's do, and of decimals, where Spark's result has all digits. Everything
else is Spark's: `OnlySpark`.
"""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from ivm_core.model.types import KEPT_SCALE, WIDEST_DECIMAL
from ivm_core.operators.accumulator import OnlySpark
from ivm_core.operators.sql import tree_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ivm_core.plan.scalar import Scalar

COMPARED: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.EQ: pc.equal,
    exp.NEQ: pc.not_equal,
    exp.LT: pc.less,
    exp.LTE: pc.less_equal,
    exp.GT: pc.greater,
    exp.GTE: pc.greater_equal,
}
COMPUTED: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.Add: pc.add_checked,
    exp.Sub: pc.subtract_checked,
    exp.Mul: pc.multiply_checked,
}
INTEGERS = {"TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64()}
DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
"""What a decimal needs to hold any integer of a type, as Spark has it."""
FACTOR_DIGITS = 18
"""Digits of two factors whose product has room in a decimal."""
LARGEST_INT = (1 << 31) - 1
Values = Any
"""An Arrow scalar, or an array as long as the rows."""


def is_exact(of: pa.DataType) -> bool:
    """Whether equality and order of such values are the same in Arrow and in Spark."""
    return bool(
        pa.types.is_integer(of)
        or pa.types.is_string(of)
        or pa.types.is_binary(of)
        or pa.types.is_boolean(of)
        or pa.types.is_date32(of)
        or pa.types.is_timestamp(of)
    )


def values_of(scalar: Scalar, rows: pa.Table) -> pa.ChunkedArray:
    """The scalar's value for every row; `OnlySpark` where it is not for the driver."""
    found = _value(tree_of(scalar), rows)
    if isinstance(found, pa.Scalar):
        return pa.chunked_array([pa.repeat(found, rows.num_rows)])
    return found


def literal_of(scalar: Scalar) -> int | str:
    """The value of an integer or a text that is written out; `OnlySpark` for anything else."""
    tree = scalar.tree
    while isinstance(tree, exp.Paren | exp.Cast):
        if isinstance(tree, exp.Cast) and tree.to.sql(dialect="spark").upper() not in INTEGERS:
            raise OnlySpark
        tree = tree.this
    sign = -1 if isinstance(tree, exp.Neg) else 1
    tree = tree.this if isinstance(tree, exp.Neg) else tree
    if isinstance(tree, exp.Literal) and tree.is_string and sign == 1 and tree is scalar.tree:
        return str(tree.this)
    if isinstance(tree, exp.Literal) and not tree.is_string and str(tree.this).isdigit():
        return sign * int(tree.this)
    raise OnlySpark


def _value(tree: exp.Expr, rows: pa.Table) -> Values:
    if isinstance(tree, exp.Paren):
        return _value(tree.this, rows)
    if isinstance(tree, exp.Column):
        return rows.column(tree.name)
    if isinstance(tree, exp.Boolean):
        return pa.scalar(bool(tree.this))
    if isinstance(tree, exp.Literal):
        return _literal(tree)
    if isinstance(tree, exp.Neg) and isinstance(tree.this, exp.Literal):
        found = _literal(tree.this)
        if pa.types.is_integer(found.type):
            return pc.negate(found)
    if isinstance(tree, exp.Cast):
        return _cast(tree, rows)
    if isinstance(tree, exp.Binary) and type(tree) in COMPUTED:
        return _computed(tree, rows)
    if isinstance(tree, exp.Binary) and type(tree) in COMPARED:
        ours, theirs = _alike(_value(tree.left, rows), _value(tree.right, rows))
        return COMPARED[type(tree)](ours, theirs)
    if isinstance(tree, exp.And):
        return pc.and_kleene(_truth(tree.left, rows), _truth(tree.right, rows))
    if isinstance(tree, exp.Or):
        return pc.or_kleene(_truth(tree.left, rows), _truth(tree.right, rows))
    if isinstance(tree, exp.Not):
        return pc.invert(_truth(tree.this, rows))
    is_plain = not tree.args.get("negate")
    if isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null) and is_plain:
        return pc.is_null(_value(tree.this, rows))
    raise OnlySpark


def _computed(tree: exp.Binary, rows: pa.Table) -> Values:
    sides = [each.unnest() for each in (tree.left, tree.right)]
    ours, theirs = (_decimal_literal(each) or _value(each, rows) for each in sides)
    if pa.types.is_decimal(ours.type) or pa.types.is_decimal(theirs.type):
        ours, theirs = (
            _as_decimal(each, found) for each, found in zip(sides, (ours, theirs), strict=True)
        )
        return _checked(_product if isinstance(tree, exp.Mul) else _SUMS[type(tree)], ours, theirs)
    ours, theirs = _alike(ours, theirs)
    if not pa.types.is_integer(ours.type):
        raise OnlySpark
    return _checked(COMPUTED[type(tree)], ours, theirs)


def _decimal_literal(tree: exp.Expr) -> pa.Scalar | None:
    """A number with a point that is written out."""
    if not isinstance(tree, exp.Literal) or tree.is_string:
        return None
    whole, point, part = str(tree.this).partition(".")
    return _shortest(Decimal(tree.this)) if point and (whole + part).isdigit() else None


def _as_decimal(tree: exp.Expr, found: Values) -> Values:
    """An operand beside a decimal: an integer that is written out has no more digits than that."""
    if pa.types.is_decimal(found.type):
        return found
    if isinstance(found, pa.Scalar) and isinstance(tree, exp.Literal | exp.Neg):
        return _shortest(Decimal(found.as_py()))
    if found.type not in DIGITS:
        raise OnlySpark
    return found.cast(pa.decimal128(DIGITS[found.type], 0))


def _shortest(number: Decimal) -> pa.Scalar:
    """A number in the smallest type that holds it."""
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or exponent > 0 or len(digits) > FACTOR_DIGITS:
        raise OnlySpark
    return pa.scalar(number, pa.decimal128(max(len(digits), -exponent), -exponent))


def _product(ours: Values, theirs: Values) -> Values:
    """Spark's product, where it drops no digit behind the point."""
    precision = ours.type.precision + theirs.type.precision + 1
    scale = ours.type.scale + theirs.type.scale
    if precision <= WIDEST_DECIMAL:
        return pc.multiply(ours, theirs)
    if scale > KEPT_SCALE:
        raise OnlySpark
    short = (each.cast(pa.decimal128(FACTOR_DIGITS, each.type.scale)) for each in (ours, theirs))
    return pc.multiply(*short).cast(pa.decimal128(WIDEST_DECIMAL, scale))


def _sum(ours: Values, theirs: Values, compute: Callable[[Any, Any], Any]) -> Values:
    """Spark's sum or difference, where all digits of any two values have room in it."""
    sides = ours.type, theirs.type
    scale = max(each.scale for each in sides)
    if max(each.precision - each.scale for each in sides) + scale + 1 > WIDEST_DECIMAL:
        raise OnlySpark
    return compute(ours, theirs)


_SUMS: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.Add: partial(_sum, compute=pc.add),
    exp.Sub: partial(_sum, compute=pc.subtract),
}


def _truth(tree: exp.Expr, rows: pa.Table) -> Values:
    found = _value(tree, rows)
    if not pa.types.is_boolean(found.type):
        raise OnlySpark
    return found


def _literal(tree: exp.Literal) -> pa.Scalar:
    if tree.is_string:
        return pa.scalar(str(tree.this), pa.string())
    if not str(tree.this).isdigit() or int(tree.this) > LARGEST_INT:
        raise OnlySpark
    return pa.scalar(int(tree.this), pa.int32())


def _cast(tree: exp.Cast, rows: pa.Table) -> Values:
    """Casts between integers; a value that doesn't fit is for Spark to refuse."""
    wanted = INTEGERS.get(tree.to.sql(dialect="spark").upper())
    found = _value(tree.this, rows)
    if wanted is None or not pa.types.is_integer(found.type) or type(tree) is not exp.Cast:
        raise OnlySpark
    try:
        return found.cast(wanted)
    except pa.ArrowInvalid as error:
        raise OnlySpark from error


def _alike(ours: Values, theirs: Values) -> tuple[Values, Values]:
    """Both in one type: of two integers the wider one."""
    if not is_exact(ours.type) or not is_exact(theirs.type):
        raise OnlySpark
    if ours.type == theirs.type:
        return ours, theirs
    if not (pa.types.is_integer(ours.type) and pa.types.is_integer(theirs.type)):
        raise OnlySpark
    wide = max(ours.type, theirs.type, key=lambda each: int(each.bit_width))
    return ours.cast(wide), theirs.cast(wide)


def _checked(compute: Callable[[Any, Any], Any], ours: Values, theirs: Values) -> Values:
    try:
        return compute(ours, theirs)
    except pa.ArrowInvalid as error:
        raise OnlySpark from error
