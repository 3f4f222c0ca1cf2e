"""How TPC-H's tables change: a little of everything, and now and then something with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.tpch.generate import tables
from bench.tpch.schema import PRIMARY_KEYS, SCHEMAS
from tests.tpc.history import History
from tests.tpc.stream import Stream, StreamTable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

PLACES = (("s_nationkey", "s_phone"), ("c_nationkey", "c_phone"))
DATES = ("l_shipdate", "l_commitdate", "l_receiptdate", "l_returnflag", "l_linestatus")
SPECS = (
    StreamTable("region", ("r_regionkey",), 1, "r_regionkey", keeps=("r_name",), back=2),
    StreamTable(
        "nation",
        ("n_nationkey",),
        1,
        "n_nationkey",
        follows=(("n_regionkey", "region"),),
        keeps=("n_name",),
        back=2,
    ),
    StreamTable(
        "supplier",
        ("s_suppkey",),
        2,
        "s_suppkey",
        together=PLACES[:1],
        follows=(("s_nationkey", "nation"),),
    ),
    StreamTable("part", ("p_partkey",), 5, "p_partkey", back=4),
    StreamTable(
        "partsupp",
        ("ps_partkey", "ps_suppkey"),
        6,
        follows=(("ps_partkey", "part"), ("ps_suppkey", "supplier")),
    ),
    StreamTable(
        "customer",
        ("c_custkey",),
        5,
        "c_custkey",
        together=PLACES[1:],
        follows=(("c_nationkey", "nation"),),
    ),
    StreamTable("orders", ("o_orderkey",), 10, "o_orderkey", follows=(("o_custkey", "customer"),)),
    StreamTable(
        "lineitem",
        ("l_orderkey", "l_linenumber"),
        25,
        "l_linenumber",
        together=(("l_partkey", "l_suppkey"), DATES, ("l_extendedprice", "l_discount", "l_tax")),
        follows=(("l_orderkey", "orders"), ("l_partkey", "part")),
    ),
)
EVERY = 4
BRANDS = ("Brand#12", "Brand#23", "Brand#34")


def history(scale: float, folder: Path) -> History:
    """The refresh stream over tables of a scale."""
    stream = Stream(_with_small_parts(tables(scale)), SPECS, 22, with_a_reason)
    return History("TPC-H", dict(SCHEMAS), dict(PRIMARY_KEYS), stream, folder)


def _with_small_parts(given: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Parts of three brands are small, or query 19 finds nothing in so little data."""
    part = given["part"]
    sizes = np.asarray(part["p_size"])
    asked = np.asarray(pc.is_in(part["p_brand"], pa.array(BRANDS)))
    small = pa.array(np.where(asked, (sizes - 1) % 5 + 1, sizes), part.schema.field("p_size").type)
    at = part.schema.get_field_index("p_size")
    return {**given, "part": part.set_column(at, part.schema.field(at), small)}


def with_a_reason(tick: int, now: Mapping[str, pa.Table]) -> dict[str, Rows]:
    """Every second tick many rows of one kind go; two ticks later they are back."""
    turn = tick // 2 % EVERY if tick % 2 == 0 else -1
    if turn == 0:  # all customers of one nation
        return {"customer": _where(now, "customer", "c_nationkey", tick)}
    if turn == 1:  # orders that lie together, with their lines
        keys = now["orders"]["o_orderkey"].slice(40 * tick, 30)
        return {
            "orders": np.flatnonzero(pc.is_in(now["orders"]["o_orderkey"], keys.combine_chunks())),
            "lineitem": np.flatnonzero(
                pc.is_in(now["lineitem"]["l_orderkey"], keys.combine_chunks())
            ),
        }
    if turn == 2:  # the cheapest offers, and the suppliers with the most money
        return {
            "partsupp": _least(now["partsupp"]["ps_supplycost"]),
            "supplier": _least(pc.negate(now["supplier"]["s_acctbal"])),
        }
    if turn == 3:  # what one supplier delivered, and all parts of one brand
        return {
            "lineitem": _where(now, "lineitem", "l_suppkey", tick),
            "part": _where(now, "part", "p_brand", f"Brand#{tick % 5 + 1}{tick % 4 + 1}"),
        }
    return {}


def _where(now: Mapping[str, pa.Table], table: str, column: str, value: object) -> Rows:
    return np.flatnonzero(pc.equal(now[table][column], value))


def _least(values: pa.ChunkedArray, count: int = 15) -> Rows:
    return np.asarray(pc.sort_indices(values))[:count].astype(np.int64)
