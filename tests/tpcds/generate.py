"""Rows for TPC-DS's tables as `tables.txt` describes them, the same for the same seed.

Catalog and web sales repeat, in part, who bought what in the stores, so that the queries that
follow a customer through the channels find some.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ivm_core.model.schema import parse_schema
from ivm_core.operators.arrow_types import arrow_schema
from tests.tpcds.schema import SCHEMAS, TABLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tests.tpcds.schema import Column, Table

    Values = NDArray[Any]

FIRST_DAY, LAST_DAY = date(1999, 1, 1), date(2002, 6, 30)
FIRST_DAY_KEY = 2451180
DAY_NAMES = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MINUTES = 10
"""Between two rows of time_dim."""
RETURNS = {
    "store_returns": "store_sales",
    "catalog_returns": "catalog_sales",
    "web_returns": "web_sales",
}
REPEATS = {
    "catalog_sales": ("cs_bill_customer_sk", "cs_item_sk"),
    "web_sales": ("ws_bill_customer_sk", "ws_item_sk"),
}
REPEATED = 0.5
LINE_STEP = 37
"""Apart are the items of a sale, so that none is there twice."""


def tables(seed: int = 1) -> dict[str, pa.Table]:
    """All tables by name."""
    made = {"date_dim": _dates(), "time_dim": _times()}
    for number, table in enumerate(TABLES.values()):
        made[table.name] = _Draw(table, made, np.random.default_rng([seed, number])).table()
    return made


class _Draw:
    """One table's rows."""

    def __init__(
        self, table: Table, made: dict[str, pa.Table], random: np.random.Generator
    ) -> None:
        self._table = table
        self._made = made
        self._random = random
        self._sale = self._returned_sales()
        self._bought = self._repeated()
        self._values: dict[str, Values] = {}

    def table(self) -> pa.Table:
        for column in self._table.columns:
            self._values[column.name] = self._drawn(column)
        columns = {}
        schema = arrow_schema(parse_schema(self._table.ddl))
        for column, field in zip(self._table.columns, schema, strict=True):
            values = [_plain(each) for each in self._values[column.name]]
            gone = self._random.integers(0, 100, len(values)) < column.nulls
            kept = [None if out else each for each, out in zip(values, gone, strict=True)]
            columns[column.name] = _array(kept, field.type)
        made = pa.table(columns, schema=schema)
        return _first_of_each_key(made, self._table.key)

    def _drawn(self, column: Column) -> Values:
        verb, *given = column.domain
        rows = self._table.rows // column.per
        if verb in ("serial", "ticket"):
            values: Values = np.arange(1, rows + 1)
        elif verb == "id":
            values = np.array([f"ID{i // int(given[0]):08}" for i in range(rows)], object)
        elif verb == "of":
            values = np.array(given, object)[self._random.integers(0, len(given), rows)]
        elif verb == "words":
            lists = [np.array(each.split("|"), object) for each in given]
            picked = [each[self._random.integers(0, len(each), rows)] for each in lists]
            values = np.array([" ".join(each) for each in zip(*picked, strict=True)], object)
        elif verb in ("int", "money"):
            low, high = (int(each) * (100 if verb == "money" else 1) for each in given)
            values = self._random.integers(low, high + 1, rows)
        elif verb == "day":
            low, high = (day_key(date.fromisoformat(each)) for each in given)
            values = self._random.integers(low, high + 1, rows)
        elif verb in ("ref", "line"):
            values = self._keys(
                column, self._random.integers(0, self._made[given[0]].num_rows, rows)
            )
        else:
            return self._dependent(column)
        if verb == "line":
            return self._lines(column, values)
        return np.repeat(values, column.per)

    def _keys(self, column: Column, places: Values) -> Values:
        """Keys of another table; who buys again, and what, is taken from the stores."""
        keys = np.asarray(self._made[column.domain[1]].column(0))[places]
        names = REPEATS.get(self._table.name, ())
        if column.name in names:
            again, bought = self._bought
            keys = np.where(again, bought[names.index(column.name)], keys)
        return keys

    def _lines(self, column: Column, first: Values) -> Values:
        step = np.tile(np.arange(column.per), len(first)) * LINE_STEP
        items = self._made[column.domain[1]].num_rows
        return (np.repeat(first, column.per) - 1 + step) % items + 1

    def _dependent(self, column: Column) -> Values:
        verb, name, *given = column.domain
        source = self._sale[name].to_pylist() if self._sale is not None else self._values[name]
        if verb == "from":
            return np.array(source, object)
        low, high = (int(each) for each in given)
        days = self._random.integers(low, high + 1, len(source))
        last = day_key(LAST_DAY)
        return np.array(
            [
                None if one is None else min(int(one) + int(d), last)
                for one, d in zip(source, days, strict=True)
            ],
            object,
        )

    def _returned_sales(self) -> pa.Table | None:
        if self._table.name not in RETURNS:
            return None
        sales = self._made[RETURNS[self._table.name]]
        places = self._random.choice(sales.num_rows, self._table.rows, replace=False)
        return sales.take(places)

    def _repeated(self) -> tuple[Values, list[Values]]:
        """For each sale whether it repeats one of the stores, and that one's buyer and item."""
        if self._table.name not in REPEATS:
            return np.array([]), []
        count = self._table.rows // 3
        returned = self._made["store_returns"]
        known = returned.filter(returned["sr_customer_sk"].is_valid())
        places = self._random.integers(0, known.num_rows, count)
        again = self._random.random(count) < REPEATED
        bought = [np.asarray(known[name])[places] for name in ("sr_customer_sk", "sr_item_sk")]
        return again, bought


