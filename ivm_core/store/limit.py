"""What a restricted read has to bring back at least: an OR of ANDed column limits.

A limit is a superset filter: it may let more rows through than asked for, never fewer. Columns of
types whose SQL equality isn't equality of values as stored (FLOAT, DOUBLE, nested) limit nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_, or_
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.model.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Iterable


def limits(of: pa.DataType) -> bool:
    """Whether values of this type can limit a read."""
    return bool(
        pa.types.is_integer(of)
        or pa.types.is_boolean(of)
        or pa.types.is_string(of)
        or pa.types.is_binary(of)
        or pa.types.is_date32(of)
        or pa.types.is_timestamp(of)
        or pa.types.is_decimal128(of)
    )


@dataclass(frozen=True, eq=False)
class ColumnLimit:
    """The column is one of the values, or NULL where `with_null`."""

    column: str
    values: pa.Array
    with_null: bool = False

    def expression(self) -> pc.Expression:
        """The filter for a scan; its range lets row groups be skipped."""
        field = pc.field(self.column)
        if not len(self.distinct):
            return field.is_null() if self.with_null else pc.scalar(False)
        among = field.isin(self.distinct)
        if not pa.types.is_boolean(self.values.type):
            among = (field >= self.distinct[0]) & (field <= self.distinct[-1]) & among
        return among | field.is_null() if self.with_null else among

    def mask(self, table: pa.Table) -> pa.ChunkedArray:
        """Which rows of a table are within the limit."""
        column = table[self.column]
        among = pc.is_in(column, value_set=self.distinct)
        return pc.or_(among, column.is_null()) if self.with_null else among

    def covers(self, other: ColumnLimit) -> bool:
        """Whether every row within the other limit is within this one."""
        if self.column != other.column or (other.with_null and not self.with_null):
            return False
        if self.distinct.type != other.distinct.type:
            return False
        return bool(pc.all(pc.is_in(other.distinct, value_set=self.distinct)).as_py() is not False)

    @property
    def is_gapless(self) -> bool:
        """Whether the values are all integers between the least and the greatest of them."""
        if not len(self.distinct) or not pa.types.is_integer(self.distinct.type):
            return False
        return int(self.distinct[-1].as_py() - self.distinct[0].as_py()) + 1 == len(self.distinct)

    @cached_property
    def distinct(self) -> pa.Array:
        """The values once each, sorted, without NULL."""
        values = self.values
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        found = pc.unique(values.drop_null())
        return found.take(pc.sort_indices(found))


@dataclass(frozen=True, eq=False)
class Limit:
    """Rows for which any of the conjunctions holds; without one, no row is asked for."""

    any_of: tuple[tuple[ColumnLimit, ...], ...]

    @classmethod
    def of(cls, column: str, values: pa.Array, with_null: bool = False) -> Limit:
        """The limit on one column."""
        return cls(((ColumnLimit(column, values, with_null),),))

    @classmethod
    def all_of(cls, limits: Iterable[ColumnLimit]) -> Limit:
        """The limit on several columns at once."""
        return cls((tuple(limits),))

    def __or__(self, other: Limit) -> Limit:
        """What either asks for."""
        return Limit(self.any_of + other.any_of)

    def covers(self, other: Limit) -> bool:
        """Whether what the other asks for is among what this one brings."""
        return all(
            any(
                all(any(ours.covers(theirs) for theirs in wanted) for ours in given)
                for given in self.any_of
            )
            for wanted in other.any_of
        )

    def fitted(self, schema: pa.Schema) -> Limit | None:
        """The limit in the types of a table; None where it limits nothing there.

        A column that the table doesn't have is an `InternalError`.
        """
        conjunctions = []
        for conjunction in self.any_of:
            kept = []
            for each in conjunction:
                if each.column not in schema.names:
                    raise InternalError(
                        f"a limit on {each.column!r}, which isn't in {schema.names}"
                    )
                wanted = schema.field(each.column).type
                if limits(wanted):
                    values = _cast(each.values, wanted)
                    kept.append(ColumnLimit(each.column, values, each.with_null))
            if not kept:
                return None
            conjunctions.append(tuple(kept))
        return Limit(tuple(conjunctions))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are limited, once each."""
        return tuple(dict.fromkeys(each.column for part in self.any_of for each in part))

    def expression(self) -> pc.Expression:
        """The filter for a scan."""
        parts = [
            reduce(and_, [each.expression() for each in conjunction], pc.scalar(True))
            for conjunction in self.any_of
        ]
        return reduce(or_, parts, pc.scalar(False))

    def mask(self, table: pa.Table) -> pa.ChunkedArray:
        """Which rows of a table are within the limit."""
        whole = pa.chunked_array([pa.repeat(False, table.num_rows)])
        for conjunction in self.any_of:
            part = None
            for each in conjunction:
                one = each.mask(table)
                part = one if part is None else pc.and_(part, one)
            if part is not None:
                whole = part if len(self.any_of) == 1 else pc.or_(whole, part)
        return whole


def _cast(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The values that the type can hold; the others equal no value of it."""
    if values.type == wanted:
        return values
    if pa.types.is_integer(wanted) and pa.types.is_integer(values.type):
        half = 1 << (wanted.bit_width - 1)
        wide = values.cast(pa.int64())
        fits = pc.and_(pc.greater_equal(wide, -half), pc.less_equal(wide, half - 1))
        # NULL stays: whether it is asked for is not for the cast to say
        values = wide.filter(pc.or_kleene(fits, pc.is_null(wide)))
    return values.cast(wanted)
