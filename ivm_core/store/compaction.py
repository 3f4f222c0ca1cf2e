"""Compaction of a trace: old ticks become one base, newer ones share a file, in one commit.

    rows of ticks ≤ up_to   folded (weights of equal rows summed, zeros dropped), as the base
    rows of ticks > up_to   kept as they are, small files merged into one
    files of dead attempts  removed

A reader that holds a list of files keeps seeing the same rows: files are deleted by `sweep` only
some time after the table let go of them. Compaction never decides what counts, so a second writer
can at worst make it fail with `TickConflict`, and it is tried again later.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.model.errors import InternalError, OutOfRange, TickConflict
from ivm_core.model.names import TICK, WEIGHT
from ivm_core.model.schema import Field, Schema
from ivm_core.operators.arrow_types import from_arrow_type
from ivm_core.operators.netting import net
from ivm_core.store.delta_actions import LOG, DataFile
from ivm_core.store.faults import fault_point
from ivm_core.store.owned_table import VersionTaken
from ivm_core.store.trace_files import base_name, is_ours, merged_name, parse_name
from ivm_core.store.trace_writing import conform, sort_rows, with_tick, write_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from ivm_core.store.owned_table import OwnedTable
    from ivm_core.store.trace import Trace
    from ivm_core.store.trace_files import Committed, TraceFile

BASE_FILE_ROWS = 1 << 22
MERGED_FILE_ROWS = 1 << 16
KEEP_REMOVED_SECONDS = 3600.0


class Compaction:
    """One compaction that has begun: what to fold, and how to finish."""

    def __init__(self, trace: Trace, committed: Committed, up_to_tick: int, epoch: int) -> None:
        """Settle the files; `OutOfRange` for a tick that isn't committed or is below the base."""
        if not trace.base_tick <= up_to_tick <= committed.newest:
            raise OutOfRange(
                f"{trace.location.name} can't be compacted up to tick {up_to_tick}",
                fix=f"a tick from {trace.base_tick} to {committed.newest}",
            )
        self.trace = trace
        self.committed = committed
        self.up_to_tick = up_to_tick
        self.fold: list[TraceFile] = trace.files(committed, at=up_to_tick)
        newer = trace.files(committed, since=up_to_tick)
        self._merge = [file for file in newer if file.rows <= MERGED_FILE_ROWS or file in self.fold]
        self._dead = [file for path, file in trace.table.files.items() if _is_dead(path, committed)]
        self._base = base_name(up_to_tick, epoch, uuid.uuid4().hex)

    def rows(self) -> pa.Table:
        """What is to be folded, on the driver, without `_tick`."""
        names = self.trace.schema.names[:-1]
        return self.trace.read(self.committed, at=self.up_to_tick, columns=names)

    def finish(self, folded: pa.Table) -> None:
        """Commit these rows (without `_tick`) as the base; `TickConflict` if the trace moved on."""
        trace = self.trace
        stored = with_tick(conform(folded, pa.schema(list(trace.schema)[:-1])), self.up_to_tick)
        stored = sort_rows(stored, trace.cluster_by)
        fault_point("before:trace.compaction_file")
        base = [
            write_file(
                trace.location,
                f"{self._base}-{part}.parquet",
                stored.slice(start, BASE_FILE_ROWS),
                trace.cluster_by,
            )
            for part, start in enumerate(range(0, max(1, stored.num_rows), BASE_FILE_ROWS))
        ]
        fault_point("after:trace.compaction_file")
        self._commit(base)

    def _commit(self, base: list[DataFile]) -> None:
        trace = self.trace
        gone = {file.path for file in self.fold} | {file.path for file in self._dead}
        merged = self._merged()
        if merged:
            gone |= {file.path for file in self._merge}
        removed = [trace.table.files[path] for path in gone]
        fault_point("before:trace.compaction")
        try:
            trace.replace_files([*base, *merged], removed)
        except VersionTaken as error:
            raise TickConflict(
                "another writer has added to this trace during compaction", trace.location.uri
            ) from error
        fault_point("after:trace.compaction")

    def _merged(self) -> list[DataFile]:
        straddling = any(file in self.fold for file in self._merge)
        if len(self._merge) < 2 and not straddling:
            return []
        paths = {file.path for file in self._merge}
        rows = self.trace.read_files(paths)
        rows = rows.filter(pc.greater(rows[TICK], self.up_to_tick))
        ends = pc.min_max(rows[TICK]).as_py()
        if ends["min"] is None:
            return []
        name = f"{merged_name(ends['min'], ends['max'], uuid.uuid4().hex)}.parquet"
        return [write_file(self.trace.location, name, rows, self.trace.cluster_by)]


