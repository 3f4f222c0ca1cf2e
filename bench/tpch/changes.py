"""Orders that come and go with their lines: side by side, or scattered over all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

Where = Literal["clustered", "scattered"]
WEIGHT = "_weight"


class Changes:
    """Draws batches of a share of the orders, half of them deleted and as many new ones.

    Clustered: new orders have keys behind all others, and neighbours are deleted. Scattered:
    deleted orders and the keys of new ones are anywhere. A new order is a copy of a present one.
    """

    def __init__(self, tables: Mapping[str, pa.Table], share: float, seed: int = 7) -> None:
        """`tables` have their lines in the order of their orders."""
        self._orders = tables["orders"]
        self._lines = tables["lineitem"]
        self._keys = self._orders.column("o_orderkey").to_numpy()
        lines = self._lines.column("l_orderkey").to_numpy()
        self._first = np.searchsorted(lines, self._keys)
        self._behind = np.searchsorted(lines, self._keys, side="right")
        self._alive = np.ones(len(self._keys), bool)
        self._used: set[int] = set()
        self._next = int(self._keys.max()) + 1
        self._cursor = len(self._keys) // 3
        self._random = np.random.default_rng(seed)
        self.orders = max(1, round(len(self._keys) * share / 2))
        """Orders deleted, and as many inserted, by one batch."""

    def next(self, where: Where, orders: int | None = None) -> dict[str, pa.Table]:
        """The changes of orders and lineitem of one tick; as many `orders` go and come."""
        count = self.orders if orders is None else orders
        if where == "clustered":
            gone = np.arange(self._cursor, self._cursor + count)
            self._cursor += count
            gone = gone[self._alive[gone]]
            keys = np.arange(self._next, self._next + count)
            self._next += count
        else:
            gone = self._random.choice(np.flatnonzero(self._alive), count, replace=False)
            keys = self._unused(count)
        self._alive[gone] = False
        models = self._random.choice(np.flatnonzero(self._alive), count, replace=False)
        lines = self._lines_of(models)
        of = np.repeat(keys, self._behind[models] - self._first[models])
        new = _with(self._orders.take(models), "o_orderkey", keys)
        new_lines = _with(self._lines.take(lines), "l_orderkey", of)
        return {
            "orders": _batch(self._orders.take(np.sort(gone)), new),
            "lineitem": _batch(self._lines.take(self._lines_of(np.sort(gone))), new_lines),
        }

    def _unused(self, count: int) -> Numbers:
        """Keys between those of the orders: of 32 numbers the standard uses eight."""
        found: list[int] = []
        while len(found) < count:
            group = int(self._random.integers(0, len(self._keys) // 8))
            key = group * 32 + 9 + int(self._random.integers(0, 20))
            if key not in self._used:
                self._used.add(key)
                found.append(key)
        return np.array(found)

    def _lines_of(self, orders: Numbers) -> Numbers:
        ranges = zip(self._first[orders], self._behind[orders], strict=True)
        return np.concatenate([np.arange(first, behind) for first, behind in ranges])


def _with(table: pa.Table, name: str, values: Numbers) -> pa.Table:
    place = table.column_names.index(name)
    return table.set_column(place, table.schema.field(name), pa.array(values, pa.int64()))


def _batch(gone: pa.Table, new: pa.Table) -> pa.Table:
    weights = pa.concat_arrays([pa.array(np.full(len(gone), -1)), pa.array(np.full(len(new), 1))])
    rows = pa.concat_tables([gone, new])
    return rows.append_column(WEIGHT, pc.cast(weights, pa.int64()))
