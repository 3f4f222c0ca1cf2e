"""TPC-DS's tables as `tables.txt` describes them, and the two that are calendars."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DATE_DIM = (
    "d_date_sk INT, d_date DATE, d_month_seq INT, d_week_seq INT, d_quarter_seq INT, d_year INT, "
    "d_dow INT, d_moy INT, d_dom INT, d_qoy INT, d_day_name STRING, d_quarter_name STRING"
)
TIME_DIM = "t_time_sk INT, t_time INT, t_hour INT, t_minute INT, t_meal_time STRING"


@dataclass(frozen=True)
class Column:
    """A column and what its values are drawn from."""

    name: str
    kind: str
    domain: tuple[str, ...]
    per: int
    """Lines of a sale that share one draw."""
    nulls: int
    """Of a hundred rows."""


@dataclass(frozen=True)
class Table:
    name: str
    rows: int
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def ddl(self) -> str:
        return ", ".join(f"{column.name} {column.kind}" for column in self.columns)


def read_tables(path: Path) -> dict[str, Table]:
    tables: dict[str, Table] = {}
    for block in path.read_text(encoding="utf-8").split("\ntable ")[1:]:
        head, *lines = block.strip().split("\n")
        name, rows, _, *key = head.split()
        columns = tuple(_column(line) for line in lines)
        tables[name] = Table(name, int(rows), tuple(key), columns)
    return tables


def _column(line: str) -> Column:
    name, kind, rest = line.split(" ", 2)
    rest, _, nulls = rest.partition(" null ")
    rest, _, per = rest.partition(" per ")
    verb, _, given = rest.partition(" ")
    domain = (verb, *(given.split("|") if verb == "of" else given.split()))
    if verb == "words":
        domain = (verb, *given.split(" / "))
    return Column(name, kind, domain, int(per or 1), int(nulls or 0))


TABLES = read_tables(Path(__file__).with_name("tables.txt"))
SCHEMAS = {"date_dim": DATE_DIM, "time_dim": TIME_DIM} | {
    name: table.ddl for name, table in TABLES.items()
}
PRIMARY_KEYS = {"date_dim": ("d_date_sk",), "time_dim": ("t_time_sk",)} | {
    name: table.key for name, table in TABLES.items()
}
