"""The shop's trade: deterministic changes to its four tables, so that a demo has something to do.

The same seed and the same calls give the same rows, whenever and wherever they are made.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Row = tuple[Any, ...]

KEY_WIDTH = {"customers": 1, "products": 1, "orders": 1, "order_items": 2}
OPENING_DAY = date(2025, 3, 3)

_NAMES = ["Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gwen", "Hugo", "Iris", "Jon", "Kaya"]
_CITIES = ["Bergen", "Delft", "Girona", "Lund", "Porto", "Tartu"]
_GOODS = {
    "kitchen": ["kettle", "pan", "sieve", "whisk", "ladle", "teapot"],
    "garden": ["rake", "hose", "spade", "trowel", "lantern", "bench"],
    "desk": ["lamp", "notebook", "stapler", "globe", "inkwell", "ruler"],
}


@dataclass
class TableChanges:
    """Net changes of one table; updates are rows as they are now."""

    inserts: list[Row] = field(default_factory=list)
    updates: list[Row] = field(default_factory=list)
    deletes: list[Row] = field(default_factory=list)

    def __len__(self) -> int:
        """How many rows came, changed or went."""
        return len(self.inserts) + len(self.updates) + len(self.deletes)


class Shop:
    """The four tables as they are, the actions that change them, and what has changed since."""

    def __init__(
        self,
        tables: Mapping[str, list[Row]] | None = None,
        *,
        seed: int = 1,
        today: date = OPENING_DAY,
    ) -> None:
        """An empty shop, or one that goes on from the rows of its tables."""
        self.today = today
        self._random = random.Random(seed)
        self._tables: dict[str, dict[Row, Row]] = {name: {} for name in KEY_WIDTH}
        self._before: dict[str, dict[Row, Row | None]] = {name: {} for name in KEY_WIDTH}
        for name, rows in (tables or {}).items():
            self._tables[name] = {row[: KEY_WIDTH[name]]: row for row in sorted(rows)}

    @property
    def is_empty(self) -> bool:
        """Whether there is nobody to sell to or nothing to sell."""
        return not self._tables["customers"] or not self._tables["products"]

    def rows(self, table: str) -> list[Row]:
        """The rows of a table as they are now."""
        return list(self._tables[table].values())

    def take_changes(self) -> dict[str, TableChanges]:
        """What has changed since this was asked last, table by table; changed tables only."""
        taken: dict[str, TableChanges] = {}
        for name, before in self._before.items():
            changes = TableChanges()
            for key, old in before.items():
                new = self._tables[name].get(key)
                if old is None and new is not None:
                    changes.inserts.append(new)
                elif old is not None and new is None:
                    changes.deletes.append(old)
                elif old is not None and new is not None and old != new:
                    changes.updates.append(new)
            before.clear()
            if len(changes):
                taken[name] = changes
        return taken

    # --- actions ---

    def open(self, customers: int, orders: int) -> None:
        """Open the shop with its goods, its customers and a first batch of orders."""
        for number, (category, name) in enumerate(
            ((category, name) for category, names in _GOODS.items() for name in names), 1
        ):
            price = Decimal(self._random.randrange(300, 9000)) / 100
            self._put("products", (number, name, category, price))
        for number in range(1, customers + 1):
            name = f"{_NAMES[(number - 1) % len(_NAMES)]} {number}"
            self._put("customers", (number, name, self._random.choice(_CITIES)))
        self.order(orders)
        self.deliver(orders // 2)

    def order(self, count: int) -> None:
        """New orders of one to four items each, where there is anybody to order."""
        next_order = max((key[0] for key in self._tables["orders"]), default=0) + 1
        customers, products = self.rows("customers"), self.rows("products")
        if self.is_empty:
            return
        for number in range(next_order, next_order + count):
            customer = self._random.choice(customers)[0]
            placed = self.today - timedelta(days=self._random.randrange(4))
            self._put("orders", (number, customer, placed, "open"))
            for line in range(1, self._random.randrange(1, 5) + 1):
                product, _, _, price = self._random.choice(products)
                promised = placed + timedelta(days=self._random.randrange(2, 6))
                quantity = self._random.randrange(1, 6)
                row = (number, line, product, quantity, price, promised, None)
                self._put("order_items", row)

    def deliver(self, count: int) -> None:
        """Ship open orders; one item in six comes late."""
        for order, customer, placed, _ in self._some("orders", count, lambda row: row[3] == "open"):
            self._put("orders", (order, customer, placed, "shipped"))
            for item in self._items(order):
                days = self._random.choice((-1, -1, 0, 0, 0, 3))
                self._put("order_items", (*item[:6], item[5] + timedelta(days=days)))

    def cancel(self, count: int) -> None:
        """Customers cancel open orders."""
        for order, customer, placed, _ in self._some("orders", count, lambda row: row[3] == "open"):
            self._put("orders", (order, customer, placed, "cancelled"))

    def return_items(self, count: int) -> None:
        """Items come back and are struck from their orders."""
        for item in self._some("order_items", count, lambda row: row[6] is not None):
            self._remove("order_items", item)

    def move(self, count: int) -> None:
        """Customers move to another city."""
        for customer, name, city in self._some("customers", count):
            self._put("customers", (customer, name, _CITIES[_CITIES.index(city) - 1]))

    def reprice(self, count: int) -> None:
        """Products get a new price; what was ordered keeps its own."""
        for product, name, category, price in self._some("products", count):
            self._put("products", (product, name, category, price + Decimal("1.00")))

    def forget(self, count: int) -> None:
        """Customers leave, with their orders and all that was in them."""
        for customer in self._some("customers", count):
            for order in [row for row in self.rows("orders") if row[1] == customer[0]]:
                for item in self._items(order[0]):
                    self._remove("order_items", item)
                self._remove("orders", order)
            self._remove("customers", customer)

    def some_day(self) -> str:
        """A day of trade as it comes; says what happened."""
        self.today += timedelta(days=1)
        self.order(self._random.randrange(1, 4))
        happened = ["orders"]
        for name, chance, action in (
            ("deliveries", 0.7, self.deliver),
            ("cancellations", 0.3, self.cancel),
            ("returns", 0.3, self.return_items),
            ("removals", 0.2, self.move),
            ("new prices", 0.2, self.reprice),
        ):
            if self._random.random() < chance:
                action(self._random.randrange(1, 3))
                happened.append(name)
        return ", ".join(happened)

    # --- rows ---

    def _some(
        self, table: str, count: int, which: Callable[[Row], bool] | None = None
    ) -> list[Row]:
        rows = [row for row in self.rows(table) if which is None or which(row)]
        return self._random.sample(rows, min(count, len(rows)))

    def _items(self, order: int) -> list[Row]:
        return [row for row in self.rows("order_items") if row[0] == order]

    def _put(self, table: str, row: Row) -> None:
        key = row[: KEY_WIDTH[table]]
        self._before[table].setdefault(key, self._tables[table].get(key))
        self._tables[table][key] = row

    def _remove(self, table: str, row: Row) -> None:
        key = row[: KEY_WIDTH[table]]
        self._before[table].setdefault(key, row)
        del self._tables[table][key]
