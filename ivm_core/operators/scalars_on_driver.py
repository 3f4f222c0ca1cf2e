"""Expressions over rows on the driver, where they mean the same there as in Spark.

Columns, literals, comparisons and three-valued logic; sums, differences and products of integers,
which overflow where Spark's do, and of decimals, where Spark's result has all digits; CASE, IF,
COALESCE, quotients of a few decimals, parts of dates. Everything else is Spark's: `OnlySpark`.
"""

from __future__ import annotations

from datetime import date
from decimal import Context, Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from ivm_core.model.types import KEPT_SCALE, WIDEST_DECIMAL
from ivm_core.operators.accumulator import OnlySpark
from ivm_core.operators.sieve import BIGINT_DIGITS, COMPARED, INT_DIGITS, truth_by_sieve
from ivm_core.operators.sql import DIALECT, tree_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ivm_core.plan.scalar import Scalar

COMPUTED: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.Add: pc.add_checked,
    exp.Sub: pc.subtract_checked,
    exp.Mul: pc.multiply_checked,
}
INTEGERS = {"TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64()}
DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): INT_DIGITS, pa.int64(): BIGINT_DIGITS}
"""What a decimal needs to hold any integer of a type, as Spark has it."""
QUOTIENTS = 2_000
"""Divisions that are done one by one; for more a statement is the cheaper one."""
FACTOR_DIGITS = 18
"""Digits of two factors whose product has room in a decimal."""
LARGEST_INT = (1 << 31) - 1
PARTS = {
    "YEAR": pc.year,
    "QUARTER": pc.quarter,
    "MONTH": pc.month,
    "DAY": pc.day,
    "DAYOFMONTH": pc.day,
}
FIRST_DAY, LAST_DAY = date(1, 1, 1), date(9999, 12, 31)
"""Dates whose parts are certain to be the same to Arrow and to Spark."""
_WIDE = Context(prec=2 * WIDEST_DECIMAL)
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
    if isinstance(tree, exp.Div):
        return _quotient(tree, rows)
    if isinstance(tree, exp.Case):
        return _chosen(tree, rows)
    if isinstance(tree, exp.Coalesce):
        return _first_there([tree.this, *tree.expressions], rows)
    if isinstance(tree, exp.Extract):
        return _part_of_date(tree.name, tree.expression, rows)
    if isinstance(tree, exp.Anonymous):
        return _called(tree.name.upper(), tree.expressions, rows)
    return _asked(tree, rows)


def _asked(tree: exp.Expr, rows: pa.Table) -> Values:
    """A condition: TRUE, FALSE or NULL."""
    if isinstance(tree, exp.And):
        return pc.and_kleene(_truth(tree.left, rows), _truth(tree.right, rows))
    if isinstance(tree, exp.Or):
        return pc.or_kleene(_truth(tree.left, rows), _truth(tree.right, rows))
    if isinstance(tree, exp.Not):
        return pc.invert(_truth(tree.this, rows))
    said = truth_by_sieve(tree, rows)
    if said is not None:
        return said
    if isinstance(tree, exp.Binary) and type(tree) in COMPARED:
        return COMPARED[type(tree)](*_compared(tree.left, tree.right, rows))
    if isinstance(tree, exp.NullSafeEQ):
        ours, theirs = _compared(tree.left, tree.right, rows)
        neither = pc.and_(pc.is_null(ours), pc.is_null(theirs))
        return pc.or_(neither, pc.fill_null(pc.equal(ours, theirs), False))
    if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
        low = exp.GTE(this=tree.this, expression=tree.args["low"])
        high = exp.LTE(this=tree.this.copy(), expression=tree.args["high"])
        return pc.and_kleene(_asked(low, rows), _asked(high, rows))
    is_plain = not tree.args.get("negate")
    if isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null) and is_plain:
        return pc.is_null(_value(tree.this, rows))
    raise OnlySpark


def _compared(left: exp.Expr, right: exp.Expr, rows: pa.Table) -> tuple[Values, Values]:
    """Two sides of a comparison in one type that holds all digits of both."""
    sides = [left.unnest(), right.unnest()]
    ours, theirs = (_number_or_value(each, rows) for each in sides)
    if not (pa.types.is_decimal(ours.type) or pa.types.is_decimal(theirs.type)):
        return _alike(ours, theirs)
    numbers = zip(sides, (ours, theirs), strict=True)
    ours, theirs = _in_one_decimal([_as_decimal(each, found) for each, found in numbers])
    return ours, theirs


