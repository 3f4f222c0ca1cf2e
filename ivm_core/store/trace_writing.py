"""How a trace's Parquet files are written, and what a Delta reader is told about them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from ivm_core.model.errors import CorruptStore, InternalError
from ivm_core.model.names import TICK
from ivm_core.store.delta_actions import DataFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ivm_core.store.location import Location

ROW_GROUP_ROWS = 4096
# A lookup by key opens many small pieces: Snappy has two thirds of the work that ZSTD has for each.
# LZ4 has as little, but Spark can't filter by its dictionaries.
SPARK_WRITE_OPTIONS = {"compression": "snappy", "parquet.block.row.count.limit": "2048"}
_SHORT_TEXT = 32
_REPEATING = ("_weight", TICK)


def nullable(schema: pa.Schema) -> pa.Schema:
    """The schema with every column and nested field nullable, without metadata."""
    return pa.schema([pa.field(each.name, _nullable_type(each.type)) for each in schema])


def _nullable_type(of: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(of):
        return pa.struct([pa.field(each.name, _nullable_type(each.type)) for each in of])
    if pa.types.is_list(of):
        return pa.list_(_nullable_type(of.value_type))
    return of


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table's columns in the schema's order and types; `InternalError` if they don't fit."""
    if set(table.column_names) != set(schema.names) or len(table.column_names) != len(schema.names):
        raise InternalError(f"columns {table.column_names} for a trace of {schema.names}")
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InternalError(f"rows that don't fit their trace: {error}") from error


def with_tick(table: pa.Table, tick: int) -> pa.Table:
    """The table with a last column that says the tick."""
    return table.append_column(
        pa.field(TICK, pa.int64()), pa.repeat(pa.scalar(tick, pa.int64()), table.num_rows)
    )


def sort_rows(table: pa.Table, cluster_by: Sequence[str]) -> pa.Table:
    """The rows in the order that lets row groups be skipped; Arrow sorts no nested values."""
    names = [name for name in cluster_by if not pa.types.is_nested(table.schema.field(name).type)]
    if not names or table.num_rows <= 1:
        return table
    return table.sort_by([(name, "ascending") for name in names])


def write_file(
    location: Location, path: str, table: pa.Table, cluster_by: Sequence[str] = ()
) -> DataFile:
    """Write the rows as one Parquet file and say what is in it."""
    if table.num_rows > ROW_GROUP_ROWS:
        table = sort_rows(table, cluster_by)
    plain = {name for name in cluster_by if _is_fixed_width(table.schema.field(name).type)}
    with location.writing(path) as stream:
        parquet.write_table(
            table,
            stream,
            row_group_size=ROW_GROUP_ROWS,
            compression={
                leaf: "none" if leaf in plain else "snappy" for leaf in _leaves(table.schema)
            },
            use_dictionary=[leaf for leaf in _leaves(table.schema) if _repeats(leaf, table)],
            store_schema=False,
            write_page_checksum=True,
        )
    return DataFile(path, location.size(path), table.num_rows, _stats(table))


def read_footer(
    location: Location, path: str, schema: pa.Schema, *, may_lack: bool = False
) -> DataFile:
    """What is in a file; one with other columns is an `InternalError`.

    A file that is older than some of the columns `may_lack` them.
    """
    try:
        with location.open_input(path) as stream:
            file = parquet.ParquetFile(stream)
            metadata, names = file.metadata, file.schema_arrow.names
    except (OSError, pa.ArrowInvalid) as error:
        raise CorruptStore(f"{location.resolve(path)} can't be read: {error}") from error
    if set(names) - set(schema.names) or (set(names) != set(schema.names) and not may_lack):
        raise InternalError(f"a file has columns {sorted(names)} for a trace of {schema.names}")
    stats = json.dumps({"numRecords": metadata.num_rows})
    return DataFile(path, location.size(path), metadata.num_rows, stats)


def _leaves(schema: pa.Schema) -> list[str]:
    """Dotted paths of the Parquet columns."""
    return [leaf for each in schema for leaf in _leaves_of(each.name, each.type)]


def _leaves_of(path: str, of: pa.DataType) -> list[str]:
    if pa.types.is_struct(of):
        return [leaf for each in of for leaf in _leaves_of(f"{path}.{each.name}", each.type)]
    if pa.types.is_list(of):
        return _leaves_of(f"{path}.list.element", of.value_type)
    return [path]


def _repeats(leaf: str, table: pa.Table) -> bool:
    """Whether a dictionary is likely to pay: for text, and for our own columns."""
    if leaf in _REPEATING:
        return True
    if leaf not in table.schema.names:
        return False
    of = table.schema.field(leaf).type
    return bool(pa.types.is_string(of) or pa.types.is_binary(of))


def _is_fixed_width(of: pa.DataType) -> bool:
    return bool(pa.types.is_integer(of) or pa.types.is_date32(of) or pa.types.is_timestamp(of))


def _stats(table: pa.Table) -> str:
    """Delta's statistics: row count, and the range of columns that JSON carries exactly."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    for field in table.schema:
        of = field.type
        is_text = pa.types.is_string(of)
        if not (is_text or pa.types.is_integer(of) or pa.types.is_date32(of)):
            continue
        try:
            ends = pc.min_max(table[field.name]).as_py()
        except (OverflowError, ValueError):  # a date that Spark has and Python has not
            continue
        least, most = ends["min"], ends["max"]
        if least is None or (is_text and max(len(least), len(most)) > _SHORT_TEXT):
            continue
        low[field.name], high[field.name] = (
            (least.isoformat(), most.isoformat()) if pa.types.is_date32(of) else (least, most)
        )
    nulls = {
        each.name: table[each.name].null_count
        for each in table.schema
        if not pa.types.is_nested(each.type)
    }
    return json.dumps(
        {"numRecords": table.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}
    )
