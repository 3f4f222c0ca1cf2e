"""Spark's own answer to a query over the tables as the stream left them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ivm_core.model.schema import parse_schema
from ivm_core.operators.arrow_types import to_spark

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from tests.tpc.history import History

SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
LIMIT = re.compile(r"\nLIMIT (\d+)\s*$")


class Oracle:
    """A session of its own, whose tables are read from Parquet."""

    def __init__(self, spark: SparkSession, history: History, tables: Iterable[str]) -> None:
        self._session = spark.newSession()
        for key, value in SETTINGS.items():
            self._session.conf.set(key, value)
        self._history = history
        self._tables = list(tables)

    def rows(self, sql: str, tick: int) -> pa.Table:
        for name in self._tables:
            schema = to_spark(parse_schema(self._history.schemas[name]))
            path = str(self._history.path(tick, name))
            self._session.read.schema(schema).parquet(path).createOrReplaceTempView(name)
        return self._session.sql(self._settled(sql)).toArrow()

    def _settled(self, sql: str) -> str:
        """The query with ties at a LIMIT broken by the remaining columns, as a view breaks them."""
        found = LIMIT.search(sql)
        if found is None:
            return sql
        whole = sql[: found.start()]
        places = ", ".join(str(i + 1) for i in range(len(self._session.sql(whole).columns)))
        order = f", {places}" if _is_ordered(whole) else f"\nORDER BY {places}"
        return f"{whole}{order}\nLIMIT {found[1]}"


def _is_ordered(sql: str) -> bool:
    return "\nORDER BY " in sql
