"""TPC-H's tables at any scale, the same rows for the same scale and seed.

The shapes and value domains are the standard's: sparse order keys, one to seven lines an order,
four suppliers a part, a third of the customers without orders, dates that follow the order's.
Texts come from small pools, so scale 1 takes about a minute. Larger scales come in parts, as they
would not fit into memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.tpch import words
from bench.tpch.schema import SCHEMAS
from ivm_core.model.schema import parse_schema
from ivm_core.operators.arrow_types import arrow_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

FIRST_DAY = np.datetime64("1992-01-01")
LAST_ORDER = np.datetime64("1998-08-02")
TODAY = np.datetime64("1995-06-17")
"""What had arrived by this day was returned or accepted; the rest is open."""
POOL = 4_000
PART = 1_500_000
"""Orders that are made at once."""


def tables(scale: float, seed: int = 1) -> dict[str, pa.Table]:
    """All eight tables; scale 1 has 1.5 million orders."""
    return Generator(scale, seed).tables()


class Generator:
    """Draws the tables in the order of their references."""

    def __init__(self, scale: float, seed: int = 1) -> None:
        """Sizes follow from the scale, rows from the seed."""
        self.suppliers = max(20, round(10_000 * scale))
        self.parts = max(40, round(200_000 * scale))
        self.customers = max(30, round(150_000 * scale))
        self.orders = max(100, round(1_500_000 * scale))
        self._seed = seed
        self._random = np.random.default_rng([seed, 22])

    def tables(self) -> dict[str, pa.Table]:
        """The tables by name, typed as `SCHEMAS` says."""
        lineitem, orders = self._sales(self._prices(), np.arange(self.orders))
        sales = {"orders": orders, "lineitem": lineitem}
        return self.small_tables() | {name: _typed(name, each) for name, each in sales.items()}

    def small_tables(self) -> dict[str, pa.Table]:
        """All but orders and their lines."""
        made = {
            "region": self._region(),
            "nation": self._nation(),
            "supplier": self._supplier(),
            "part": self._part(self._prices()),
            "partsupp": self._partsupp(),
            "customer": self._customer(),
        }
        return {name: _typed(name, columns) for name, columns in made.items()}

    def sales(self) -> Iterator[dict[str, pa.Table]]:
        """Orders and their lines, part by part; each part is drawn for itself."""
        for number, first in enumerate(range(0, self.orders, PART)):
            self._random = np.random.default_rng([self._seed, 22, number])
            numbers = np.arange(first, min(first + PART, self.orders))
            lineitem, orders = self._sales(self._prices(), numbers)
            yield {"orders": _typed("orders", orders), "lineitem": _typed("lineitem", lineitem)}

    # --- the small tables ---

    def _region(self) -> Mapping[str, object]:
        count = len(words.REGIONS)
        return {
            "r_regionkey": np.arange(count),
            "r_name": words.REGIONS,
            "r_comment": self._comments(count),
        }

    def _nation(self) -> Mapping[str, object]:
        count = len(words.NATIONS)
        return {
            "n_nationkey": np.arange(count),
            "n_name": [name for name, _ in words.NATIONS],
            "n_regionkey": [region for _, region in words.NATIONS],
            "n_comment": self._comments(count),
        }

    def _supplier(self) -> Mapping[str, object]:
        keys = np.arange(1, self.suppliers + 1)
        nations = self._random.integers(0, len(words.NATIONS), len(keys))
        return {
            "s_suppkey": keys,
            "s_name": _numbered("Supplier#", keys),
            "s_address": self._addresses(len(keys)),
            "s_nationkey": nations,
            "s_phone": self._phones(nations),
            "s_acctbal": self._cents(-99_999, 999_999, len(keys)),
            # the standard has complaints about 5 suppliers of 10,000; small scales need more
            "s_comment": self._comments(len(keys), "Customer {} Complaints", 0.02),
        }

    def _part(self, price: Numbers) -> Mapping[str, object]:
        keys = np.arange(1, self.parts + 1)
        makers = self._random.integers(1, 6, len(keys))
        brands = makers * 10 + self._random.integers(1, 6, len(keys))
        return {
            "p_partkey": keys,
            "p_name": self._pick([" ".join(self._words(words.COLOURS, 5)) for _ in range(POOL)]),
            "p_mfgr": _numbered("Manufacturer#", makers, 1),
            "p_brand": _numbered("Brand#", brands, 2),
            "p_type": self._pick(words.TYPES),
            "p_size": self._random.integers(1, 51, len(keys)),
            "p_container": self._pick(words.CONTAINERS),
            "p_retailprice": price,
            "p_comment": self._comments(len(keys)),
        }

    def _partsupp(self) -> Mapping[str, object]:
        four = np.repeat(np.arange(1, self.parts + 1), 4)
        suppliers = self._supplier_of(four, np.tile(np.arange(4), self.parts))
        # with very few suppliers two of the four can be one
        pairs = np.unique(four * (self.suppliers + 1) + suppliers)
        parts, suppliers = np.divmod(pairs, self.suppliers + 1)
        return {
            "ps_partkey": parts,
            "ps_suppkey": suppliers,
            "ps_availqty": self._random.integers(1, 10_000, len(parts)),
            "ps_supplycost": self._cents(100, 100_001, len(parts)),
            "ps_comment": self._comments(len(parts)),
        }

    def _customer(self) -> Mapping[str, object]:
        keys = np.arange(1, self.customers + 1)
        nations = self._random.integers(0, len(words.NATIONS), len(keys))
        return {
            "c_custkey": keys,
            "c_name": _numbered("Customer#", keys),
            "c_address": self._addresses(len(keys)),
            "c_nationkey": nations,
            "c_phone": self._phones(nations),
            "c_acctbal": self._cents(-99_999, 999_999, len(keys)),
            "c_mktsegment": self._pick(words.SEGMENTS),
            "c_comment": self._comments(len(keys)),
        }

    # --- orders and their lines ---

    def _sales(
        self, price: Numbers, numbers: Numbers
    ) -> tuple[Mapping[str, object], Mapping[str, object]]:
        count = len(numbers)
        order_keys = numbers // 8 * 32 + numbers % 8 + 1
        days = (LAST_ORDER - FIRST_DAY).astype(int) + 1
        order_dates = FIRST_DAY + self._random.integers(0, days, count)
        lines = self._random.integers(1, 8, count)
        of = np.repeat(np.arange(count), lines)
        line_numbers = np.arange(len(of)) - np.repeat(np.cumsum(lines) - lines, lines) + 1
        lineitem = self._lines(price, order_keys[of], order_dates[of], line_numbers)
        amounts = _charged(lineitem)
        totals = np.bincount(of, amounts, count).round().astype(np.int64)
        open_lines = np.bincount(of, lineitem["l_linestatus"] == "O", count)
        status = np.where(open_lines == lines, "O", np.where(open_lines == 0, "F", "P"))
        # every third customer never orders
        buyers = self._random.integers(0, self.customers - self.customers // 3, count)
        orders = {
            "o_orderkey": order_keys,
            "o_custkey": buyers // 2 * 3 + buyers % 2 + 1,
            "o_orderstatus": status,
            "o_totalprice": totals,
            "o_orderdate": order_dates,
            "o_orderpriority": self._pick(words.PRIORITIES),
            "o_clerk": _numbered(
                "Clerk#", self._random.integers(1, max(10, self.orders // 1_500), count)
            ),
            "o_shippriority": np.zeros(count, np.int64),
            "o_comment": self._comments(count, "special {} requests", 0.02),
        }
        return lineitem, orders

    def _lines(
        self, price: Numbers, keys: Numbers, ordered: NDArray[np.datetime64], numbers: Numbers
    ) -> dict[str, NDArray[np.generic]]:
        count = len(keys)
        parts = self._random.integers(1, self.parts + 1, count)
        quantity = self._random.integers(1, 51, count)
        shipped = ordered + self._random.integers(1, 122, count)
        received = shipped + self._random.integers(1, 31, count)
        returned = np.where(self._random.random(count) < 0.5, "R", "A")
        return {
            "l_orderkey": keys,
            "l_partkey": parts,
            "l_suppkey": self._supplier_of(parts, self._random.integers(0, 4, count)),
            "l_linenumber": numbers,
            "l_quantity": quantity * 100,
            "l_extendedprice": quantity * price[parts - 1],
            "l_discount": self._random.integers(0, 11, count),
            "l_tax": self._random.integers(0, 9, count),
            "l_returnflag": np.where(received <= TODAY, returned, "N"),
            "l_linestatus": np.where(shipped > TODAY, "O", "F"),
            "l_shipdate": shipped,
            "l_commitdate": ordered + self._random.integers(30, 91, count),
            "l_receiptdate": received,
            "l_shipinstruct": self._pick(words.INSTRUCTIONS),
            "l_shipmode": self._pick(words.MODES),
            "l_comment": self._comments(count),
        }

    def _prices(self) -> Numbers:
        keys = np.arange(1, self.parts + 1)
        return 90_000 + keys // 10 % 20_001 + 100 * (keys % 1_000)

    def _supplier_of(self, parts: Numbers, which: Numbers) -> Numbers:
        step = self.suppliers // 4 + (parts - 1) // self.suppliers
        return (parts + which * step) % self.suppliers + 1

    # --- values ---

    def _cents(self, low: int, high: int, count: int) -> Numbers:
        return self._random.integers(low, high + 1, count)

    def _words(self, of: Sequence[str], count: int) -> list[str]:
        return [of[int(i)] for i in self._random.choice(len(of), count, replace=False)]

    def _pick(self, pool: Sequence[str]) -> Pick:
        return Pick(pool, self._random)

    def _addresses(self, count: int) -> pa.Array:
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz ,0123456789"))
        pool = ["".join(self._random.choice(letters, 18)) for _ in range(POOL)]
        return self._pick(pool).drawn(count)

    def _comments(self, count: int, special: str = "", share: float = 0.0) -> pa.Array:
        pool = [" ".join(self._words(words.COMMENT, 5)) for _ in range(POOL)]
        for i in range(round(POOL * share)):
            start, middle, end = self._words(words.COMMENT, 3)
            pool[i] = f"{start} {special.format(middle)} {end}"
        return self._pick(pool).drawn(count)

    def _phones(self, nations: Numbers) -> pa.Array:
        blocks = [self._random.integers(100, 1_000, len(nations)) for _ in range(2)]
        last = self._random.integers(1_000, 10_000, len(nations))
        parts = [pa.array(each).cast(pa.string()) for each in (nations + 10, *blocks, last)]
        return pc.binary_join_element_wise(*parts, "-")


class Pick:
    """Values drawn from a pool, as many as the table has rows."""

    def __init__(self, pool: Sequence[str], random: np.random.Generator) -> None:
        self._pool = pa.array(pool, pa.string())
        self._random = random

    def drawn(self, count: int) -> pa.Array:
        """So many of them."""
        return self._pool.take(pa.array(self._random.integers(0, len(self._pool), count)))


def _numbered(prefix: str, numbers: Numbers, width: int = 9) -> pa.Array:
    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")
    return pc.binary_join_element_wise(prefix, digits, "")


def _charged(lines: Mapping[str, NDArray[np.generic]]) -> NDArray[np.float64]:
    price = lines["l_extendedprice"].astype(np.float64)
    off = 100 - lines["l_discount"].astype(np.float64)
    return price * off * (100 + lines["l_tax"].astype(np.float64)) / 10_000


def _typed(name: str, columns: Mapping[str, object]) -> pa.Table:
    schema = arrow_schema(parse_schema(SCHEMAS[name]))
    count = len(next(iter(columns.values())))
    arrays = []
    for field in schema:
        given = columns[field.name]
        values = given.drawn(count) if isinstance(given, Pick) else pa.array(given)
        arrays.append(_cents_as(values, field.type) if pa.types.is_decimal(field.type) else values)
    return pa.table(
        [each.cast(field.type) for each, field in zip(arrays, schema, strict=True)], schema=schema
    )


def _cents_as(cents: pa.Array, kind: pa.Decimal128Type) -> pa.Array:
    """Whole cents as decimals, without a detour through floating point."""
    low = np.asarray(cents, dtype=np.int64)
    words_of_16_bytes = np.empty((len(low), 2), dtype=np.int64)
    words_of_16_bytes[:, 0] = low
    words_of_16_bytes[:, 1] = low >> 63
    return pa.Array.from_buffers(kind, len(low), [None, pa.py_buffer(words_of_16_bytes)])
