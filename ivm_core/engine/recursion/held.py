"""Rows that a component's iterations have at hand: fetched by key, each once a tick.

An iteration asks for the rows that the newest rows reach. Most of what it asks for it has asked for
before, so what was fetched for a value of a column is kept, and only new values are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ivm_core.engine.fetching import FETCHED_ROWS, TooLarge
from ivm_core.model.names import WEIGHT
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.netting import stacked
from ivm_core.store.limit import Limit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ivm_core.engine.recursion.work import Work


@dataclass
class _Region:
    """All rows whose column has one of the values."""

    values: pa.Array
    has_null: bool
    table: pa.Table


class Regions:
    """What was read of relations as they were before the tick."""

    def __init__(self, work: Work) -> None:
        """Nothing is read yet."""
        self._work = work
        self._upto = work.first.upto
        self._regions: dict[tuple[str, str], _Region] = {}
        self._whole: dict[str, pa.Table] = {}

    def rows(self, name: str, limit: Limit | None) -> pa.Table:
        """At least the rows within the limit, with weights; none of them twice."""
        if name not in self._work.fields:
            # what changed is at hand, and nowhere else
            read = self._work.catalog[name].select(self._work.fields[name.partition("?")[0]])
            return arrow_schema(read, weight=True).empty_table()
        columns = arrow_schema(self._work.schema(name).select(self._work.fields[name]))
        fitted = None if limit is None else limit.fitted(columns)
        if name in self._whole or fitted is None:
            if name not in self._whole:
                self._whole[name] = self._read(name, None)
            whole = self._whole[name]
            return whole if fitted is None else whole.filter(fitted.mask(whole))
        column = self._column(name, fitted)
        if column is None:
            return self._read(name, fitted)
        table = self._region(name, column, fitted).table
        return table.filter(fitted.mask(table))

    def row_count(self, name: str) -> int:
        """Rows that a full read would bring."""
        if name not in self._work.fields:
            return 0
        return self._work.relations.row_count(name, self._upto)

    def _column(self, name: str, limit: Limit) -> str | None:
        """The column by which the fewest new values have to be read; None where none limits all."""
        common = set(limit.columns)
        for conjunction in limit.any_of:
            common &= {each.column for each in conjunction}
        missing = {column: len(self._missing(name, column, limit)[0]) for column in sorted(common)}
        return min(missing, key=missing.__getitem__, default=None)

    def _missing(self, name: str, column: str, limit: Limit) -> tuple[pa.Array, bool]:
        wanted = [e for part in limit.any_of for e in part if e.column == column]
        values = pa.chunked_array([each.distinct for each in wanted]).unique()
        with_null = any(each.with_null for each in wanted)
        known = self._regions.get((name, column))
        if known is None:
            return values, with_null
        new = values.filter(pc.invert(pc.is_in(values, value_set=known.values)))
        return new, with_null and not known.has_null

    def _region(self, name: str, column: str, limit: Limit) -> _Region:
        values, with_null = self._missing(name, column, limit)
        known = self._regions.get((name, column))
        if known is not None and not len(values) and not with_null:
            return known
        found = self._read(name, Limit.of(column, values, with_null))
        if known is None:
            region = _Region(values, with_null, found)
        else:
            every = pa.chunked_array([known.values, values]).combine_chunks()
            table = stacked(known.table, found).combine_chunks()
            region = _Region(every, known.has_null or with_null, table)
        if region.table.num_rows > FETCHED_ROWS:
            raise TooLarge(f"the change reaches {region.table.num_rows} rows of {name}")
        self._regions[name, column] = region
        return region

    def _read(self, name: str, limit: Limit | None) -> pa.Table:
        columns = self._work.fields[name]
        found = self._work.relations.old(name, self._upto, columns, limit)
        if found is None:
            raise TooLarge(f"only Spark can read {name}")
        wanted = self._work.schema(name).select(columns)
        return found.select([*columns, WEIGHT]).cast(arrow_schema(wanted, weight=True))


class State:
    """Relations before the tick, with changes on top of some."""

    def __init__(self, regions: Regions, changes: Mapping[str, pa.Table] | None = None) -> None:
        """`changes` have weights; whoever owns the mapping may go on changing it."""
        self._regions = regions
        self._changes = {} if changes is None else changes

    def row_count(self, name: str, _at: int) -> int:
        """Rows that a full read would bring, as an upper bound."""
        change = self._changes.get(name)
        return self._regions.row_count(name) + (0 if change is None else change.num_rows)

    def old(
        self, name: str, _at: int, columns: Sequence[str] | None, limit: Limit | None
    ) -> pa.Table:
        """At least the rows within the limit; what came and what went stand beside each other."""
        found = self._regions.rows(name, limit)
        change = self._changes.get(name)
        if change is not None and change.num_rows:
            change = change.select(found.column_names)
            fitted = None if limit is None else limit.fitted(change.schema)
            if fitted is not None:
                change = change.filter(fitted.mask(change))
            found = stacked(found, change.cast(found.schema))
        return found if columns is None else found.select([*columns, WEIGHT])
