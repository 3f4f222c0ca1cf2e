"""Looking at the files of traces and published tables: whether they are what was written.

A file is there with the size and the number of rows that the table's log says, and every page of
it decodes and has its checksum.
"""

from __future__ import annotations

import shutil
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.model.errors import CorruptStore, InternalError
from ivm_core.store.delta_actions import LOG, DataFile
from ivm_core.store.log_files import LogFiles
from ivm_core.store.parquet_scan import ParquetScan
from ivm_core.store.published_table import PublishedTable
from ivm_core.store.trace import Trace
from ivm_core.store.trace_files import parse_name, tick_name
from ivm_core.store.trace_writing import read_footer

if TYPE_CHECKING:
    from ivm_core.store.location import Location
    from ivm_core.store.trace_files import Committed


@dataclass(frozen=True)
class Damage:
    """A file, or a whole trace or published table, that is not what was written."""

    trace: str
    """The folder of the trace or table, below the flow's."""
    file: str
    """The file below that folder; empty where it is all of it."""
    problem: str
    first_tick: int = 0
    last_tick: int = 0
    """The ticks whose rows are in the file; 0 and 0 where that isn't known."""


def damages(location: Location, name: str, committed: Committed) -> list[Damage]:
    """What is wrong with a trace."""
    try:
        trace = Trace.open(location)
        files = trace.files(committed)
    except CorruptStore as error:
        return [Damage(name, "", error.what)]
    # Delta readers take such a commit for one that does nothing
    found = [
        Damage(name, f"{LOG}/{file}", "the commit is empty")
        for file in sorted(LogFiles(location).empty)
    ]
    for file in files:
        problem = _problem(trace, file.path, file.bytes, file.rows)
        if problem:
            found.append(Damage(name, file.path, problem, file.first_tick, file.last_tick))
    return found


def published_damages(location: Location, name: str) -> list[Damage]:
    """What is wrong with a published table; nothing where there is none."""
    try:
        table = PublishedTable.open(location)
    except CorruptStore as error:
        return [Damage(name, "", error.what)]
    if table is None:
        return []
    told = [(file.path, _problem(table, file.path, file.size, file.rows)) for file in table.files]
    return [Damage(name, path, problem) for path, problem in told if problem]


def _problem(of: Trace | PublishedTable, path: str, size: int, rows: int) -> str:
    misfit = of.location.misfit(path, size)
    if misfit:
        return f"the file {misfit}"
    try:
        found = ParquetScan(of.location, of.schema).read([path], of.schema.names)
        read_footer(of.location, path, of.schema, may_lack=True)
    except (CorruptStore, InternalError) as error:
        return error.what
    return "" if found.num_rows == rows else f"the file has {found.num_rows} rows instead of {rows}"


def _opened(location: Location) -> Trace | None:
    """A trace that can be gone on with; None for one whose log is damaged itself."""
    try:
        return None if LogFiles(location).empty else Trace.open(location)
    except CorruptStore:
        return None


def exchange(root: Location, name: str, like: Trace, committed: Committed, of: Committed) -> int:
    """Give the trace below `root` the rows of another one that has the same ticks; returns files.

    `committed` are the ticks as this flow has them, `of` as the flow of the other trace has them.
    """
    location = root.child(*name.split("/"))
    trace = _opened(location)
    if trace is None:
        root.delete(name)
        names = like.schema.names[:-1]
        schema = like.schema.empty_table().select(names).schema
        trace = Trace.open(location, schema, like.cluster_by)
    added = []
    for file in like.files(of):
        parsed = parse_name(file.path)
        path = f"{file.path.partition('/')[0].removesuffix('.parquet')}-{uuid.uuid4().hex}.parquet"
        if parsed.epoch is not None:
            epoch = committed.epoch_of(parsed.first_tick)
            if epoch is None:
                continue
            path = f"{tick_name(parsed.first_tick, epoch, uuid.uuid4().hex)}.parquet"
        with like.location.fs.open_input_stream(file.path) as source, location.writing(path) as to:
            shutil.copyfileobj(source, to)
        added.append(DataFile(path, location.size(path), file.rows))
    trace.replace_files(added, list(trace.table.files.values()))
    return len(added)
