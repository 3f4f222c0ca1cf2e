"""Functors and predicates: what values they take, what they give, and how Spark computes them.

Whole numbers are computed in 64 bits. What doesn't fit, a division by zero, a text that is no
number and a float that is none (NaN) fail the step. `ord` is refused: the number of a symbol
depends on the order in which symbols were met.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.operators.sql_trees import call, cast, number, string

if TYPE_CHECKING:
    from collections.abc import Callable


class Kind(Enum):
    """What kinds of values there are; values of two kinds are never the same."""

    NUMBER = "number"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    SYMBOL = "symbol"

    @property
    def ddl(self) -> str:
        """The type in which Spark computes with it."""
        return {"float": "DOUBLE", "symbol": "STRING"}.get(self.value, "BIGINT")


NUMERIC = frozenset({Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT})
WHOLE = frozenset({Kind.NUMBER, Kind.UNSIGNED})
SYMBOL = frozenset({Kind.SYMBOL})
ANY = frozenset(Kind)
LONGEST_TEXT = 2_147_483_646
"""No text of Spark is longer, so places beyond are all the same."""
REFUSED = {
    "ord": "the number of a symbol depends on the order in which symbols were met",
    "range": "a functor gives one value",
}


@dataclass(frozen=True)
class Functor:
    """One functor of a fixed or open number of arguments.

    `takes` has the kinds of each argument, the last one for all that follow. Where `same` is set
    all arguments are of one kind; the result is of that kind unless `gives` says another.
    """

    takes: tuple[frozenset[Kind], ...]
    render: Callable[..., exp.Expr]
    """A tree of the kind (the common one, or the first argument's) and the arguments' trees."""
    gives: Kind | None = None
    same: bool = False
    is_open: bool = False
    raises: bool = False

    def kinds_of(self, place: int) -> frozenset[Kind]:
        """The kinds that an argument may have."""
        return self.takes[min(place, len(self.takes) - 1)]

    def fits(self, count: int) -> bool:
        """Whether it takes so many arguments."""
        return count >= len(self.takes) if self.is_open else count == len(self.takes)


def a_number(value: exp.Expr) -> exp.Expr:
    """A computed float: −0.0 is 0.0, and NaN, which is no fact, ends the step."""
    message = call("RAISE_ERROR", string("a value is no number (NaN), so it is no fact"))
    zero = exp.Add(this=_wrapped(value), expression=cast(number(0), "DOUBLE"))
    return call("NANVL", zero, cast(message, "DOUBLE"))


def negative_is_an_error(value: exp.Expr, what: str) -> exp.Expr:
    """The value, or the end of the step where it is negative."""
    message = call("RAISE_ERROR", string(f"{what} below zero is no unsigned number"))
    return (
        exp.Case()
        .when(exp.GTE(this=_wrapped(value), expression=number(0)), value.copy())
        .else_(message)
    )


def _wrapped(value: exp.Expr) -> exp.Expr:
    plain = exp.Column | exp.Literal | exp.Cast | exp.Anonymous | exp.Paren
    return value.copy() if isinstance(value, plain) else exp.Paren(this=value.copy())


CHAINED: dict[type[exp.Binary], tuple[type[exp.Binary], ...]] = {
    exp.Add: (exp.Add, exp.Sub),
    exp.Sub: (exp.Add, exp.Sub),
    exp.Mul: (exp.Mul,),
}
"""Operators that follow each other from left to right without parentheses."""


def _operator(node: type[exp.Binary]) -> Callable[..., exp.Expr]:
    def render(kind: Kind, left: exp.Expr, right: exp.Expr) -> exp.Expr:
        is_chain = isinstance(left, exp.Paren) and type(left.this) in CHAINED.get(node, ())
        ours = left.this.copy() if is_chain else _wrapped(left)
        return exp.Paren(this=node(this=ours, expression=_wrapped(right)))

    return render


def _minus(kind: Kind, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    value = _operator(exp.Sub)(kind, left, right)
    return negative_is_an_error(value, "a difference") if kind is Kind.UNSIGNED else value


def _over(kind: Kind, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    if kind is Kind.FLOAT:
        return _operator(exp.Div)(kind, left, right)
    # `DIV` truncates, and unlike `/` stays whole
    return exp.Paren(this=exp.IntDiv(this=_wrapped(left), expression=_wrapped(right)))


def _negative(kind: Kind, value: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Neg(this=_wrapped(value)))


def _named(name: str) -> Callable[..., exp.Expr]:
    def render(kind: Kind, *arguments: exp.Expr) -> exp.Expr:
        return call(name, *arguments)

    return render


def _length(kind: Kind, value: exp.Expr) -> exp.Expr:
    return cast(call("CHAR_LENGTH", value), "BIGINT")


def _substring(kind: Kind, text: exp.Expr, start: exp.Expr, length: exp.Expr) -> exp.Expr:
    """From 0 on; nothing where start or length is negative, or the text has ended."""
    most = number(LONGEST_TEXT)
    first = cast(exp.Add(this=_at_most(start, most), expression=number(1)), "INT")
    asked = cast(_at_most(length, most), "INT")
    part = exp.Anonymous(this="SUBSTR", expressions=[text.copy(), first, asked])
    within = exp.And(
        this=exp.GTE(this=_wrapped(start), expression=number(0)),
        expression=exp.GTE(this=_wrapped(length), expression=number(0)),
    )
    return exp.Case().when(within, part).else_(string(""))


def _at_most(value: exp.Expr, most: exp.Expr) -> exp.Expr:
    return call("LEAST", value, cast(most, "BIGINT"))


def _as(ddl: str) -> Callable[..., exp.Expr]:
    return lambda kind, value: cast(value, ddl)


def _as_text(kind: Kind, value: exp.Expr) -> exp.Expr:
    if kind is Kind.FLOAT:
        value = exp.Add(this=_wrapped(value), expression=cast(number(0), "DOUBLE"))
    return cast(value, "STRING")


def _as_unsigned(kind: Kind, value: exp.Expr) -> exp.Expr:
    return negative_is_an_error(cast(value, "BIGINT"), "a value")


FUNCTORS: dict[str, Functor] = {
    "+": Functor((NUMERIC, NUMERIC), _operator(exp.Add), same=True, raises=True),
    "-": Functor((NUMERIC, NUMERIC), _minus, same=True, raises=True),
    "*": Functor((NUMERIC, NUMERIC), _operator(exp.Mul), same=True, raises=True),
    "/": Functor((NUMERIC, NUMERIC), _over, same=True, raises=True),
    "%": Functor((WHOLE, WHOLE), _operator(exp.Mod), same=True, raises=True),
    "^": Functor((frozenset({Kind.FLOAT}),) * 2, _named("POWER"), same=True, raises=True),
    "neg": Functor((frozenset({Kind.NUMBER, Kind.FLOAT}),), _negative, same=True, raises=True),
    "min": Functor((ANY, ANY), _named("LEAST"), same=True, is_open=True),
    "max": Functor((ANY, ANY), _named("GREATEST"), same=True, is_open=True),
    "band": Functor((WHOLE, WHOLE), _operator(exp.BitwiseAnd), same=True),
    "bor": Functor((WHOLE, WHOLE), _operator(exp.BitwiseOr), same=True),
    "bxor": Functor((WHOLE, WHOLE), _operator(exp.BitwiseXor), same=True),
    "cat": Functor((SYMBOL, SYMBOL), _named("CONCAT"), same=True, is_open=True),
    "strlen": Functor((SYMBOL,), _length, Kind.NUMBER),
    "substr": Functor((SYMBOL, WHOLE, WHOLE), _substring, Kind.SYMBOL, raises=True),
    "to_number": Functor((ANY,), _as("BIGINT"), Kind.NUMBER, raises=True),
    "to_unsigned": Functor((ANY,), _as_unsigned, Kind.UNSIGNED, raises=True),
    "to_float": Functor((ANY,), _as("DOUBLE"), Kind.FLOAT, raises=True),
    "to_string": Functor((ANY,), _as_text, Kind.SYMBOL),
}
FUNCTORS |= {
    "itou": FUNCTORS["to_unsigned"],
    "ftou": FUNCTORS["to_unsigned"],
    "utoi": FUNCTORS["to_number"],
    "ftoi": FUNCTORS["to_number"],
    "itof": FUNCTORS["to_float"],
    "utof": FUNCTORS["to_float"],
}


def _contains(part: exp.Expr, text: exp.Expr) -> exp.Expr:
    return call("CONTAINS", text, part)


def _match(pattern: exp.Expr, text: exp.Expr) -> exp.Expr:
    # `$` would also match before a line break at the end
    whole = call("CONCAT", string(r"\A(?:"), pattern, string(r")\z"))
    return exp.RegexpLike(this=text.copy(), expression=whole)


PREDICATE_TREES: dict[str, Callable[[exp.Expr, exp.Expr], exp.Expr]] = {
    "contains": _contains,
    "match": _match,
}
