"""`DeltaBatch`: the changes that a tick takes for one source.

    DeltaBatch.inserts([{"id": 1, "name": "a"}]) + DeltaBatch.deletes([(2, "b")])

A batch knows no schema until it is bound to its source; binding checks everything.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame

from ivm_core.api.binding import Binder, Part, Role
from ivm_core.api.row_values import shown
from ivm_core.model.errors import BatchError, UserError
from ivm_core.model.names import WEIGHT
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.bound_batch import BoundBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ivm_core.model.schema import Schema

Rows = Any  # rows, an Arrow table, a pandas or Spark DataFrame, anything with __arrow_c_stream__


@dataclass(frozen=True, eq=False, repr=False)
class DeltaBatch:
    """Changes to one source: rows with weights, and with a primary key upserts and delete_keys.

    Rows are dicts, tuples in the order of the source's columns, or Rows; instead of a list of them
    every maker takes an Arrow table, a pandas or Spark DataFrame. Batches add up with `+`.
    What doesn't fit the source is refused by `bind`, which `tick` calls, with a `BatchError`.
    """

    _parts: tuple[Part, ...] = ()

    @classmethod
    def of(cls, rows: Rows, weights: Sequence[int] | None = None) -> DeltaBatch:
        """Rows with these weights; else with those in their `_weight`; else +1 each."""
        content = _content(rows)
        given = None if weights is None else _listed(weights, "weights", "DeltaBatch.of")
        size = _size(content)
        if given is not None and size != len(given):
            raise BatchError(
                f"{len(given)} weights for {'a DataFrame' if size is None else f'{size} rows'}",
                "DeltaBatch.of",
                "give one weight for each row (a Spark DataFrame takes a `_weight` column)",
            )
        return cls((Part(Role.CHANGES, content, weights=given),))

    @classmethod
    def inserts(cls, rows: Rows) -> DeltaBatch:
        """Rows that come, each once."""
        return cls((Part(Role.CHANGES, _content(rows), sign=1),))

    @classmethod
    def deletes(cls, rows: Rows) -> DeltaBatch:
        """Rows that go, each once, given in full."""
        return cls((Part(Role.CHANGES, _content(rows), sign=-1),))

    @classmethod
    def edits(cls, pairs: Iterable[tuple[Any, Any]]) -> DeltaBatch:
        """Pairs of a row as it is and as it will be; anything but pairs is a `BatchError`."""
        rows: list[Any] = []
        for index, pair in enumerate(_listed(pairs, "pairs", "DeltaBatch.edits")):
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise BatchError(
                    "an edit is a pair of the old and the new row",
                    "DeltaBatch.edits",
                    "give [(old, new), …]",
                    got=shown(pair),
                    row=index,
                )
            rows.extend(pair)
        return cls((Part(Role.CHANGES, rows, weights=[-1, 1] * (len(rows) // 2)),))

    @classmethod
    def upserts(cls, rows: Rows) -> DeltaBatch:
        """Rows that replace the row of the same primary key, or come new where there is none."""
        return cls((Part(Role.UPSERTS, _content(rows)),))

    @classmethod
    def delete_keys(cls, keys: Rows) -> DeltaBatch:
        """Primary keys whose rows go: values, tuples or dicts of the key columns, or a frame."""
        return cls((Part(Role.DELETE_KEYS, _content(keys)),))

    @classmethod
    def from_any(cls, changes: Rows) -> DeltaBatch:
        """A batch as it is, or what `of` takes; anything else is a `BatchError`."""
        return changes if isinstance(changes, DeltaBatch) else cls.of(changes)

    def __add__(self, other: DeltaBatch) -> DeltaBatch:
        if not isinstance(other, DeltaBatch):
            return NotImplemented
        return DeltaBatch(self._parts + other._parts)

    def __repr__(self) -> str:
        parts = ", ".join(f"{part.role.value}: {_size_text(part.content)}" for part in self._parts)
        return f"DeltaBatch({parts})"

    def to_arrow(self) -> pa.Table:
        """The changes with `_weight`, where all of them came as Arrow tables; else `UserError`."""
        tables = [part.content for part in self._parts if part.role is Role.CHANGES]
        if len(tables) < len(self._parts) or not all(isinstance(t, pa.Table) for t in tables):
            raise UserError(
                "this batch has no types of its own yet",
                "DeltaBatch.to_arrow",
                "make it from Arrow tables, or read it back with flow.changes after the tick",
            )
        weighed = [
            table
            if part.has_own_weights and WEIGHT in table.column_names
            else table.append_column(
                WEIGHT, pa.array(part.weights or [part.sign or 1] * table.num_rows, pa.int64())
            )
            for part, table in zip(self._parts, tables, strict=True)
        ]
        return pa.concat_tables(weighed) if weighed else pa.table({WEIGHT: pa.array([], "int64")})

    def bind(
        self, source: str, schema: Schema, primary_key: Sequence[str] | None = None
    ) -> BoundBatch:
        """Check every value against the source's columns; `BatchError` with what doesn't fit.

        `upserts` and `delete_keys` need a primary key, and take no key twice together
        (`ConstraintViolation`). Rows of weight 0 are dropped.
        """
        keys = tuple(schema.field(name).name for name in primary_key or ())
        binder = Binder(source, schema, keys)
        grouped: dict[Role, list[pa.Table]] = {role: [] for role in Role}
        frames: list[DataFrame] = []
        for part in self._parts:
            if part.role is Role.CHANGES and isinstance(part.content, DataFrame):
                frames.append(binder.frame(part))
            else:
                grouped[part.role].append(binder.table(part))
        frame = frames[0] if frames else None
        for more in frames[1:]:
            frame = more if frame is None else frame.unionAll(more)
        upserts, deletes = grouped[Role.UPSERTS], grouped[Role.DELETE_KEYS]
        if upserts or deletes:
            binder.refuse_repeated_keys([*upserts, *deletes])
        empty = arrow_schema(schema, weight=True).empty_table()
        return BoundBatch(
            source,
            schema,
            keys,
            pa.concat_tables([empty, *grouped[Role.CHANGES]]),
            pa.concat_tables(upserts) if upserts else None,
            pa.concat_tables(deletes) if deletes else None,
            frame,
        )


def _content(rows: Rows) -> Any:
    """One of the few forms that parts hold; anything else is a `BatchError`."""
    pandas = sys.modules.get("pandas")
    if isinstance(rows, DataFrame | pa.Table) or (pandas and isinstance(rows, pandas.DataFrame)):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.table(rows)
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise BatchError(
            "a batch can't be made from this",
            fix="give a list of rows, an Arrow table, a pandas or Spark DataFrame, or a DeltaBatch",
            got=shown(rows),
        )
    return list(rows)


def _listed(values: Iterable[Any], what: str, where: str) -> list[Any]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise BatchError(f"{what} are a list, not {shown(values)}", where, "give one for each row")
    return list(values)


def _size(content: Any) -> int | None:
    return None if isinstance(content, DataFrame) else len(content)


def _size_text(content: Any) -> str:
    size = _size(content)
    return "a Spark DataFrame" if size is None else f"{size} rows"
