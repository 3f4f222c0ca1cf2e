"""COUNT, SUM, AVG, MIN and MAX as accumulators: exact, retractable, blind to row order.

COUNT, SUM and AVG are linear: with acc(A) the integers that an accumulator keeps of a bag A,

    acc(A + ΔA) = acc(A) + acc(ΔA),    value = finalise(acc),

because every number is cut into integer digits that add up without rounding. MIN and MAX are only
monotone: insertions fold by LEAST and GREATEST, a deletion that reaches the value asks for a
recompute.

How a statement uses them (levels are projections, `SELECT *, tree AS name FROM (…)`, innermost
first):

    prepare    levels over the input rows
    fold       aggregates over the prepared rows, GROUP BY keys and bins: one delta of the trace
    (sum)      the total of each column over the trace, GROUP BY keys and bins
    collapse   aggregates over a group's totals, GROUP BY keys; needed only where something has bins
    finalise   levels over one group's collapsed totals, and the value over those

Up to 2³¹ rows a group are certain to fit; past it a digit may overflow, which Spark raises.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.model.errors import InternalError
from ivm_core.model.names import WEIGHT
from ivm_core.model.secrets import logger
from ivm_core.model.types import BIGINT, DataType
from ivm_core.operators.formula import Bindings, Level, Named, formula
from ivm_core.operators.sql import column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from sqlglot import exp

log = logger(__name__)
T = TypeVar("T")
Rule = Literal["sum", "latest"]
Digits = dict[str, np.ndarray | pa.ChunkedArray]
"""Integers or decimals by the trace's columns, one a row; no sum of them overflows."""


class OnlySpark(Exception):
    """The driver can't tell a value; says why. Spark's own statement does, or raises."""


class TooMany(OnlySpark):
    """It could tell them, but not so many; fewer it can."""


@contextmanager
def told_on_driver() -> Iterator[None]:
    """What Arrow or Python's decimals can't do in here is Spark's to do, and logged."""
    try:
        yield
    except pa.ArrowCancelled:
        raise
    except (pa.ArrowException, ArithmeticError) as error:
        log.info("a statement is run for what the driver can't do", exc_info=True)
        raise OnlySpark(f"{type(error).__name__}: {error}") from error


class OneByOne(Exception):
    """Values of many groups can't be told at once."""


@dataclass(frozen=True)
class AccColumn:
    """A physical column of the aggregate's trace, and how rows of one group combine in it."""

    name: str
    type: DataType
    rule: Rule = "sum"


@dataclass(frozen=True)
class Finalised:
    """The value of an aggregate for one group: projections to stack, then the tree over them."""

    levels: tuple[Level, ...]
    value: exp.Expr


@dataclass(frozen=True)
class Accumulator(ABC):
    """One aggregate's part of a trace; `prefix` keeps its columns apart from the others'."""

    prefix: str

    @property
    @abstractmethod
    def result_type(self) -> DataType:
        """What Spark's own aggregate returns."""

    @property
    @abstractmethod
    def columns(self) -> tuple[AccColumn, ...]:
        """What the trace keeps beside keys and bins; never NULL where the rule is `sum`."""

    @property
    def bins(self) -> tuple[AccColumn, ...]:
        """Columns that are keys of the trace beside the group's; never NULL."""
        return ()

    @abstractmethod
    def prepare(self, argument: exp.Expr | None) -> tuple[Level, ...]:
        """Projections over the input; only COUNT(*) takes no argument.

        Where the aggregate's FILTER clause fails, the argument must be NULL.
        """

    @property
    @abstractmethod
    def fold(self) -> Level:
        """Each column as an aggregate over prepared rows and their `_weight`."""

    @property
    def collapse(self) -> Level:
        """Each column that `finalise` reads as an aggregate over the totals of a group's bins."""
        return tuple(
            (one.name, formula("SUM(:total)", total=column(one.name)))
            for one in self.columns
            if one.rule == "sum"
        )

    @abstractmethod
    def finalise(self, state: Callable[[str], exp.Expr], tag: str = "") -> Finalised:
        """The value, given a tree for each collapsed column.

        `tag` keeps two uses in one query apart.
        """

    def digits(self, argument: pa.ChunkedArray | None, weights: np.ndarray) -> Digits:
        """What `fold` adds up in each column, for every row of the driver; `OnlySpark` for no such.

        Weights are so small that no sum of 32-bit digits overflows.
        """
        raise OnlySpark(type(self).__name__)

    def value_of(self, state: Callable[[str], list[Any]], rows: Sequence[int]) -> Any:
        """The value on the driver: `state` gives the trace's columns, `rows` those of one group.

        The same as `finalise`, bit for bit; `OnlySpark` where it can't be told here.
        """
        raise OnlySpark(type(self).__name__)

    def values_of(self, total: Callable[[str], pa.Array]) -> pa.Array:
        """The values of many groups, given the totals of the trace's columns, a group each.

        The same as `value_of`; `OneByOne` or Arrow's own error where they can't be told so.
        """
        raise OneByOne

    def named(self, part: str) -> str:
        """The name of one of this accumulator's columns."""
        return f"{self.prefix}_{part}"

    def bindings(self, tag: str = "") -> Bindings:
        """Fresh names for intermediate values."""
        return Bindings(self.prefix + tag)


