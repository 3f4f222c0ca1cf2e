"""The shop's trade as a raw export: codes, cents, letters as typed, and payments beside it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tideview.pipelines.shop.trade import Shop

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tideview.resources.inbox import Inbox

Row = tuple[Any, ...]
STATES = {"open": "O", "shipped": "S", "cancelled": "C"}


def raw_customer(row: Row) -> Row:
    """`Ada 1` becomes ` ADA 1`; some have a blank for a city."""
    number, name, city = row
    typed = f" {name.upper()}" if number % 3 else name.lower()
    return f"C-{number}", typed, city if number % 7 else " "


def raw_product(row: Row) -> Row:
    """Prices in cents; every fifth product has no category."""
    number, name, category, price = row
    return f"P-{number}", f"{name} ", category.upper() if number % 5 else None, _cents(price)


def raw_order(row: Row) -> Row:
    """The state as one letter."""
    number, customer, placed, status = row
    return number, f"C-{customer}", placed, STATES[status]


def raw_line(row: Row) -> Row:
    """Codes, and the price in cents."""
    order, line, product, quantity, price, *_ = row
    return order, line, f"P-{product}", quantity, _cents(price)


RAW = {
    "customers": ("raw_customers", raw_customer),
    "products": ("raw_products", raw_product),
    "orders": ("raw_orders", raw_order),
    "order_items": ("raw_order_lines", raw_line),
}


class Export:
    """Writes what happens in a shop to the warehouse's inboxes; goes on from what is in them."""

    def __init__(self, inboxes: Mapping[str, Inbox], seed: int = 1) -> None:
        """Make the inboxes that are missing."""
        self._inboxes = inboxes
        for inbox in inboxes.values():
            inbox.make()
        rows = {name: inbox.rows() for name, inbox in inboxes.items()}
        self._shop = Shop(_shop_tables(rows), seed=seed, today=datetime.now(UTC).date())
        self._last_payments: list[Row] = []

    def open(self, customers: int = 20, orders: int = 60) -> str:
        """Fill empty inboxes; those with rows in them stay as they are."""
        if not self._shop.is_empty:
            return "the warehouse has rows already"
        self._shop.open(customers, orders)
        return f"the warehouse is filled: {self._push()}"

    def trade(self) -> str:
        """A day's trade; says what happened and how many rows of which table it changed."""
        return f"{self._shop.some_day()}: {self._push()}"

    def send_again(self) -> bool:
        """The bank sends its last payments again; whether they were taken."""
        return self._inboxes["raw_payments"].append(self._last_payments[::-1])

    def _push(self) -> str:
        told = []
        shipped: list[Row] = []
        for table, changes in self._shop.take_changes().items():
            name, raw = RAW[table]
            inserts, updates, deletes = (
                [raw(row) for row in rows]
                for rows in (changes.inserts, changes.updates, changes.deletes)
            )
            self._inboxes[name].append(inserts)
            self._inboxes[name].merge(updates, deletes)
            told.append(f"{name} {len(changes)} rows")
            if table == "orders":
                new = (*changes.inserts, *changes.updates)
                shipped = [row for row in new if row[3] == "shipped"]
        if shipped:
            self._last_payments = [self._payment(row[0]) for row in shipped]
            self._inboxes["raw_payments"].append(self._last_payments)
            told.append(f"raw_payments {len(shipped)} rows")
        return "; ".join(told)

    def _payment(self, order: int) -> Row:
        lines = [row for row in self._shop.rows("order_items") if row[0] == order]
        amount = sum(row[3] * _cents(row[4]) for row in lines)
        return order, order, amount if order % 4 else amount // 2, self._shop.today


def _shop_tables(raw: Mapping[str, list[Row]]) -> dict[str, list[Row]]:
    """The shop that an export may have come from."""
    words = {letter: state for state, letter in STATES.items()}
    orders = {
        no: (no, _number(customer), placed, words[state])
        for no, customer, placed, state in raw["raw_orders"]
    }
    return {
        "customers": [
            (_number(code), name.strip().title(), city.strip() or "Lund")
            for code, name, city in raw["raw_customers"]
        ],
        "products": [
            (_number(code), title.strip(), (category or "desk").lower(), Decimal(cents) / 100)
            for code, title, category, cents in raw["raw_products"]
        ],
        "orders": list(orders.values()),
        "order_items": [
            (no, line, _number(product), count, Decimal(cents) / 100, orders[no][2], None)
            for no, line, product, count, cents in raw["raw_order_lines"]
        ],
    }


def _cents(price: Decimal) -> int:
    return int(price * 100)


def _number(code: str) -> int:
    return int(code[2:])