def _called(name: str, arguments: list[exp.Expr], rows: pa.Table) -> Values:
    """A function by its name."""
    if name == "COALESCE":
        return _first_there(arguments, rows)
    if name == "IF" and len(arguments) == 3:
        condition, value, other = arguments
        return _chosen(exp.Case(ifs=[exp.If(this=condition, true=value)], default=other), rows)
    if name in PARTS and len(arguments) == 1:
        return _part_of_date(name, arguments[0], rows)
    raise OnlySpark(name)


def _first_there(trees: list[exp.Expr], rows: pa.Table) -> Values:
    return pc.coalesce(*_in_one_type([_number_or_value(each, rows) for each in trees]))


def _chosen(tree: exp.Case, rows: pa.Table) -> Values:
    """CASE WHEN; what a branch can't compute on rows of others is Spark's too."""
    if tree.this is not None:
        raise OnlySpark("CASE of a value")
    branches, default = tree.args["ifs"], tree.args.get("default")
    conditions = [pc.fill_null(_truth(each.this, rows), False) for each in branches]
    answers = [*(each.args["true"] for each in branches), default or exp.Null()]
    said = [each for each in answers if not isinstance(each, exp.Null)]
    if not said:
        raise OnlySpark("a NULL without a type")
    values = _in_one_type([_number_or_value(each, rows) for each in said])
    known = dict(zip(map(id, said), values, strict=True))
    *found, last = (known.get(id(each), pa.scalar(None, values[0].type)) for each in answers)
    for condition, value in zip(conditions[::-1], found[::-1], strict=True):
        last = pc.if_else(condition, value, last)
    return last


def _number_or_value(tree: exp.Expr, rows: pa.Table) -> Values:
    found = _decimal_literal(tree.unnest())
    return _value(tree, rows) if found is None else found


def _in_one_type(found: list[Values]) -> list[Values]:
    """All in the type that Spark finds for them: the widest integer, or a decimal for all."""
    types = [each.type for each in found]
    if all(each == types[0] for each in types):
        return found
    if all(pa.types.is_integer(each) for each in types):
        wide = max(types, key=lambda each: int(each.bit_width))
        return [each.cast(wide) for each in found]
    if any(not pa.types.is_decimal(each) and each not in DIGITS for each in types):
        raise OnlySpark("values of several types")
    return _in_one_decimal(
        [
            each.cast(pa.decimal128(DIGITS[each.type], 0)) if each.type in DIGITS else each
            for each in found
        ]
    )


def _in_one_decimal(found: list[Values]) -> list[Values]:
    """Decimals in the smallest type that has all digits of all of them."""
    scale = max(each.type.scale for each in found)
    whole = max(each.type.precision - each.type.scale for each in found)
    if whole + scale > WIDEST_DECIMAL:
        raise OnlySpark("decimals that have no type in common")
    return [each.cast(pa.decimal128(whole + scale, scale)) for each in found]


def _part_of_date(name: str, argument: exp.Expr, rows: pa.Table) -> Values:
    """YEAR, QUARTER, MONTH or DAY of a date."""
    part = PARTS.get(name.upper())
    if part is None:
        raise OnlySpark(name)
    found = _value(argument, rows)
    if not pa.types.is_date32(found.type):
        raise OnlySpark(f"{name} of {found.type}")
    days = found.cast(pa.int32())
    first, last = (pa.scalar(each, pa.date32()).cast(pa.int32()) for each in (FIRST_DAY, LAST_DAY))
    beyond = pc.or_(pc.less(days, first), pc.greater(days, last))
    if pc.any(beyond).as_py() if not isinstance(beyond, pa.Scalar) else beyond.as_py():
        raise OnlySpark("a date beyond the years 1 to 9999")
    return part(found).cast(pa.int32())


