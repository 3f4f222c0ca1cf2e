"""Simple predicates on rows that are on the driver: which of them can pass a filter at all.

    σ(ΔA) ⋈ B   needs of B only the rows that match a row of ΔA that passes σ

A sieve lets through every row for which the predicate is true, and may let through more: what it
can't say is left out of a conjunction, and the statement itself filters exactly. It compares
columns with constants and with each other where Arrow's answer is Spark's: integers, decimals,
dates, plain texts.
"""

from __future__ import annotations

import calendar
import datetime
import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from ivm_core.model.errors import InternalError
from ivm_core.model.types import INTEGER_BITS, WIDEST_DECIMAL
from ivm_core.model.types import Decimal as DecimalType
from ivm_core.operators.arrow_types import from_arrow_type
from ivm_core.operators.sql import DIALECT, scalar_of, tree_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ivm_core.model.types import DataType
    from ivm_core.plan.scalar import Scalar

COMPARED: dict[type[exp.Expr], Any] = {
    exp.EQ: pc.equal,
    exp.NEQ: pc.not_equal,
    exp.LT: pc.less,
    exp.LTE: pc.less_equal,
    exp.GT: pc.greater,
    exp.GTE: pc.greater_equal,
}
NEGATED = "negate"
_UNDERSTOOD = {"this", "expression", "expressions", NEGATED}
"""What a comparison may be made of; with anything else (an escape, a quantifier) it is another."""
INT_DIGITS, BIGINT_DIGITS = 10, 20
"""What a decimal needs to hold any integer of these types, as Spark has it."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


def sieved(predicate: Scalar, type_of: Callable[[str], DataType | None]) -> Scalar | None:
    """The part of a predicate that a sieve can say; None where that is nothing."""
    weaker = _weaker(tree_of(predicate), type_of)
    return None if weaker is None else scalar_of(weaker)


def passing(table: pa.Table, sieves: Iterable[Scalar]) -> pa.Table:
    """The rows that pass all of the sieves."""
    for each in sieves:
        if not table.num_rows:
            return table
        if isinstance(each.tree, exp.Expr):
            table = table.filter(_mask(each.tree, table))
    return table


def truth_by_sieve(tree: exp.Expr, table: pa.Table) -> Any | None:
    """TRUE, FALSE or NULL for every row; None for what is not one comparison that a sieve says."""

    def type_of(name: str) -> DataType | None:
        of = table.schema.field(name).type
        plain = pa.types.is_integer(of) or pa.types.is_string(of)
        known = plain or pa.types.is_decimal(of) or pa.types.is_date32(of)
        return from_arrow_type(of) if known else None

    return _mask(tree, table) if _is_sayable(tree, type_of) else None


def _weaker(tree: exp.Expr, type_of: Callable[[str], DataType | None]) -> exp.Expr | None:
    """What can be said of a predicate."""
    tree = tree.unnest()
    if isinstance(tree, exp.And | exp.Or):
        parts = [_weaker(each, type_of) for each in tree.flatten()]
        known = [each for each in parts if each is not None]
        if len(known) < len(parts) and isinstance(tree, exp.Or):
            return None
        join = exp.and_ if isinstance(tree, exp.And) else exp.or_
        return join(*known, copy=False) if known else None
    if isinstance(tree, exp.Between):
        low = exp.GTE(this=tree.this.copy(), expression=tree.args["low"])
        high = exp.LTE(this=tree.this.copy(), expression=tree.args["high"])
        both = exp.and_(low, high)
        return None if tree.args.get("symmetric") else _weaker(both, type_of)
    return tree if _is_sayable(tree, type_of) else None


def _is_sayable(tree: exp.Expr, type_of: Callable[[str], DataType | None]) -> bool:
    """Whether one comparison means to Arrow what it means to Spark."""
    if any(value and name not in _UNDERSTOOD for name, value in tree.args.items()):
        return False
    if isinstance(tree, exp.Not):
        inner = tree.this.unnest()
        return isinstance(inner, exp.In | exp.Like | exp.Is) and _is_sayable(inner, type_of)
    if isinstance(tree, exp.Is):
        return _type(tree.this, type_of) is not None and isinstance(tree.expression, exp.Null)
    if isinstance(tree, exp.Like):
        of = _type(tree.this, type_of)
        pattern = tree.expression.unnest()
        return of is not None and of.kind == "STRING" and _text(pattern) is not None
    if isinstance(tree, exp.In):
        of = _type(tree.this, type_of)
        return of is not None and all(_fits(each, of, listed=True) for each in tree.expressions)
    if not isinstance(tree, exp.Binary) or type(tree) not in COMPARED:
        return False
    left, right = _type(tree.left, type_of), _type(tree.right, type_of)
    if left is not None and right is not None:
        return left == right and _is_known(left)
    if left is not None:
        return _fits(tree.right, left)
    return right is not None and _fits(tree.left, right)


def _mask(tree: exp.Expr, table: pa.Table) -> Any:
    tree = tree.unnest()
    if isinstance(tree, exp.And | exp.Or):
        join = pc.and_kleene if isinstance(tree, exp.And) else pc.or_kleene
        found = None
        for each in tree.flatten():
            one = _mask(each, table)
            found = one if found is None else join(found, one)
        return found
    if isinstance(tree, exp.Not):
        return pc.invert(_mask(tree.this, table))
    if isinstance(tree, exp.Is | exp.Like):
        column = table[tree.this.unnest().name]
        if isinstance(tree, exp.Is):
            found = pc.is_null(column)
        else:
            found = pc.match_like(column, _text(tree.expression.unnest()))
        return pc.invert(found) if tree.args.get(NEGATED) else found
    if isinstance(tree, exp.In):
        column = table[tree.this.unnest().name]
        values = pa.array([_value(each, column.type) for each in tree.expressions], column.type)
        among = pc.is_in(column, value_set=values)
        return pc.if_else(column.is_valid(), among, pa.scalar(None, pa.bool_()))
    if not isinstance(tree, exp.Binary):
        raise InternalError(f"a sieve can't say {tree.sql(dialect=DIALECT)}")
    kind: type[exp.Expr] = type(tree)
    left, right = tree.left.unnest(), tree.right.unnest()
    if not isinstance(left, exp.Column):
        kind, left, right = _MIRRORED.get(kind, kind), right, left
    column = table[left.name]
    if isinstance(right, exp.Column):
        return COMPARED[kind](column, table[right.name])
    return COMPARED[kind](column, pa.scalar(_value(right, column.type), column.type))


def _type(tree: exp.Expr, type_of: Callable[[str], DataType | None]) -> DataType | None:
    bare = tree.unnest()
    return type_of(bare.name) if isinstance(bare, exp.Column) else None


def _is_known(of: DataType) -> bool:
    return of.kind in INTEGER_BITS or of.kind in ("DECIMAL", "DATE", "STRING")


def _fits(tree: exp.Expr, of: DataType, *, listed: bool = False) -> bool:
    """Whether the constant is a value of the column's own type, and is compared in that.

    Beside an integer Spark may compare decimals in a type that has no room for all their digits.
    """
    if of.kind in INTEGER_BITS:
        number = _number(tree)
        half = 1 << (INTEGER_BITS[of.kind] - 1)
        return number is not None and number == int(number) and -half <= number < half
    if isinstance(of, DecimalType):
        number = _number(tree)
        if number is None:
            return False
        exponent = number.as_tuple().exponent
        return (
            isinstance(exponent, int)
            and -exponent <= of.scale
            and abs(number) < Decimal(10) ** (of.precision - of.scale)
            and _whole_digits(tree.unnest(), number, listed) + of.scale <= WIDEST_DECIMAL
        )
    if of.kind == "DATE":
        return _date(tree) is not None
    return of.kind == "STRING" and _text(tree.unnest()) is not None


def _whole_digits(tree: exp.Expr, number: Decimal, listed: bool) -> int:
    """Digits before the point in the type of a constant, where a decimal is compared with it."""
    bare = tree.this if isinstance(tree, exp.Neg) else tree
    if "." in bare.name:
        return max(0, number.adjusted() + 1)
    if listed or not isinstance(bare, exp.Literal):
        return INT_DIGITS if abs(number) < 1 << 31 else BIGINT_DIGITS
    return len(bare.name)


def _value(tree: exp.Expr, of: pa.DataType) -> object:
    if pa.types.is_date(of):
        return _date(tree)
    if pa.types.is_string(of) or pa.types.is_large_string(of):
        return _text(tree.unnest())
    number = _number(tree)
    return int(number) if number is not None and pa.types.is_integer(of) else number


def _text(tree: exp.Expr) -> str | None:
    """A text that is written out; with a backslash it may mean another one."""
    plain = isinstance(tree, exp.Literal) and tree.is_string and "\\" not in tree.this
    return str(tree.this) if plain else None


def _number(tree: exp.Expr) -> Decimal | None:
    """A number that is written out as an integer or a decimal."""
    bare = tree.unnest()
    if isinstance(bare, exp.Neg):
        inner = _number(bare.this)
        return None if inner is None else inner.copy_negate()
    if not isinstance(bare, exp.Literal) or bare.is_string:
        return None
    written = str(bare.this)
    if not written.replace(".", "", 1).isdigit():
        return None
    try:
        return Decimal(written)
    except InvalidOperation:
        return None


def _date(tree: exp.Expr) -> datetime.date | None:
    """A date that is written out, or one moved by whole days, weeks, months or years."""
    bare = tree.unnest()
    if isinstance(bare, exp.Add | exp.Sub) and isinstance(bare.right.unnest(), exp.Interval):
        start = _date(bare.left)
        return None if start is None else _moved(start, bare.right.unnest(), bare)
    if isinstance(bare, exp.Cast) and bare.to.is_type("date"):
        bare = bare.this.unnest()
    text = _text(bare)
    if text is None or not _DATE.fullmatch(text):
        return None
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return None


def _moved(start: datetime.date, interval: exp.Expr, by: exp.Expr) -> datetime.date | None:
    amount, unit = interval.this, str(interval.args.get("unit") or "").upper().rstrip("S")
    written = str(amount.this) if isinstance(amount, exp.Literal) else ""
    if not written.isdigit() or len(written) > 4:
        return None
    count = -int(written) if isinstance(by, exp.Sub) else int(written)
    try:
        if unit in ("DAY", "WEEK"):
            return start + datetime.timedelta(days=count * (7 if unit == "WEEK" else 1))
        if unit not in ("MONTH", "YEAR"):
            return None
        months = start.year * 12 + start.month - 1 + count * (12 if unit == "YEAR" else 1)
        year, month = divmod(months, 12)
        last = calendar.monthrange(year, month + 1)[1]
        return datetime.date(year, month + 1, min(start.day, last))
    except (OverflowError, ValueError):
        return None
