"""Reads Parquet files that the flow wrote, decoding as little of them as a limit allows.

A limited read takes three steps for each file: row groups whose statistics rule the limit out are
skipped; of the others only the limited columns are decoded; the rest of the columns is decoded in
those row groups that turn out to hold a hit. Row groups are worked on side by side.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from ivm_core.model.errors import CorruptStore
from ivm_core.store.row_groups import ColumnRange, groups_within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ivm_core.store.limit import Limit
    from ivm_core.store.location import Location

_ROWS_AT_A_TIME = 1 << 17
_REPEATED_BYTES = 4
"""Text that takes no more than this for each row is mostly numbers of repeated values."""
Piece: TypeAlias = "tuple[str, parquet.ParquetFile, list[int]]"


class ParquetScan:
    """The opened files of one table; footers are parsed once and the newest are kept."""

    def __init__(self, location: Location, schema: pa.Schema, keep: int = 512) -> None:
        """Read files below `location` as `schema`; at most `keep` stay open."""
        self._location = location
        self._schema = schema
        self._keep = keep
        self._open: OrderedDict[str, parquet.ParquetFile] = OrderedDict()
        self._ranges: dict[str, dict[str, ColumnRange]] = {}

    def read(
        self, paths: Iterable[str], columns: Sequence[str], where: Limit | None = None
    ) -> pa.Table:
        """Rows of these files within the limit; a missing or damaged file is `CorruptStore`.

        A column that a file was written without is NULL in its rows.
        """
        wanted = pa.schema([self._schema.field(name) for name in columns])
        limit = where.fitted(self._schema) if where else None
        pieces = [piece for path in paths for piece in self._pieces(path, limit)]
        each_in_turn = map if len(pieces) <= 1 else _threads().map
        parts = list(each_in_turn(lambda piece: self._read(piece, wanted, limit), pieces))
        return pa.concat_tables([wanted.empty_table(), *(part for part in parts if part)])

    def forget(self, paths: Iterable[str]) -> None:
        """Close files that are no longer part of the table."""
        for path in paths:
            self._open.pop(path, None)
            self._ranges.pop(path, None)

    def range_of(self, path: str, column: str) -> ColumnRange:
        """What the statistics of a file say of a column."""
        ranges = self._ranges.setdefault(path, {})
        if column not in ranges:
            of = self._schema.field(column).type
            with self._named(path):
                ranges[column] = ColumnRange.of(self._file(path).metadata, column, of)
        return ranges[column]

    def _pieces(self, path: str, limit: Limit | None) -> list[Piece]:
        """The row groups to look at, in portions that one thread takes at a time."""
        with self._named(path):
            file = self._file(path)
        count = file.num_row_groups
        groups = list(range(count))
        if limit is not None:
            ranges = {column: self.range_of(path, column) for column in limit.columns}
            groups = groups_within(ranges, limit, count)
        if not groups:
            return []
        average = max(1, file.metadata.num_rows // max(1, count))
        step = max(1, _ROWS_AT_A_TIME // average)
        return [(path, file, groups[at : at + step]) for at in range(0, len(groups), step)]

    @contextmanager
    def _named(self, path: str) -> Iterator[None]:
        """What goes wrong in here is about this file."""
        try:
            yield
        except (OSError, pa.ArrowInvalid) as error:
            raise CorruptStore(
                f"the file {self._location.resolve(path)} is lost or damaged: {error}",
                report=CorruptStore.repairable,
            ) from error

    def _read(self, piece: Piece, wanted: pa.Schema, limit: Limit | None) -> pa.Table | None:
        path, file, groups = piece
        with self._named(path):
            return self._rows(file, groups, wanted, limit)

    def _rows(
        self,
        file: parquet.ParquetFile,
        groups: list[int],
        wanted: pa.Schema,
        limit: Limit | None,
    ) -> pa.Table | None:
        if limit is None:
            return self._decode(file, groups, wanted.names).cast(wanted)
        limited = pa.schema([self._schema.field(name) for name in limit.columns])
        keys = self._decode(file, groups, limit.columns).cast(limited)
        hits = pc.indices_nonzero(limit.mask(keys)).to_numpy().astype(np.int64)
        if not len(hits):
            return None
        rest = [name for name in wanted.names if name not in limit.columns]
        found = keys.take(pa.array(hits))
        if rest:
            touched, places = _touched(file, groups, hits)
            others = self._decode(file, touched, rest)
            for name in rest:
                found = found.append_column(name, others[name].take(places))
        return found.select(wanted.names).cast(wanted)

    def _decode(
        self, file: parquet.ParquetFile, groups: list[int], columns: Sequence[str]
    ) -> pa.Table:
        has = set(file.schema_arrow.names)
        if has.issuperset(columns):
            # Parquet takes `a` for all paths below it too, those of a column `a.b` among them
            found = file.read_row_groups(groups, columns=list(columns), use_threads=False)
            return found.select(list(columns))
        count = sum(file.metadata.row_group(group).num_rows for group in groups)
        there = [name for name in columns if name in has]
        table = file.read_row_groups(groups, columns=there, use_threads=False) if there else None
        arrays = [
            table[name]
            if table is not None and name in has
            else pa.nulls(count, self._schema.field(name).type)
            for name in columns
        ]
        return pa.table(arrays, names=list(columns))

    def _file(self, path: str) -> parquet.ParquetFile:
        found = self._open.get(path)
        if found is None:
            stream = self._location.open_input(path)
            metadata = parquet.read_metadata(stream)
            found = parquet.ParquetFile(
                stream,
                metadata=metadata,
                read_dictionary=_repeated_text(metadata),
                pre_buffer=not self._location.is_local,
                coerce_int96_timestamp_unit="us",
                page_checksum_verification=True,
            )
            self._open[path] = found
            if len(self._open) > self._keep:
                self.forget([next(iter(self._open))])
        else:
            self._open.move_to_end(path)
        return found


def _repeated_text(metadata: parquet.FileMetaData) -> list[str]:
    """Columns of text that repeat few values: those are decoded once, and rows by their numbers."""
    if not metadata.num_row_groups:
        return []
    group = metadata.row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    return [
        chunk.path_in_schema
        for index, chunk in enumerate(chunks)
        if chunk.has_dictionary_page
        and chunk.physical_type == "BYTE_ARRAY"
        and metadata.schema.column(index).logical_type.type == "STRING"
        and metadata.schema.column(index).path == metadata.schema.column(index).name
        and chunk.total_uncompressed_size <= _REPEATED_BYTES * chunk.num_values
    ]


def _touched(
    file: parquet.ParquetFile, groups: list[int], hits: np.ndarray
) -> tuple[list[int], pa.Array]:
    """The row groups with hits, and where the hits are among them."""
    sizes = np.array([file.metadata.row_group(group).num_rows for group in groups])
    ends = np.cumsum(sizes)
    of_hit = np.searchsorted(ends, hits, side="right")
    touched = np.unique(of_hit)
    skips = sizes.copy()
    skips[touched] = 0
    skipped = np.cumsum(skips)
    return [groups[each] for each in touched], pa.array(hits - skipped[of_hit])


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="tideview-scan")