def _computed(tree: exp.Binary, rows: pa.Table) -> Values:
    sides = [each.unnest() for each in (tree.left, tree.right)]
    ours, theirs = (_number_or_value(each, rows) for each in sides)
    if pa.types.is_decimal(ours.type) or pa.types.is_decimal(theirs.type):
        ours, theirs = (
            _as_decimal(each, found) for each, found in zip(sides, (ours, theirs), strict=True)
        )
        return _checked(_product if isinstance(tree, exp.Mul) else _SUMS[type(tree)], ours, theirs)
    ours, theirs = _alike(ours, theirs)
    if not pa.types.is_integer(ours.type):
        raise OnlySpark
    return _checked(COMPUTED[type(tree)], ours, theirs)


def _quotient(tree: exp.Div, rows: pa.Table) -> Values:
    """A decimal by another, rounded once, half away from 0, to the scale that Spark gives it."""
    sides = [each.unnest() for each in (tree.left, tree.right)]
    found = [_number_or_value(each, rows) for each in sides]
    if not any(pa.types.is_decimal(each.type) for each in found) or rows.num_rows > QUOTIENTS:
        raise OnlySpark("divisions")
    ours, theirs = (_as_decimal(*each) for each in zip(sides, found, strict=True))
    whole = ours.type.precision - ours.type.scale + theirs.type.scale
    scale = max(KEPT_SCALE, ours.type.scale + theirs.type.precision + 1)
    if whole + scale > WIDEST_DECIMAL:
        scale = max(WIDEST_DECIMAL - whole, min(scale, KEPT_SCALE))
    of = pa.decimal128(min(whole + scale, WIDEST_DECIMAL), scale)
    pairs = zip(_listed(ours, rows), _listed(theirs, rows), strict=True)
    return pa.chunked_array([pa.array([_divided(*pair, of) for pair in pairs], of)])


def _listed(values: Values, rows: pa.Table) -> list[Decimal | None]:
    is_one = isinstance(values, pa.Scalar)
    return [values.as_py()] * rows.num_rows if is_one else values.to_pylist()


def _divided(ours: Decimal | None, theirs: Decimal | None, of: pa.Decimal128Type) -> Decimal | None:
    """In integers, which are exact; what Spark raises it has to tell itself."""
    if ours is None or theirs is None:
        return None
    if not theirs:
        raise OnlySpark("a division by zero")
    (top, below), (shift, up) = ours.as_integer_ratio(), theirs.as_integer_ratio()
    numerator, denominator = abs(top * up) * 10**of.scale, abs(below * shift)
    digits, rest = divmod(numerator, denominator)
    digits += 2 * rest >= denominator
    if digits >= 10**of.precision:
        raise OnlySpark("a quotient of too many digits")
    sign = 1 if (top < 0) == (shift < 0) else -1
    return Decimal(sign * digits).scaleb(-of.scale, _WIDE)


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
    is_written = isinstance(found, pa.Scalar) and isinstance(tree, exp.Literal | exp.Neg)
    if is_written and pa.types.is_integer(found.type):
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
        if "\\" in tree.this:
            raise OnlySpark("a text that may mean another one")
        return pa.scalar(str(tree.this), pa.string())
    if not str(tree.this).isdigit() or int(tree.this) > LARGEST_INT:
        raise OnlySpark
    return pa.scalar(int(tree.this), pa.int32())


def _cast(tree: exp.Cast, rows: pa.Table) -> Values:
    """Casts of integers and decimals that lose no digit; of others Spark rounds, or refuses them.

    To the parser CAST is a TRY_CAST, and that is one that is safe.
    """
    wanted = _number_type(tree.to)
    found = _number_or_value(tree.this, rows)
    is_number = pa.types.is_integer(found.type) or pa.types.is_decimal(found.type)
    if wanted is None or not is_number or tree.args.get("safe"):
        raise OnlySpark("a cast")
    if pa.types.is_decimal(found.type) and pa.types.is_integer(wanted):
        raise OnlySpark("a cast that drops digits")
    return _checked(lambda ours, to: ours.cast(to), found, wanted)


def _number_type(of: exp.DataType) -> pa.DataType | None:
    """The type of integers or decimals that a cast names."""
    words = of.sql(dialect=DIALECT).upper()
    if words in INTEGERS:
        return INTEGERS[words]
    if not of.is_type("decimal"):
        return None
    digits = [int(each.name) for each in of.expressions] or [10]
    return pa.decimal128(*digits, *([0] if len(digits) == 1 else []))


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
