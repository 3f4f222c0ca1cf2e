"""A source as plain Python: rows and how often they are there."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivm_core import DeltaBatch
from ivm_core.operators.arrow_types import arrow_schema
from tests.sql.bags import Row, identity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.sql.case_format import Change, SourceSpec


class SourceModel:
    """What a source holds by now, kept by the test itself."""

    def __init__(self, spec: SourceSpec) -> None:
        self.spec = spec
        self.schema = spec.schema
        self.rows: dict[Row, tuple[Row, int]] = {}

    def clone(self) -> SourceModel:
        return copy.copy(self)._with(dict(self.rows))

    def _with(self, rows: dict[Row, tuple[Row, int]]) -> SourceModel:
        self.rows = rows
        return self

    def apply(self, change: Change) -> None:
        sign = -1 if change.verb == "DELETE FROM" else 1
        for row, weight in zip(change.rows, change.weights, strict=True):
            if change.verb in ("UPSERT INTO", "DELETE KEYS FROM"):
                key = row if change.verb == "DELETE KEYS FROM" else self._key(row)
                for held, count in self.of_key(key):
                    self._add(held, -count)
            if change.verb != "DELETE KEYS FROM":
                self._add(row, sign * weight)

    def check(self) -> None:
        negative = [row for row, count in self.rows.values() if count < 0]
        if negative:
            raise ValueError(f"{self.spec.name} holds less than nothing of {negative}")

    def of_key(self, key: Sequence[Any]) -> list[tuple[Row, int]]:
        wanted = identity(key)
        return [held for held in self.rows.values() if identity(self._key(held[0])) == wanted]

    def _key(self, row: Row) -> Row:
        names = [name.casefold() for name in self.schema.names]
        return tuple(row[names.index(key.casefold())] for key in self.spec.primary_key)

    def _add(self, row: Row, weight: int) -> None:
        key = identity(row)
        count = self.rows.get(key, (row, 0))[1] + weight
        if count:
            self.rows[key] = (row, count)
        else:
            self.rows.pop(key, None)

    def all_rows(self) -> Iterator[Row]:
        for row, count in self.rows.values():
            yield from [row] * count

    def table(self) -> pa.Table:
        schema = arrow_schema(self.schema)
        rows = list(self.all_rows())
        columns = [pa.array([row[i] for row in rows], each.type) for i, each in enumerate(schema)]
        return pa.table(columns, schema=schema)


def batch(changes: Sequence[Change]) -> DeltaBatch:
    """The changes of one source in one tick, as a user would write them."""
    whole = DeltaBatch.of([])
    for change in changes:
        if change.verb == "UPSERT INTO":
            whole += DeltaBatch.upserts(change.rows)
        elif change.verb == "DELETE KEYS FROM":
            whole += DeltaBatch.delete_keys(change.rows)
        else:
            sign = -1 if change.verb == "DELETE FROM" else 1
            whole += DeltaBatch.of(change.rows, weights=[sign * w for w in change.weights])
    return whole
