"""The partner: writes three Delta tables of its own, and knows nothing of who follows them."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

if TYPE_CHECKING:
    from collections.abc import Mapping

OPENING_DAY = date(2025, 3, 3)
CATALOGUE = pa.schema(
    [
        ("item_id", pa.int64()),
        ("name", pa.string()),
        ("category", pa.string()),
        ("price", pa.decimal128(10, 2)),
    ]
)
DELIVERIES = pa.schema(
    [
        ("delivery_id", pa.int64()),
        ("item_id", pa.int64()),
        ("quantity", pa.int32()),
        ("arrived_on", pa.date32()),
    ]
)
PARTS = pa.schema([("item_id", pa.int64()), ("part_id", pa.int64())])
_GOODS = ["anvil", "bellows", "chisel", "drill", "file", "gauge", "hammer", "jig", "lathe"]
_CATEGORIES = ["hand tools", "machines", "measuring"]


class Partner:
    """The partner's day: new prices, items and designs, deliveries, now and then a correction."""

    def __init__(self, tables: Mapping[str, str], seed: int = 1) -> None:
        """Where `catalogue`, `deliveries` and `parts` are, or will be."""
        self._catalogue, self._deliveries = tables["catalogue"], tables["deliveries"]
        self._parts = tables["parts"]
        self._random = random.Random(seed)

    def open(self, items: int = 30, deliveries: int = 120) -> str:
        """Make the tables with some rows; tables that are there stay as they are."""
        self._open_parts(items)
        if DeltaTable.is_deltatable(self._catalogue):
            return "the partner's tables are there already"
        DeltaTable.create(
            self._catalogue,
            CATALOGUE,
            name="catalogue",
            configuration={"delta.enableChangeDataFeed": "true"},
        )
        DeltaTable.create(self._deliveries, DELIVERIES, name="deliveries")
        rows = [self._item(number) for number in range(1, items + 1)]
        write_deltalake(self._catalogue, _table(rows, CATALOGUE), mode="append")
        self._deliver(deliveries)
        return f"the partner begins with {items} items and {deliveries} deliveries"

    def trade(self) -> str:
        """One of the things that happen at the partner's; says which."""
        acts = [self.deliver, self.deliver, self.deliver, self.reprice, self.renew, self.correct]
        acts.append(self.redesign)
        return self._random.choice(acts)()

    def deliver(self) -> str:
        """Rows are added, without a change data feed."""
        count = self._random.randrange(1, 6)
        self._deliver(count)
        return f"{count} deliveries come: deliveries version {self._version(self._deliveries)}"

    def reprice(self) -> str:
        """Rows are updated, with a change data feed."""
        which = self._random.randrange(3)
        changed = DeltaTable(self._catalogue).update(
            updates={"price": "CAST(price * 1.05 AS DECIMAL(10,2))"},
            predicate=f"item_id % 3 = {which}",
        )
        count = changed["num_updated_rows"]
        return f"{count} prices rise: catalogue version {self._version(self._catalogue)}"

    def renew(self) -> str:
        """An item goes and another comes, with a change data feed."""
        items = DeltaTable(self._catalogue).to_pyarrow_table(columns=["item_id"])["item_id"]
        known = sorted(items.to_pylist())
        DeltaTable(self._catalogue).delete(f"item_id = {self._random.choice(known)}")
        new = _table([self._item(known[-1] + 1)], CATALOGUE)
        write_deltalake(self._catalogue, new, mode="append")
        return f"an item goes, another comes: catalogue version {self._version(self._catalogue)}"

    def correct(self) -> str:
        """Rows are deleted, without a change data feed."""
        number = self._random.randrange(10)
        gone = DeltaTable(self._deliveries).delete(f"delivery_id % 10 = {number} AND quantity > 7")
        version = self._version(self._deliveries)
        return f"{gone['num_deleted_rows']} deliveries are struck: deliveries version {version}"

    def redesign(self) -> str:
        """An item has one part less and another one more, with a change data feed."""
        table = DeltaTable(self._parts)
        known = sorted(tuple(row.values()) for row in table.to_pyarrow_table().to_pylist())
        item, part = self._random.choice(known)
        last = max(each for pair in known for each in pair)
        # parts have larger numbers than what they are in: nothing contains itself
        other = self._random.choice(
            [n for n in range(item + 1, last + 2) if (item, n) not in known]
        )
        table.delete(f"item_id = {item} AND part_id = {part}")
        write_deltalake(self._parts, _table([(item, other)], PARTS), mode="append")
        told = f"item {item} has part {other} instead of {part}"
        return f"{told}: parts version {self._version(self._parts)}"

    def _open_parts(self, items: int) -> None:
        if DeltaTable.is_deltatable(self._parts):
            return
        DeltaTable.create(
            self._parts,
            PARTS,
            name="parts",
            configuration={"delta.enableChangeDataFeed": "true"},
        )
        rows = [(n // 2, n) for n in range(2, items + 1)]
        rows += [(n // 3, n) for n in range(6, items + 1, 3) if n // 3 != n // 2]
        write_deltalake(self._parts, _table(rows, PARTS), mode="append")

    def _deliver(self, count: int) -> None:
        table = DeltaTable(self._deliveries)
        known = table.to_pyarrow_table(columns=["delivery_id"])["delivery_id"].to_pylist()
        items = DeltaTable(self._catalogue).to_pyarrow_table(columns=["item_id"])["item_id"]
        choices = sorted(items.to_pylist())
        first = max(known, default=0) + 1
        day = OPENING_DAY + timedelta(days=first // 10)
        rows = [
            (number, self._random.choice(choices[:-2]), self._random.randrange(1, 10), day)
            for number in range(first, first + count)
        ]
        write_deltalake(table, _table(rows, DELIVERIES), mode="append")

    def _item(self, number: int) -> tuple[Any, ...]:
        name = f"{_GOODS[number % len(_GOODS)]} {number}"
        price = Decimal(self._random.randrange(500, 30_000)) / 100
        return number, name, self._random.choice(_CATEGORIES), price

    @staticmethod
    def _version(table: str) -> int:
        return DeltaTable(table).version()


def _table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(zip(*rows, strict=True), schema, strict=True)
    return pa.Table.from_arrays([pa.array(v, each.type) for v, each in columns], schema=schema)
