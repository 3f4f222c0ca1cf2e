"""Rows of a join on the driver: pairs by equal columns, where Arrow's equality is SQL's.

    A₁ ⋈ … ⋈ Aₙ        the weight of a row is the product of its parts' weights

Parts are joined by their places alone, from the smallest one on, each time with the part that adds
the fewest rows; columns are put together when they are asked for. Parts without a key in common
are multiplied. Keys that Arrow compares otherwise than SQL are `OnlySpark`, pairs that would be too
many for the driver, or take too many bytes, `TooMany`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.model.names import INTERNAL_PREFIX, WEIGHT
from ivm_core.operators.accumulator import OnlySpark, TooMany
from ivm_core.operators.scalars_on_driver import is_exact, values_of
from ivm_core.operators.sql import equality_sides, is_null_safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ivm_core.plan.nodes import Join
    from ivm_core.plan.scalar import Scalar

MOST_PAIRS = 1_000_000
"""Rows of a join, or of a part of it, that the driver makes."""
MOST_BYTES = 256 << 20
"""What the columns of a join, or of all joins of a tree, take on the driver."""
_FEW_BYTES = 1 << 20
_OURS, _THEIRS, _COUNT = (f"{INTERNAL_PREFIX}{name}" for name in ("ours", "theirs", "count"))


class Key(NamedTuple):
    """`ours` of what is joined already equals `theirs` of the next part."""

    ours: str
    theirs: str
    condition: Scalar


def joined(node: Join, parts: Sequence[pa.Table]) -> pa.Table:
    """The columns of a join over the rows of its parts, with weights where these have them."""
    product = _Product(node, parts)
    if all(part.num_rows for part in parts):
        while product.waits:
            product.extend()
    elif not any(part.num_rows for part in parts):
        product.try_conditions()
    names = list(node.columns)
    product.check_bytes(names)
    columns = [product.column(name) for name in names]
    if WEIGHT not in parts[0].column_names:
        return pa.table(columns, names=names)
    return pa.table([*columns, product.weights()], names=[*names, WEIGHT])


def kept(rows: pa.Table, condition: Scalar) -> pa.Table:
    """The rows for which a condition is true."""
    return rows.filter(_truth(condition, rows))


def with_keys_alike(
    ours: Sequence[pa.ChunkedArray],
    theirs: Sequence[pa.ChunkedArray],
    null_safe: Sequence[bool] = (),
) -> tuple[list[Any], list[Any]]:
    """Columns of both sides that are equal where the keys are; of a null-safe one two a side."""
    left: list[Any] = []
    right: list[Any] = []
    for at, (one, two) in enumerate(zip(ours, theirs, strict=True)):
        one, two = _alike(one, two)
        if at < len(null_safe) and null_safe[at] and one.null_count and two.null_count:
            left.append(pc.is_null(one))
            right.append(pc.is_null(two))
            one, two = (pc.fill_null(each, _any_value(each.type)) for each in (one, two))
        left.append(one)
        right.append(two)
    return left, right


class _Product:
    """What is joined already: for every part the places of its rows."""

    def __init__(self, node: Join, parts: Sequence[pa.Table]) -> None:
        self._node = node
        self._parts = [part.combine_chunks() for part in parts]
        self._owner = {name: at for at, part in enumerate(node.parts) for name in part.columns}
        self._conditions = list(node.conditions)
        first = min(range(len(parts)), key=lambda at: parts[at].num_rows)
        self._count = parts[first].num_rows
        everywhere = pa.array(np.arange(self._count))
        nowhere = everywhere.slice(0, 0)
        self._places = {first: everywhere}
        self._counted: dict[tuple[int, tuple[str, ...]], pa.Table] = {}
        self.waits = [at for at in range(len(parts)) if at != first]
        if not self._count:
            self._places = dict.fromkeys(range(len(parts)), nowhere)
        else:
            self._filter()

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of the rows that are there so far."""
        at = self._owner[name]
        return self._parts[at].column(name).take(self._places[at])

    def weights(self) -> pa.ChunkedArray:
        """The product of the parts' weights."""
        found = None
        for at, places in sorted(self._places.items()):
            weight = self._parts[at].column(WEIGHT).take(places)
            try:
                found = weight if found is None else pc.multiply_checked(found, weight)
            except pa.ArrowInvalid as error:
                raise OnlySpark("large weights") from error
        return found

    def try_conditions(self) -> None:
        """Ask all conditions of no rows: `OnlySpark` for one that can't be told of any."""
        for condition in self._conditions:
            sides = equality_sides(condition)
            if sides is not None and all(side.is_column for side in sides):
                one, two = (side.column for side in sides)
                if self._owner[one] != self._owner[two]:
                    _alike(self.column(one), self.column(two))
                    continue
            names = sorted(condition.columns)
            columns = [self.column(name) for name in names]
            _truth(condition, pa.table([*columns, _places(0)], names=[*names, _OURS]))

    def check_bytes(self, names: Sequence[str]) -> None:
        """`TooMany` if these columns take too much room; a long text can stand in many rows."""
        total = sum(self._bytes(name) for name in names) if self._count else 0
        if total > MOST_BYTES:
            raise TooMany(f"{total >> 20} MiB of pairs")

    def _bytes(self, name: str) -> int:
        at = self._owner[name]
        column = self._parts[at].column(name)
        if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
            return int(column.nbytes / max(1, len(column)) * self._count)
        lengths = pc.binary_length(column)
        if (pc.max(lengths).as_py() or 0) * self._count <= _FEW_BYTES:
            return _FEW_BYTES
        return int(pc.sum(lengths.take(self._places[at])).as_py() or 0)

    def extend(self) -> None:
        """Join one more part."""
        chosen = [(at, self._keys(at)) for at in self.waits]
        connected = [(at, keys) for at, keys in chosen if keys]
        if connected and self._count:
            counted = [(at, keys, self._counts(at, keys)) for at, keys in connected]
            at, keys, counts = min(counted, key=lambda each: self._growth(each[0], each[2]))
            ours, theirs = self._by_keys(at, keys, counts)
        else:
            at, keys = min(connected or chosen, key=lambda each: self._parts[each[0]].num_rows)
            ours, theirs = self._by_all(at)
            keys = []
        self.waits.remove(at)
        self._places = {part: places.take(ours) for part, places in self._places.items()}
        self._places[at] = theirs
        self._count = len(theirs)
        used = [key.condition for key in keys]
        self._conditions = [each for each in self._conditions if each not in used]
        self._filter()

    def _keys(self, at: int) -> list[Key]:
        """The equalities between what is there and a part."""
        found = []
        for condition in self._conditions:
            sides = equality_sides(condition)
            if sides is None or not all(side.is_column for side in sides):
                continue
            for ours, theirs in (sides, sides[::-1]):
                if self._owner[ours.column] in self._places and self._owner[theirs.column] == at:
                    found.append(Key(ours.column, theirs.column, condition))
        return found

    def _counts(self, at: int, keys: list[Key]) -> pa.Table:
        """How many rows of a part have each key."""
        names = tuple(dict.fromkeys(key.theirs for key in keys))
        if (at, names) not in self._counted:
            rows = self._parts[at].select(names)
            for field in rows.schema:
                _check_key(field.type)
            counted = rows.group_by(list(names), use_threads=False).aggregate([([], "count_all")])
            self._counted[at, names] = counted.rename_columns([*names, _COUNT])
        return self._counted[at, names]

    def _growth(self, at: int, counts: pa.Table) -> float:
        """How many rows of a part there are for a key."""
        return float(self._parts[at].num_rows / max(counts.num_rows, 1))

    def _by_keys(self, at: int, keys: list[Key], counts: pa.Table) -> tuple[pa.Array, pa.Array]:
        """The places of pairs with equal keys."""
        mine = [self.column(key.ours) for key in keys]
        most = pc.max(counts.column(_COUNT)).as_py() or 0
        if most * self._count > MOST_PAIRS:
            sides = self._sides(mine, [counts.column(key.theirs) for key in keys], keys)
            there = _matched(*sides, counts.column(_COUNT))
            if (pc.sum(there).as_py() or 0) > MOST_PAIRS:
                raise TooMany("pairs")
        theirs = self._parts[at]
        left, right = self._sides(mine, [theirs.column(key.theirs) for key in keys], keys)
        names = _numbers(left)
        one = pa.table([*left, _places(self._count)], names=[*names, _OURS])
        two = pa.table([*right, _places(theirs.num_rows)], names=[*names, _THEIRS])
        pairs = one.join(two, names, join_type="inner", use_threads=False).combine_chunks()
        return pairs.column(_OURS).combine_chunks(), pairs.column(_THEIRS).combine_chunks()

    def _sides(
        self, ours: list[pa.ChunkedArray], theirs: list[pa.ChunkedArray], keys: list[Key]
    ) -> tuple[list[Any], list[Any]]:
        return with_keys_alike(ours, theirs, [is_null_safe(key.condition) for key in keys])

    def _by_all(self, at: int) -> tuple[pa.Array, pa.Array]:
        """The places of all pairs."""
        others = self._parts[at].num_rows
        if self._count * others > MOST_PAIRS:
            raise TooMany("pairs")
        ours = np.repeat(np.arange(self._count), others)
        theirs = np.tile(np.arange(others), self._count)
        return pa.array(ours), pa.array(theirs)

    def _filter(self) -> None:
        """Leave out rows for which a condition is not true that can be asked by now."""
        for condition in list(self._conditions):
            if self._count and all(self._owner[name] in self._places for name in condition.columns):
                self._conditions.remove(condition)
                names = sorted(condition.columns)
                columns = [self.column(name) for name in names]
                rows = pa.table([*columns, _places(self._count)], names=[*names, _OURS])
                places = rows.column(_OURS).filter(_truth(condition, rows)).combine_chunks()
                self._places = {at: each.take(places) for at, each in self._places.items()}
                self._count = len(places)