def required(argument: T | None) -> T:
    """The argument of an aggregate that must have one, as a tree or as values."""
    if argument is None:
        raise InternalError("an aggregate other than COUNT(*) without an argument")
    return argument


def weighted_sum(tree: exp.Expr) -> exp.Expr:
    """SUM of a number times the row's weight; 0 where there is nothing."""
    return formula(
        "COALESCE(SUM(:tree * :weight), CAST(0 AS BIGINT))", tree=tree, weight=column(WEIGHT)
    )


def added(column: list[Any], rows: Sequence[int]) -> Any:
    """The sum of some rows of a column, exact."""
    return sum(column[row] for row in rows)


@dataclass(frozen=True)
class Counted(Accumulator):
    """An accumulator that knows how many of the group's arguments are not NULL."""

    @property
    def count(self) -> AccColumn:
        """The number of arguments that are not NULL."""
        return AccColumn(self.named("n"), BIGINT)

    def counting(self, argument: str) -> Named:
        """The fold of `count` over a prepared column that is NULL where the argument is."""
        present = formula("IF(:x IS NULL, 0, 1)", x=column(argument))
        return self.count.name, weighted_sum(present)

    def where_any(self, total: Callable[[str], pa.Array], values: pa.Array) -> pa.Array:
        """The values of groups that have arguments, NULL for the others."""
        has = pc.greater(total(self.count.name), 0)
        return pc.if_else(has, values, pa.scalar(None, values.type))

    def counts(self, argument: pa.ChunkedArray, weights: np.ndarray) -> Digits:
        """What `counting` adds up, for every row of the driver."""
        present = argument.is_valid().to_numpy()
        return {self.count.name: np.where(present, weights, 0)}

    def counted(self, state: Callable[[str], list[Any]], rows: Sequence[int]) -> int:
        """`count` over state rows on the driver."""
        return int(added(state(self.count.name), rows))


@dataclass(frozen=True)
class CountRows(Counted):
    """COUNT(*)."""

    @property
    def result_type(self) -> DataType:
        """BIGINT."""
        return BIGINT

    @property
    def columns(self) -> tuple[AccColumn, ...]:
        """The count itself."""
        return (self.count,)

    def prepare(self, argument: exp.Expr | None) -> tuple[Level, ...]:
        """Nothing: there is no argument."""
        return ()

    @property
    def fold(self) -> Level:
        """Σ weight."""
        return ((self.count.name, weighted_sum(formula("1"))),)

    def digits(self, argument: pa.ChunkedArray | None, weights: np.ndarray) -> Digits:
        """The weights."""
        return {self.count.name: weights}

    def finalise(self, state: Callable[[str], exp.Expr], tag: str = "") -> Finalised:
        """The count; 0 for no rows at all."""
        return Finalised((), formula("COALESCE(:n, CAST(0 AS BIGINT))", n=state(self.count.name)))

    def value_of(self, state: Callable[[str], list[Any]], rows: Sequence[int]) -> int:
        """The count."""
        return self.counted(state, rows)

    def values_of(self, total: Callable[[str], pa.Array]) -> pa.Array:
        """The counts."""
        return total(self.count.name)


@dataclass(frozen=True)
class CountValues(CountRows):
    """COUNT(x): the rows whose x is not NULL."""

    def prepare(self, argument: exp.Expr | None) -> tuple[Level, ...]:
        """Whether the argument is there."""
        present = formula("IF(:x IS NULL, NULL, TRUE)", x=required(argument))
        return (((self.named("x"), present),),)

    @property
    def fold(self) -> Level:
        """Σ weight over what is there."""
        return (self.counting(self.named("x")),)

    def digits(self, argument: pa.ChunkedArray | None, weights: np.ndarray) -> Digits:
        """The weights of what is there."""
        return self.counts(required(argument), weights)
