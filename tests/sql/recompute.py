"""Spark's own answer: the user's text over the sources as the test knows them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ivm_core.engine.nullable_fields import with_nullable_fields
from ivm_core.model.names import quote
from ivm_core.operators.arrow_types import to_spark

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from tests.sql.case_format import ViewSpec
    from tests.sql.source_model import SourceModel

SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # small statements, so nothing that pays only for large ones
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
}
NOW = re.compile(r"\b(current_timestamp|now)\s*\(\s*\)", re.IGNORECASE)
TODAY = re.compile(r"\b(current_date|curdate)\s*\(\s*\)", re.IGNORECASE)


class Recompute:
    """A session whose temporary views are the sources and the views over them."""

    def __init__(self, spark: SparkSession) -> None:
        self._session = spark.newSession()
        for key, value in SETTINGS.items():
            self._session.conf.set(key, value)

    def load(self, sources: Iterable[SourceModel]) -> None:
        for source in sources:
            frame = self._session.createDataFrame(source.table(), to_spark(source.schema))
            frame.createOrReplaceTempView(quote(source.spec.name))

    def define(self, views: Iterable[ViewSpec], at: datetime | None) -> None:
        for view in views:
            frame = self._session.sql(bound_to(view.recomputed, at))
            frame.createOrReplaceTempView(quote(view.name))

    def rows(self, view: ViewSpec) -> pa.Table:
        return self._session.table(quote(view.name)).toArrow()

    def answer(self, sql: str) -> pa.Table:
        """What Spark gives for any text over the views and sources."""
        return with_nullable_fields(self._session.sql(sql)).toArrow()  # pyspark can't bring others


def bound_to(sql: str, at: datetime | None) -> str:
    """The text with the calls that read the clock replaced by the tick's logical time."""
    if at is None:
        return sql
    sql = NOW.sub(f"TIMESTAMP '{at:%Y-%m-%d %H:%M:%S.%f}'", sql)
    return TODAY.sub(f"DATE '{at:%Y-%m-%d}'", sql)
