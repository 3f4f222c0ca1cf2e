"""A batch of changes that fits its source: what `DeltaBatch.bind` gives to the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from ivm_core.model.schema import Schema


@dataclass(frozen=True)
class BoundBatch:
    """Changes with exactly the source's columns and types.

    `table` has the columns and `_weight`, not netted, without zero weights. `frame` has the same
    shape, lazily, where the batch came as a Spark DataFrame; evaluating it raises for NULLs that
    may not be there (`frame_checks.refusal_of` reads that back). `upserts` has whole rows,
    `delete_keys` the key columns in the order of the primary key; no key comes twice in the two
    together.
    """

    source: str
    schema: Schema
    primary_key: tuple[str, ...]
    table: pa.Table
    upserts: pa.Table | None = None
    delete_keys: pa.Table | None = None
    frame: DataFrame | None = None
