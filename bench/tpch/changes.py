"""Orders that come, go and change with their lines: side by side, or scattered over all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bench.tpch.stock import Held

    Numbers = NDArray[np.int64]

Where = Literal["clustered", "scattered"]
Kind = Literal["inserts", "inserts and deletes", "join keys"]
KINDS: tuple[Kind, ...] = ("inserts", "inserts and deletes", "join keys")
WEIGHT = "_weight"


class Changes:
    """Draws batches of a share of the orders, with their lines.

    Clustered: new orders have keys behind all others, and neighbours are deleted or changed.
    Scattered: those, and the keys of new ones, are anywhere. A new order is a copy of a present
    one. Of `inserts and deletes` half are deleted and as many new ones come; `join keys` gives
    orders to other customers and their lines other parts and suppliers.
    """

    def __init__(self, held: Held, share: float, seed: int = 7) -> None:
        """`held` has the orders to draw from, with their lines in the order of their orders."""
        self._orders = held.tables["orders"]
        self._lines = held.tables["lineitem"]
        self._keys = self._orders.column("o_orderkey").to_numpy()
        lines = self._lines.column("l_orderkey").to_numpy()
        self._first = np.searchsorted(lines, self._keys)
        self._behind = np.searchsorted(lines, self._keys, side="right")
        self._alive = np.ones(len(self._keys), bool)
        self._used: set[int] = set()
        self._next = held.last_key + 1
        first, behind = held.neighbours
        self._cursor = first + (behind - first) // 3
        is_whole = behind - first == len(self._keys)
        self._anywhere = np.ones(len(self._keys), bool)
        if not is_whole:
            self._anywhere[first:behind] = False
        self._random = np.random.default_rng(seed)
        self.orders = max(1, round(held.all_orders * share / 2))
        """Orders deleted, and as many inserted, by one batch."""

    def next(
        self, where: Where, orders: int | None = None, kind: Kind = "inserts and deletes"
    ) -> dict[str, pa.Table]:
        """The changes of orders and lineitem of one tick; as many `orders` go and come."""
        count = self.orders if orders is None else orders
        if kind == "join keys":
            return self._moved(where, 2 * count)
        if kind == "inserts":
            come = self._new(where, 2 * count)
            return {name: _batch(rows.slice(0, 0), rows) for name, rows in come.items()}
        gone = self._taken(where, count)
        self._alive[gone] = False
        come = self._new(where, count)
        return {
            "orders": _batch(self._orders.take(np.sort(gone)), come["orders"]),
            "lineitem": _batch(self._lines.take(self._lines_of(np.sort(gone))), come["lineitem"]),
        }

    def _taken(self, where: Where, count: int) -> Numbers:
        """Orders that are there."""
        if where == "clustered":
            found = np.arange(self._cursor, self._cursor + count)
            self._cursor += count
            return found[self._alive[found]]
        choices = np.flatnonzero(self._alive & self._anywhere)
        return self._random.choice(choices, count, replace=False)

    def _new(self, where: Where, count: int) -> dict[str, pa.Table]:
        if where == "clustered":
            keys = np.arange(self._next, self._next + count)
            self._next += count
        else:
            keys = self._unused(count)
        models = self._random.choice(np.flatnonzero(self._alive), count, replace=False)
        of = np.repeat(keys, self._behind[models] - self._first[models])
        return {
            "orders": _with(self._orders.take(models), "o_orderkey", keys),
            "lineitem": _with(self._lines.take(self._lines_of(models)), "l_orderkey", of),
        }

    def _moved(self, where: Where, count: int) -> dict[str, pa.Table]:
        """Each of them once: the changed row is not there to be changed again."""
        moved = np.sort(self._taken(where, count))
        self._alive[moved] = False
        lines = self._lines_of(moved)
        old, old_lines = self._orders.take(moved), self._lines.take(lines)
        customers = self._random.choice(self._orders.column("o_custkey").to_numpy(), len(moved))
        others = self._random.integers(0, len(self._lines), len(lines))
        new_lines = old_lines
        for name in ("l_partkey", "l_suppkey"):
            new_lines = _with(new_lines, name, self._lines.column(name).take(others).to_numpy())
        return {
            "orders": _batch(old, _with(old, "o_custkey", customers)),
            "lineitem": _batch(old_lines, new_lines),
        }

    def _unused(self, count: int) -> Numbers:
        """Keys between those of the orders: of 32 numbers the standard uses eight."""
        found: list[int] = []
        while len(found) < count:
            group = int(self._random.integers(0, self._keys[-1] // 32))
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
