"""The oracle of recursion: the views' own queries, run again and again until nothing changes.

Spark runs each normalised query over the rows of the iteration before, beginning with none. None of
the rules, terms and deltas of a tick are used, so it is what they are checked against.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import functions as F

from ivm_core.engine.gears import LocalRows
from ivm_core.engine.netted_frames import netted_frame
from ivm_core.engine.nullable_fields import with_nullable_fields
from ivm_core.model.errors import RecursionLimit
from ivm_core.model.names import WEIGHT, quote
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.netting import net, stacked
from ivm_core.operators.row_sets import with_weight

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ivm_core.engine.gears import Gears
    from ivm_core.model.schema import Schema


class Held(Protocol):
    """Rows of a view after an iteration, computed once."""

    @property
    def frame(self) -> DataFrame:
        """What the next iteration reads."""

    def differs(self, before: Held | None, schema: Schema) -> bool:
        """Whether these are other rows than those before, as bags and bit for bit.

        None for no rows.
        """


@dataclass(frozen=True)
class OnDriver:
    """Few rows: an iteration is one job."""

    table: pa.Table
    frame: DataFrame

    @classmethod
    def of(cls, gears: Gears, frame: DataFrame, schema: Schema) -> OnDriver:
        """Compute a frame."""
        table = with_nullable_fields(frame).toArrow().rename_columns(list(schema.names))
        table = table.cast(arrow_schema(schema))
        return cls(table, gears.frame_in(frame.sparkSession, LocalRows(table, schema)))

    def differs(self, before: Held | None, schema: Schema) -> bool:
        """By netting both on the driver."""
        both = with_weight(self.table, 1)
        if isinstance(before, OnDriver):
            both = stacked(both, with_weight(before.table, -1))
        return bool(net(both, schema).num_rows)


@dataclass(frozen=True)
class InSpark:
    """Any number of rows, where the executors are."""

    frame: DataFrame

    @classmethod
    def of(cls, gears: Gears, frame: DataFrame, schema: Schema) -> InSpark:
        """Compute a frame."""
        return cls(gears.materialised(frame).toDF(*schema.names))

    def differs(self, before: Held | None, schema: Schema) -> bool:
        """By a job."""
        names = [quote(name) for name in schema.names]
        weight = F.lit(1).cast("bigint")
        both = self.frame.select(*names, weight.alias(WEIGHT))
        if before is not None:
            both = both.unionAll(before.frame.select(*names, (-weight).alias(WEIGHT)))
        return not netted_frame(both, schema).isEmpty()


def naive_fixpoint(
    session: SparkSession,
    schemas: Mapping[str, Schema],
    query: Callable[[str], DataFrame],
    held: Callable[[DataFrame, Schema], Held],
    iterations: int,
) -> dict[str, DataFrame]:
    """All rows of the views of a component.

    `query` runs one of their queries over the temporary views that have their names, and
    `held` computes what that gives.
    """
    rows: dict[str, Held] = {}
    for _ in range(iterations + 1):
        for name, schema in schemas.items():
            known = rows.get(name)
            frame = session.createDataFrame([], schema.ddl) if known is None else known.frame
            frame.createOrReplaceTempView(quote(name))
        try:
            after = {name: held(query(name), schema) for name, schema in schemas.items()}
        finally:
            for name in schemas:
                session.catalog.dropTempView(name)
        changed = any(each.differs(rows.get(n), schemas[n]) for n, each in after.items())
        rows = after
        if not changed:
            return {name: each.frame for name, each in rows.items()}
    name = next(iter(schemas))
    raise RecursionLimit(
        f"the query still changes after {iterations:,} iterations", where=f"view {name}", view=name
    )
