"""How TPC-DS's tables change, worked out from what `tables.txt` says about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.tpc.history import History
from tests.tpc.stream import Stream, StreamTable
from tests.tpcds.generate import tables
from tests.tpcds.schema import PRIMARY_KEYS, SCHEMAS, TABLES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.tpcds.schema import Table

FEW, SOME = 20, 200
DAY = tuple(each.split()[0] for each in SCHEMAS["date_dim"].split(", ")[1:])
TIME = tuple(each.split()[0] for each in SCHEMAS["time_dim"].split(", ")[1:])
CALENDARS = (
    # a new day is a known one under another key: a month is the same on all its days
    StreamTable("date_dim", ("d_date_sk",), 3, "d_date_sk", together=(DAY,), keeps=DAY[:1], back=2),
    StreamTable("time_dim", ("t_time_sk",), 2, "t_time_sk", together=(TIME,), back=2),
)


def history(folder: Path) -> History:
    """The refresh stream."""
    specs = [*CALENDARS, *(_spec(table) for table in TABLES.values())]
    return History("TPC-DS", dict(SCHEMAS), dict(PRIMARY_KEYS), Stream(tables(), specs, 99), folder)


def _spec(table: Table) -> StreamTable:
    size = 1 if table.rows < FEW else 2 if table.rows < SOME else 6
    single = table.key[0] if len(table.key) == 1 else None
    refers = [column for column in table.columns if column.domain[0] in ("ref", "line")]
    return StreamTable(
        table.name,
        table.key,
        size,
        serial=single,
        follows=tuple((each.name, each.domain[1]) for each in refers),
        back=2 if table.key and (table.rows < FEW or table.name.endswith("_returns")) else 0,
    )
