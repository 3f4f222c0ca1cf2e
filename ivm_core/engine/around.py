"""Which values of an order are around a change: a window's rows that a tick has to read.

All values of the order's first column are sorted once; the rest is counting. Rows of one value
stay together, so what is found may be more than a frame needs, never less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.model.names import WEIGHT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ivm_core.operators.window_extent import Extent

    Counts = NDArray[np.int64]
    Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class Around:
    """Values of the order's first column; NULL may be one of them."""

    reached: pa.Array
    """Of rows that the change may reach."""
    near: pa.Array
    """Of these, and of the rows that they look back on and forward to."""
    last: pa.Array
    """Of the last rows before those; none where they begin with the first of all."""
    before: int
    """How many rows there are before those."""


def around(known: pa.Table, change: pa.Table, key: str, extent: Extent) -> Around:
    """What is around a change; both tables have the key and weights, not netted."""
    none = pa.array(np.zeros(change.num_rows, np.int64))
    old_rows = pa.table({key: known[key], "old": known[WEIGHT], "new": known[WEIGHT]})
    new_rows = pa.table({key: change[key], "old": none, "new": change[WEIGHT]})
    both = pa.concat_tables([old_rows, new_rows])
    changed = pc.unique(change[key].combine_chunks())
    counted = both.group_by(key).aggregate([("old", "sum"), ("new", "sum")])
    keys = counted[key].combine_chunks()
    places = pc.array_sort_indices(
        keys,
        order="descending" if extent.descending else "ascending",
        null_placement="at_start" if extent.nulls_first else "at_end",
    )
    keys = keys.take(places)
    old = _Places(counted["old_sum"].take(places).to_numpy())
    new = _Places(counted["new_sum"].take(places).to_numpy())
    at = np.flatnonzero(pc.is_in(keys, value_set=changed).to_numpy(zero_copy_only=False))
    first = np.minimum(old.back(at, extent.ahead), new.back(at, extent.ahead))
    if extent.carried:
        first, last = first[:1], np.array([len(keys) - 1])
    else:
        last = np.maximum(old.on(at, extent.behind), new.on(at, extent.behind))
    reached = _marked(len(keys), first, last)
    start = new.back(first, extent.behind)
    near = _marked(len(keys), start, new.on(last, extent.ahead))
    begin = int(start.min())
    there = np.flatnonzero(new.counts[:begin] > 0)
    return Around(
        keys.filter(pa.array(reached)),
        keys.filter(pa.array(near)),
        keys.take(pa.array(there[-1:])),
        int(new.counts[:begin].sum()),
    )


class _Places:
    """Rows of each value, in order."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        self._through = np.cumsum(counts)
        self._until = self._through - counts

    def back(self, at: Counts, rows: int) -> Counts:
        """For each place the nearest one before, itself for no rows, with so many rows between."""
        found = np.searchsorted(self._until, self._until[at] - rows, side="right") - 1
        return np.minimum(np.maximum(found, 0), at)

    def on(self, at: Counts, rows: int) -> Counts:
        """For each place the nearest one behind, itself for no rows, with so many rows between."""
        found = np.searchsorted(self._through, self._through[at] + rows, side="left")
        return np.maximum(np.minimum(found, len(self.counts) - 1), at)


def _marked(size: int, first: Counts, last: Counts) -> Marks:
    """The places within any of the ranges."""
    steps = np.zeros(size + 1, np.int64)
    np.add.at(steps, first, 1)
    np.add.at(steps, last + 1, -1)
    return np.cumsum(steps)[:-1] > 0
