"""Staging pushed batches: checked, netted and durable before a tick says that it will use them."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from ivm_core.engine.evaluation import spark_message
from ivm_core.engine.gears import StoredRows
from ivm_core.engine.ingest import Held, netted_changes
from ivm_core.engine.layout import ticked, weighted
from ivm_core.engine.relations import LOCAL_ROWS, Change, local_change
from ivm_core.model.errors import BatchError, CorruptStore
from ivm_core.model.names import WEIGHT, quote
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.frame_checks import refusal_of
from ivm_core.operators.netting import stacked
from ivm_core.operators.row_identity import digest_of
from ivm_core.store.trace_files import Committed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ivm_core.engine.deduplicating import Deduplication
    from ivm_core.engine.definitions import SourceDefinition
    from ivm_core.engine.gears import Gears, Written
    from ivm_core.engine.history import History
    from ivm_core.engine.layout import Layout
    from ivm_core.engine.side_by_side import SideBySide
    from ivm_core.model.digest import Digest
    from ivm_core.operators.bound_batch import BoundBatch
    from ivm_core.store.trace import Trace

LARGE_BYTES = 8 << 20
"""From here on Spark writes a frame that nothing has to be checked of; less goes by the driver."""
UNKNOWN_BYTES = 1 << 50
"""Spark's word for a size that it doesn't know is larger."""


@dataclass(frozen=True)
class Staged:
    """A batch that is on disk, as part of an attempt that is not yet committed."""

    change: Change
    digest: Digest
    held: Held | None = None
    """What its source has stored before the tick, as far as that had to be read."""

    @property
    def count(self) -> int:
        """Rows of the netted change."""
        return self.change.count


class Staging:
    """Stages the batches of one attempt."""

    def __init__(
        self,
        layout: Layout,
        history: History,
        gears: Callable[[], Gears],
        tick: int,
        epoch: int,
        side_by_side: SideBySide,
        dedup: Deduplication | None = None,
    ) -> None:
        """Nothing is written before `settle`, but for what Spark writes itself."""
        self._layout = layout
        self._history = history
        self._gears = gears
        self._tick = tick
        self._epoch = epoch
        self._side_by_side = side_by_side
        self._dedup = dedup
        self._waiting: list[tuple[Trace, pa.Table]] = []
        self.has_written = False

    def stage_all(self, batches: Mapping[str, BoundBatch]) -> dict[str, Staged | None]:
        """Check all batches, side by side where each is on the driver and none can be dropped."""
        tasks = {name: partial(self.stage, batch) for name, batch in batches.items()}
        options = [self._history.sources[batch.source].options for batch in batches.values()]
        is_local = all(batch.frame is None for batch in batches.values())
        if is_local and not any(each.get("dedup") for each in options):
            return self._side_by_side.run(tasks, {})
        return {name: task() for name, task in tasks.items()}

    def stage(self, batch: BoundBatch) -> Staged | None:
        """Check a batch against its source; None for one that changes nothing or is dropped."""
        source = self._history.sources[batch.source]
        trace = self._trace(source)
        if batch.frame is not None:
            if batch.upserts is None and batch.delete_keys is None and not batch.table.num_rows:
                is_done, staged = self._stage_frame(source, batch, trace)
                if is_done:
                    return staged
            batch = _collected(batch)
        if self._dedup is not None and self._dedup.drops(source, batch):
            return None
        changes, held = netted_changes(source, batch, trace, self._history.committed)
        staged = self._wait(source, trace, changes)
        return None if staged is None else replace(staged, held=held)

    def again(self, source: SourceDefinition, epoch: int, count: int) -> Staged | None:
        """Take over the rows that a killed attempt had staged; `CorruptStore` where some are gone.

        A disk that lost its power may have what came later, and not them.
        """
        trace = self._trace(source)
        attempt = Committed({self._tick: epoch})
        names = [*source.schema.names, WEIGHT]
        rows = trace.read(attempt, self._tick, self._tick - 1, names)
        if rows.num_rows != count:
            raise CorruptStore(
                f"{rows.num_rows} of {count} rows that were staged for source {source.name} are "
                "there"
            )
        staged = self._wait(source, trace, rows.cast(arrow_schema(weighted(source.schema))))
        self.settle()
        return staged

    def settle(self) -> None:
        """Make what was staged durable."""
        for trace, table in sorted(self._waiting, key=lambda each: each[0].location.uri):
            self.has_written = True
            trace.append(table, self._tick, self._epoch)
        self._waiting = []

    def _trace(self, source: SourceDefinition) -> Trace:
        return self._layout.source_rows(source.name, source.schema, source.primary_key)

    def _wait(self, source: SourceDefinition, trace: Trace, table: pa.Table) -> Staged | None:
        change = local_change(table, source.schema)
        if change is None:
            return None
        if change.count > LOCAL_ROWS:
            self.has_written = True
            trace.append(table, self._tick, self._epoch)
            files = trace.files(Committed({self._tick: self._epoch}), self._tick, self._tick - 1)
            uris = tuple(file.uri for file in files)
            change = replace(change, files=StoredRows(uris, ticked(weighted(source.schema))))
        else:
            self._waiting.append((trace, table))
        return Staged(change, digest_of(table, source.schema))

    def _stage_frame(
        self, source: SourceDefinition, batch: BoundBatch, trace: Trace
    ) -> tuple[bool, Staged | None]:
        """Let Spark write a frame of insertions; False where the driver has to check rows."""
        gears = self._gears()
        if batch.frame is None:
            return False, None
        if trace.rows_estimate(self._history.committed):
            with _evaluating(source.name):
                if source.primary_key or not _is_known_large(batch.frame):
                    return False, None
        schema = weighted(source.schema)
        target = trace.spark_target(self._tick, self._epoch)
        self.has_written = True
        with _evaluating(source.name), _moved(batch.frame, gears.high) as frame:
            written = gears.write_frame(frame, schema, target, self._tick)
        if written.deletions or self._repeats_keys(source, target, written):
            return False, None
        if self._dedup is not None and self._dedup.drops_rows(source, written.digest):
            return True, None
        trace.adopt(self._tick, self._epoch)
        rows = StoredRows((target,), ticked(schema))
        return True, Staged(Change(rows, written.rows, 0, written.net), written.digest)

    def _repeats_keys(self, source: SourceDefinition, target: str, written: Written) -> bool:
        if not source.primary_key:
            return False
        if written.net != written.rows:
            return True  # a weight other than one
        frame = self._gears().read(StoredRows((target,), ticked(weighted(source.schema))))
        keys = [quote(name) for name in source.primary_key]
        return bool(frame.select(*keys).dropna().distinct().count() != written.rows)


@contextmanager
def _evaluating(source: str) -> Iterator[None]:
    """A user's frame is evaluated in here: what it raises is about the batch."""
    try:
        yield
    except PySparkException as error:
        raise refusal_of(error) or BatchError(
            f"the DataFrame can't be evaluated: {spark_message(error)}",
            f"batch for source {source}",
            "correct the DataFrame; the message is Spark's own",
        ) from error


@contextmanager
def _moved(frame: DataFrame, session: SparkSession) -> Iterator[DataFrame]:
    """The frame in a session of ours: it keeps its meaning, but is written with our settings."""
    name = f"tideview_{uuid.uuid4().hex}"
    frame.createGlobalTempView(name)
    try:
        yield session.table(f"global_temp.{name}")
    finally:
        session.catalog.dropGlobalTempView(name)


def _is_known_large(frame: DataFrame) -> bool:
    """Whether Spark knows, without running anything, that a frame has many bytes."""
    plan = getattr(frame, "_jdf", None)  # there is none over Connect
    if plan is None:
        return False
    size = int(plan.queryExecution().optimizedPlan().stats().sizeInBytes())
    return LARGE_BYTES < size < UNKNOWN_BYTES


def _collected(batch: BoundBatch) -> BoundBatch:
    """The batch with its frame's rows on the driver."""
    if batch.frame is None:
        return batch
    wanted = arrow_schema(weighted(batch.schema))
    with _evaluating(batch.source):
        rows = batch.frame.select(*[quote(name) for name in wanted.names]).toArrow()
    table = stacked(batch.table.cast(wanted), rows.cast(wanted))
    return replace(batch, table=table, frame=None)
