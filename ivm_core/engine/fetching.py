"""Fetching what a change can reach, hop by hop, onto the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from ivm_core.compile.reach import KEYS
from ivm_core.model.names import WEIGHT
from ivm_core.operators.sieve import passing
from ivm_core.store.limit import ColumnLimit, Limit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ivm_core.compile.reach import Hop, Origin, Reach

FETCHED_ROWS = 200_000
"""Beyond this many fetched rows the high gear is the cheaper one."""
LIMIT_VALUES = 50_000
"""Beyond this many values a limit costs more than it saves."""


class TooLarge(Exception):
    """The low gear would have to fetch too much; says what."""


class Fetchable(Protocol):
    """Relations that can be read by key."""

    def row_count(self, name: str, at: int, /) -> int:
        """Stored rows at a tick, as an upper bound."""

    def old(
        self, name: str, at: int, columns: Sequence[str] | None, limit: Limit | None, /
    ) -> pa.Table | None:
        """Rows at a tick, on the driver; None where only Spark can read them."""


class Fetcher:
    """Rows of relations before the tick, limited to what the hops reach."""

    def __init__(
        self,
        reach: Reach,
        relations: Fetchable,
        upto: int,
        change_of: Callable[[str], pa.Table | None],
        columns: Mapping[str, tuple[str, ...]],
        keys: pa.Table | None = None,
        thin: Callable[[str, pa.Table], pa.Table] | None = None,
    ) -> None:
        """`change_of` gives a relation's delta, `columns` what the statement reads of each.

        `thin` takes rows that can have no partners out of a relation's delta.
        """
        self._reach = reach
        self._relations = relations
        self._upto = upto
        self._change_of = change_of
        self._columns = columns
        self._keys = keys
        self._thin = thin
        self._limits: dict[str, Limit] = {}
        self._whole: set[str] = set()
        """Relations that have fewer rows than there are values to limit them."""
        self._fetched: dict[str, pa.Table] = {}
        for hop in reach.hops:
            self._limit(hop)

    def rows(self, relation: str) -> pa.Table:
        """What the statement needs of a relation; TooLarge where that is a lot."""
        found = self._fetched.get(relation)
        if found is None:
            found = self._fetch(relation)
            self._fetched[relation] = found
        return found

    def values(self, origins: tuple[Origin, ...]) -> pa.ChunkedArray:
        """What is found in the changes, and where it is asked for in the rows, of the origins."""
        arrays = []
        for origin in origins:
            if origin.relation == KEYS:
                if self._keys is not None:
                    arrays.append(self._keys.column(origin.field))
                continue
            change = self._change_of(origin.relation)
            if change is not None and self._thin is not None:
                change = self._thin(origin.relation, change)
            if change is not None:
                arrays.append(passing(change, origin.sieves).column(origin.field))
            if origin.with_rows:
                rows = self.rows(origin.relation)
                arrays.append(passing(rows, origin.sieves).column(origin.field))
        wanted = arrays[0].type if arrays else pa.int64()
        if pa.types.is_integer(wanted):
            wanted = pa.int64()
        chunks = [chunk for array in arrays for chunk in array.cast(wanted).chunks]
        return pa.chunked_array([pa.chunked_array(chunks, wanted).unique()])

    def _limit(self, hop: Hop) -> None:
        if hop.relation in self._reach.full or hop.relation in self._whole:
            return
        found = [(each, self.values(each.origins)) for each in hop.limits]
        few = [(each, values) for each, values in found if len(values) <= LIMIT_VALUES]
        if not few and self._relations.row_count(hop.relation, self._upto) <= LIMIT_VALUES:
            self._whole.add(hop.relation)
            self._fetched.pop(hop.relation, None)
            return
        if not few:
            raise TooLarge(f"{len(found[0][1])} keys reach {hop.relation}")
        limit = Limit.all_of(
            ColumnLimit(each.field, values, each.null_safe and values.null_count > 0)
            for each, values in few
        )
        known = self._limits.get(hop.relation)
        self._limits[hop.relation] = limit if known is None else known | limit
        self._fetched.pop(hop.relation, None)

    def _fetch(self, relation: str) -> pa.Table:
        limit = self._limits.get(relation)
        if relation in self._reach.full or relation in self._whole or limit is None:
            limit = None
            count = self._relations.row_count(relation, self._upto)
            if count > FETCHED_ROWS:
                why = self._reach.full.get(relation, "nothing limits it")
                raise TooLarge(f"{relation} is read in full ({why})")
        table = self._relations.old(relation, self._upto, self._columns[relation], limit)
        if table is None:
            raise TooLarge(f"only Spark can read {relation}")
        if table.num_rows > FETCHED_ROWS:
            raise TooLarge(f"the change reaches {table.num_rows} rows of {relation}")
        return table


def wanted_columns(fields: Mapping[str, set[str]]) -> dict[str, tuple[str, ...]]:
    """Column lists by relation, in a stable order and without the weight."""
    return {name: tuple(sorted(columns - {WEIGHT})) for name, columns in fields.items()}