def day_key(day: date) -> int:
    """The key of a day in date_dim."""
    return FIRST_DAY_KEY + (day - FIRST_DAY).days


def _dates() -> pa.Table:
    days = [FIRST_DAY + timedelta(days=i) for i in range((LAST_DAY - FIRST_DAY).days + 1)]
    rows = [
        {
            "d_date_sk": day_key(day),
            "d_date": day,
            "d_month_seq": (day.year - 1900) * 12 + day.month - 1,
            "d_week_seq": (day - date(1900, 1, 1)).days // 7 + 1,
            "d_quarter_seq": (day.year - 1900) * 4 + (day.month - 1) // 3,
            "d_year": day.year,
            "d_dow": (day.weekday() + 1) % 7,
            "d_moy": day.month,
            "d_dom": day.day,
            "d_qoy": (day.month - 1) // 3 + 1,
            "d_day_name": DAY_NAMES[day.weekday()],
            "d_quarter_name": f"{day.year}Q{(day.month - 1) // 3 + 1}",
        }
        for day in days
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema(parse_schema(SCHEMAS["date_dim"])))


def _times() -> pa.Table:
    rows = []
    for number, minute in enumerate(range(0, 24 * 60, MINUTES)):
        hour = minute // 60
        meal = {7: "breakfast", 8: "breakfast", 12: "lunch", 18: "dinner", 19: "dinner"}.get(hour)
        rows.append(
            {
                "t_time_sk": number + 1,
                "t_time": minute * 60,
                "t_hour": hour,
                "t_minute": minute % 60,
                "t_meal_time": meal,
            }
        )
    return pa.Table.from_pylist(rows, schema=arrow_schema(parse_schema(SCHEMAS["time_dim"])))


def _plain(value: Any) -> Any:
    """NumPy's number as Python's; a missing one as None."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if value != value else value


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        cents = [
            each if each is None or isinstance(each, int) else int(each) * 100 for each in values
        ]
        whole = pa.array(cents, pa.int64()).cast(pa.decimal128(21, 0))
        return pa.array(
            [None if each is None else each.scaleb(-2) for each in whole.to_pylist()], kind
        )
    if pa.types.is_integer(kind):
        return pa.array([None if each is None else int(each) for each in values], kind)
    return pa.array(values, kind)


def _first_of_each_key(table: pa.Table, key: tuple[str, ...]) -> pa.Table:
    if not key:
        return table
    seen: set[tuple[Any, ...]] = set()
    keep = []
    for each in zip(*(table[name].to_pylist() for name in key), strict=True):
        keep.append(each not in seen)
        seen.add(each)
    return table.filter(pa.array(keep))
