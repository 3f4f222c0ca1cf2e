"""The oracle of recursion: the views' own queries, run again and again until nothing changes.

Spark runs each normalised query over the rows of the iteration before, beginning with none. None of
the rules, terms and deltas of a tick are used, so it is what they are checked against.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ivm_core.engine.netted_frames import netted_frame
from ivm_core.model.errors import RecursionLimit
from ivm_core.model.names import WEIGHT, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from ivm_core.model.schema import Schema


def naive_fixpoint(
    session: SparkSession,
    schemas: Mapping[str, Schema],
    query: Callable[[str], DataFrame],
    iterations: int,
) -> dict[str, DataFrame]:
    """All rows of the views of a component.

    `query` runs one of their queries over the temporary views that have their names.
    """
    rows = {name: session.createDataFrame([], schema.ddl) for name, schema in schemas.items()}
    for _ in range(iterations + 1):
        for name, frame in rows.items():
            frame.createOrReplaceTempView(quote(name))
        try:
            after = {name: query(name).localCheckpoint() for name in rows}
        finally:
            for name in rows:
                session.catalog.dropTempView(quote(name))
        if not any(_differ(rows[name], after[name], schemas[name]) for name in rows):
            return after
        rows = after
    name = next(iter(schemas))
    raise RecursionLimit(
        f"the query still changes after {iterations:,} iterations", where=f"view {name}", view=name
    )


def _differ(before: DataFrame, after: DataFrame, schema: Schema) -> bool:
    names = [quote(name) for name in schema.names]
    weight = F.lit(1).cast("bigint")
    ours = before.select(*names, (-weight).alias(WEIGHT))
    theirs = after.select(*names, weight.alias(WEIGHT))
    return not netted_frame(ours.unionAll(theirs), schema).isEmpty()
