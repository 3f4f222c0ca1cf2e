"""Which row groups of a Parquet file can hold rows within a limit, by their statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from ivm_core.store.limit import ColumnLimit, Limit


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """Least and greatest value of one column in every row group, as numpy arrays.

    `known` is False where the statistics say nothing; `has_null` where there may be NULLs.
    """

    low: Any
    high: Any
    known: Any
    has_null: Any

    @classmethod
    def of(cls, metadata: Any, column: str, of: pa.DataType) -> ColumnRange:
        """Read the statistics of a column at the file's top level, or one that it lacks."""
        leaves = [metadata.schema.column(index) for index in range(metadata.num_columns)]
        # a field `b` of a struct `a` has the path of a column that is called `a.b`
        names = [leaf.path if leaf.path == leaf.name else None for leaf in leaves]
        if column not in names:
            unknown = np.zeros(metadata.num_row_groups, dtype=bool)
            nothing = np.zeros(metadata.num_row_groups, dtype=np.int64)
            return cls(nothing, nothing, unknown, ~unknown)
        at = names.index(column)
        low, high, has_null = [], [], []
        for group in range(metadata.num_row_groups):
            stats = metadata.row_group(group).column(at).statistics
            usable = stats is not None and stats.has_min_max
            low.append(stats.min if usable else None)
            high.append(stats.max if usable else None)
            has_null.append(stats is None or not stats.has_null_count or stats.null_count > 0)
        try:
            lows, highs = pa.array(low, of), pa.array(high, of)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            lows = highs = pa.nulls(len(low), of)
        known = lows.is_valid().to_numpy(zero_copy_only=False)
        if not known.any():
            nothing = np.zeros(len(low), dtype=np.int64)
            return cls(nothing, nothing, known, np.array(has_null))
        filler = next(each for each in lows if each.is_valid)
        return cls(
            comparable(lows.fill_null(filler)),
            comparable(highs.fill_null(filler)),
            known,
            np.array(has_null),
        )

    def may_hold(self, limit: ColumnLimit) -> Any:
        """For every row group whether it can hold a row within the limit."""
        if self.known.any():
            keys = comparable(limit.distinct)
            first = np.searchsorted(keys, self.low, side="left")
            behind = np.searchsorted(keys, self.high, side="right")
            possible = ~self.known | (behind > first)
        else:
            possible = ~self.known
        return possible | self.has_null if limit.with_null else possible

    def is_within(self, limit: ColumnLimit) -> bool:
        """Whether every row is within a limit that has all integers from its first to its last."""
        if not self.known.all() or (self.has_null.any() and not limit.with_null):
            return False
        keys = comparable(limit.distinct)
        return bool((self.low >= keys[0]).all() and (self.high <= keys[-1]).all())


def groups_within(ranges: dict[str, ColumnRange], limit: Limit, count: int) -> list[int]:
    """The row groups that the statistics of the limited columns don't rule out."""
    wanted = np.zeros(count, dtype=bool)
    for conjunction in limit.any_of:
        possible = np.ones(count, dtype=bool)
        for each in conjunction:
            possible &= ranges[each.column].may_hold(each)
        wanted |= possible
    groups: list[int] = np.flatnonzero(wanted).tolist()
    return groups


def comparable(values: pa.Array) -> Any:
    """The values as a numpy array in Parquet's order; integers wherever that is exact."""
    of = values.type
    if pa.types.is_date32(of):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(of):
        values = values.cast(pa.timestamp("us", of.tz)).cast(pa.int64())
    if pa.types.is_integer(values.type):
        return values.cast(pa.int64()).to_numpy(zero_copy_only=False)
    compared = np.empty(len(values), dtype=object)
    compared[:] = values.to_pylist()
    return compared