def _truth(condition: Scalar, rows: pa.Table) -> pa.ChunkedArray:
    found = values_of(condition, rows)
    if not pa.types.is_boolean(found.type):
        raise OnlySpark("a condition that is no BOOLEAN")
    return pc.fill_null(found, False)


def _numbers(columns: Sequence[Any]) -> list[str]:
    return [f"{INTERNAL_PREFIX}{number}" for number in range(len(columns))]


def _places(count: int) -> pa.Array:
    return pa.array(np.arange(count))


def _matched(left: list[Any], right: list[Any], values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The value of each row's key, for rows that have one; keys on the right are distinct."""
    names = _numbers(left)
    one, two = pa.table(left, names=names), pa.table([*right, values], names=[*names, _COUNT])
    return one.join(two, names, join_type="inner", use_threads=False).column(_COUNT)


def _alike(one: pa.ChunkedArray, two: pa.ChunkedArray) -> tuple[Any, Any]:
    """Two keys in one type, in which Arrow's equality is SQL's."""
    if pa.types.is_integer(one.type) and pa.types.is_integer(two.type):
        return one.cast(pa.int64()), two.cast(pa.int64())
    if one.type != two.type:
        raise OnlySpark(f"keys of {one.type} and {two.type}")
    _check_key(one.type)
    return one, two


def _check_key(of: pa.DataType) -> None:
    if not is_exact(of) and not pa.types.is_decimal(of):
        raise OnlySpark(f"keys of {of}")


def _any_value(of: pa.DataType) -> pa.Scalar:
    """Some value of a type, to stand for NULL beside a column that says so."""
    if pa.types.is_string(of):
        return pa.scalar("", of)
    if pa.types.is_binary(of):
        return pa.scalar(b"", of)
    if pa.types.is_boolean(of):
        return pa.scalar(False, of)
    return pa.scalar(Decimal(0) if pa.types.is_decimal(of) else 0, of)