def compact(
    trace: Trace,
    committed: Committed,
    up_to_tick: int,
    epoch: int,
    fold: Callable[[pa.Table], pa.Table] | None = None,
) -> int:
    """Fold ticks up to `up_to_tick` on the driver; returns the rows of the new base.

    Without `fold`, weights of equal rows are summed; accumulators need theirs.
    """
    compaction = Compaction(trace, committed, up_to_tick, epoch)
    folded = (fold or netted)(compaction.rows())
    compaction.finish(folded)
    return int(folded.num_rows)


def small_files(trace: Trace, committed: Committed) -> int:
    """How many files there are that compaction would put together."""
    return sum(file.rows <= MERGED_FILE_ROWS for file in trace.files(committed))


def merge_small(
    trace: Trace, committed: Committed, fold: Callable[[pa.Table], pa.Table] | None = None
) -> list[str]:
    """Put the small files of ticks above the base into one, each row with its own tick.

    With `fold`, for a trace that is only ever read whole, equal rows become one, of the last tick.
    Returns the names of the files that were merged.
    """
    base = trace.base_tick
    small = [
        file
        for file in trace.files(committed, since=base if base else None)
        if file.rows <= MERGED_FILE_ROWS and not file.is_base
    ]
    if len(small) < 2:
        return []
    rows = trace.read_files({file.path for file in small})
    first, last = small[0].first_tick, max(file.last_tick for file in small)
    if fold is not None:
        folded = fold(rows.drop_columns([TICK]))
        rows = with_tick(conform(folded, pa.schema(list(trace.schema)[:-1])), last)
    name = f"{merged_name(first, last, uuid.uuid4().hex)}.parquet"
    fault_point("before:trace.compaction_file")
    # also where nothing is left: a trace always has a file of the newest tick that it was given
    merged = [write_file(trace.location, name, rows, trace.cluster_by)]
    fault_point("after:trace.compaction_file")
    fault_point("before:trace.compaction")
    try:
        trace.replace_files(merged, [trace.table.files[file.path] for file in small])
    except VersionTaken as error:
        raise TickConflict(
            "another writer has added to this trace during compaction", trace.location.uri
        ) from error
    fault_point("after:trace.compaction")
    return [file.path for file in small]


def sweep(trace: Trace, keep_seconds: float = KEEP_REMOVED_SECONDS) -> list[str]:
    """Delete files that the table has let go of, or that killed writers left, and name them.

    Files that are newer than `keep_seconds`, or were removed from the table since, stay.
    """
    trace.refresh()
    return delete_unlisted(trace.table, keep_seconds, is_ours)


def delete_unlisted(
    table: OwnedTable, keep_seconds: float, is_ours: Callable[[str], bool]
) -> list[str]:
    """Delete own files that are in no version of a table since so many seconds; names them."""
    moment = time.time() - keep_seconds
    active = set(table.files)
    recent = table.removed_since(moment)
    swept = []
    for entry in table.location.list(recursive=True):
        is_draft = entry.path.startswith(f"{LOG}/.") and entry.path.endswith(".draft")
        if entry.is_dir or entry.modified > moment or entry.path in active or entry.path in recent:
            continue
        if is_draft or is_ours(entry.path):
            fault_point("before:trace.sweep")
            table.location.delete(entry.path)
            fault_point("after:trace.sweep")
            swept.append(entry.path)
    return swept


def netted(rows: pa.Table) -> pa.Table:
    """Rows of the same identity as one, with the sum of their weights; zeros are dropped."""
    if WEIGHT not in rows.column_names:
        raise InternalError("accumulators can't be folded by weight")
    fields = [
        Field(each.name, from_arrow_type(each.type)) for each in rows.schema if each.name != WEIGHT
    ]
    return net(rows, Schema(tuple(fields), internal=True))


def _is_dead(path: str, committed: Committed) -> bool:
    """Whether the file is of an attempt that can't be committed any more."""
    name = parse_name(path)
    if name.epoch is None or name.first_tick > committed.newest:
        return False
    return committed.epoch_of(name.first_tick) != name.epoch
