"""All rows of a component from nothing, by semi-naive iterations in Spark.

Every iteration is materialised where the executors are, so that what the next one reads has no
history of its own: neither a commit nor a growing plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ivm_core.engine.gears import FrameRows
from ivm_core.engine.netted_frames import netted_frame
from ivm_core.engine.recursion.inputs import frame_now
from ivm_core.engine.recursion.whole import stepped
from ivm_core.model.names import WEIGHT, quote
from ivm_core.operators.scan import bound_name
from ivm_core.plan.recursion import BAG, MIN, SET, changed_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from ivm_core.engine.recursion.work import Work
    from ivm_core.plan.nodes import Node

MANY_PARTS = 6
"""Iterations whose rows are put together, so that reading them stays cheap."""


class InSpark:
    """A component's rows as frames."""

    def __init__(self, work: Work) -> None:
        """Nothing is read yet."""
        self._work = work
        self._gears = work.relations.gears
        self._parts: dict[str, list[DataFrame]] = {name: [] for name in work.names}

    def run(self) -> dict[str, DataFrame]:
        """All rows of every view, with weights where these count."""
        work = self._work
        below = {name: self._gears.materialised(frame_now(work, name)) for name in work.below}
        new: dict[str, DataFrame] = {}
        for name in work.names:
            self._find(name, work.rules[name].bases, below, new)
        while new:
            for name, frame in new.items():
                self._add(name, frame)
            work.ledger.iterate("fixpoint", next(iter(new)))
            reads = {**below, **{name: self._total(name) for name in work.names}}
            reads |= {changed_name(name): frame for name, frame in new.items()}
            after: dict[str, DataFrame] = {}
            for name in work.names:
                self._find(name, stepped(work, name, list(new)), reads, after)
            new = after
        return {name: self._total(name) for name in work.names}

    def _find(
        self,
        name: str,
        plans: Sequence[Node],
        reads: dict[str, DataFrame],
        new: dict[str, DataFrame],
    ) -> None:
        """Rows that the plans derive and that are new, put among `new` if there are any."""
        work = self._work
        statement = work.statement(name, plans) if plans else None
        if statement is None:
            return
        form = work.statements(name).form
        bound = {bound_name(each, form): FrameRows(frame) for each, frame in reads.items()}
        named = {each: rows for each, rows in bound.items() if each in statement.names}
        with self._gears.reading(statement.text, named) as found:
            frame = self._gears.materialised(self._settled(name, found))
        count = frame.count()
        if count:
            work.ledger.derive(name, count)
            new[name] = frame

    def _settled(self, name: str, found: DataFrame) -> DataFrame:
        rules, schema = self._work.rules[name], self._work.schemas[name]
        found = found.select(
            *[F.col(quote(each.name)).cast(each.type.ddl) for each in schema],
            *([WEIGHT] if rules.fold == BAG else []),
        )
        if rules.fold == BAG:
            return netted_frame(found, schema)
        parts = self._parts[name]
        if not parts:
            return found
        known = self._total(name).alias("known")
        found = found.alias("found")
        keys = rules.columns if rules.fold == SET else rules.keys
        same = _all(
            [F.col(f"found.{quote(key)}").eqNullSafe(F.col(f"known.{quote(key)}")) for key in keys]
        )
        if rules.fold == SET:
            return found.join(known, same, "left_anti")
        ours, theirs = (F.col(f"{side}.{quote(rules.value)}") for side in ("found", "known"))
        beats = ours < theirs if rules.fold == MIN else ours > theirs
        known = known.withColumn("?is_known", F.lit(True)).alias("known")
        is_new = F.col("known.`?is_known`").isNull()
        is_first = theirs.isNull() & ours.isNotNull()
        joined = found.join(known, same, "left").where(is_new | beats | is_first)
        return joined.select(*[F.col(f"found.{quote(each)}") for each in rules.columns])

    def _add(self, name: str, frame: DataFrame) -> None:
        parts = self._parts[name]
        parts.append(frame)
        if len(parts) > MANY_PARTS:
            self._parts[name] = [self._gears.materialised(self._total(name))]

    def _total(self, name: str) -> DataFrame:
        """All rows so far; of extremes the best of every group."""
        rules, schema = self._work.rules[name], self._work.schemas[name]
        parts = self._parts[name]
        if not parts:
            columns = schema.ddl + (f", {WEIGHT} BIGINT" if rules.fold == BAG else "")
            return self._gears.high.createDataFrame([], columns)
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.unionAll(part)
        if rules.fold == SET or len(parts) == 1:
            return whole
        if rules.fold == BAG:
            return netted_frame(whole, schema)
        best = F.min if rules.fold == MIN else F.max
        found = best(quote(rules.value)).alias(rules.value)
        grouped = whole.groupBy(*[quote(key) for key in rules.keys]).agg(found)
        return grouped.select(*[quote(each) for each in rules.columns])


def _all(conditions: list[Column]) -> Column:
    whole = F.lit(True)
    for condition in conditions:
        whole = whole & condition
    return whole
