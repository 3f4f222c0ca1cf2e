"""What a tick can reach: which rows of which relations the terms of a delta can touch.

Each changed input of a join reaches the others by equality, hop by hop: the values in ΔA limit B
by `a.x = b.y`, the rows of B that come back limit C, and so on. Where several equalities lead from
what is at hand to B, all of them limit it; rows that a simple filter takes away reach nothing
(`operators/sieve.py`). A hop names columns of relations only, so the engine can run it on traces
without Spark. Limits are supersets; the statement itself joins exactly. What no equality reaches is
read in full, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from ivm_core.compile.totality import column_type
from ivm_core.model.types import INTEGER_BITS
from ivm_core.operators.sieve import sieved
from ivm_core.operators.sql import equality_sides, is_null_safe, renamed
from ivm_core.plan.nodes import (
    CLOCKS,
    Filter,
    Generate,
    Join,
    Negated,
    Node,
    Project,
    Repeated,
    Scan,
    UnionAll,
)

if TYPE_CHECKING:
    from ivm_core.model.schema import Schema
    from ivm_core.model.types import DataType
    from ivm_core.plan.scalar import Scalar

KEYS = "@keys"
"""The relation of affected keys, whose columns are those of the stage's body."""
UNKNOWN = "@unknown"
"""Stands in a filter for what is not a column of the relation."""
EXACT = frozenset({"STRING", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BINARY", "BOOLEAN", "DECIMAL"})


@dataclass(frozen=True)
class Origin:
    """Where the values of a hop come from: a column of a relation's delta, and of its rows.

    Only rows that pass the `sieves`, predicates over the relation's columns, have to count.
    """

    relation: str
    field: str
    with_rows: bool
    sieves: tuple[Scalar, ...] = ()

    def __str__(self) -> str:
        if self.relation == KEYS:
            return "the affected keys"
        where = " AND ".join(each.sql for each in self.sieves)
        return f"{self.relation}.{self.field}" + (f" where {where}" if where else "")


@dataclass(frozen=True)
class FieldLimit:
    """`field` is among the values of the origins."""

    field: str
    origins: tuple[Origin, ...]
    null_safe: bool

    def __str__(self) -> str:
        return f"{self.field} to values of {', '.join(str(each) for each in self.origins)}"


@dataclass(frozen=True)
class Hop:
    """Limit `relation` to the rows that all of the limits let through."""

    relation: str
    limits: tuple[FieldLimit, ...]

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Where the values of all its limits come from."""
        return tuple(origin for limit in self.limits for origin in limit.origins)

    def __str__(self) -> str:
        return "limited by " + " and by ".join(str(limit) for limit in self.limits)


@dataclass
class Reach:
    """Hops in the order in which they can run, and relations that are read in full."""

    hops: list[Hop] = field(default_factory=list)
    full: dict[str, str] = field(default_factory=dict)
    keys: dict[str, tuple[Origin, ...]] = field(default_factory=dict)
    """Where the values of affected keys come from, for those that come from relations."""

    def add(self, hop: Hop) -> None:
        """Remember a hop; one that follows rows counts again, for they may be more by then."""
        if hop not in self.hops or any(origin.with_rows for origin in hop.origins):
            self.hops.append(hop)


@dataclass(frozen=True)
class _Values:
    """Values that are at hand when a limit is placed."""

    origins: tuple[Origin, ...]
    type: DataType
    null_safe: bool

    def costs_no_more_than(self, other: _Values) -> bool:
        """Whether no rows have to be fetched for it that the other doesn't need."""
        at_hand = {origin.relation for origin in other.origins if origin.with_rows}
        return all(each.relation in at_hand or not each.with_rows for each in self.origins)


_Limits = Mapping[str, _Values]
"""Values by the column that they limit; a row must be within all of them."""


class ReachFinder:
    """Finds what one stage reaches, for one set of changed relations."""

    def __init__(self, catalog: Mapping[str, Schema], dirty: frozenset[str]) -> None:
        """`catalog` has the schemas of all relations."""
        self._catalog = catalog
        self._dirty = dirty
        self.reach = Reach()

    def of_delta(self, node: Node) -> Reach:
        """What the delta of a stateless tree reads besides the changes themselves."""
        if isinstance(node, Join):
            for position, part in enumerate(node.parts):
                if not part.relations.isdisjoint(self._dirty):
                    self.of_delta(part)
                    self._spread(node, position, from_delta=True)
        else:
            for child in node.inputs:
                self.of_delta(child)
        return self.reach

    def of_parts(self, node: Node, partition: tuple[str, ...]) -> Reach:
        """What all rows of the parts that the delta has read, before the parts are known.

        A key's values are those of the change, and of the rows that the change was joined with.
        """
        self.of_delta(node)
        reached = {hop.relation for hop in self.reach.hops} | set(self.reach.full)
        limits: dict[str, _Values] = {}
        for key in partition:
            values = self._values(node, key, with_rows=False)
            if values is None or any(each.relation in CLOCKS for each in values.origins):
                continue
            origins = tuple(
                replace(each, with_rows=each.relation in reached) for each in values.origins
            )
            self.reach.keys[key] = origins
            limits[key] = _Values(origins, values.type, null_safe=True)
        if limits:
            self._limit(node, limits)
        else:
            self._full(node, _why_no_key(partition))
        return self.reach

    def of_keys(self, node: Node, keys: tuple[str, ...]) -> Reach:
        """What all rows of the affected keys read."""
        limits = {}
        for key in keys:
            found = column_type(node, key, self._catalog)
            if found is not None and _is_limitable(found) and _scans(node, key) is not None:
                origin = Origin(KEYS, key, with_rows=False)
                limits[key] = _Values((origin,), found, null_safe=True)
        if limits:
            self._limit(node, limits)
        else:
            self._full(node, _why_no_key(keys))
        return self.reach

    def _spread(
        self, join: Join, start: int, limits: _Limits | None = None, *, from_delta: bool
    ) -> None:
        """Reach every other part of a join from one, by equalities; `limits` hold besides."""
        reached = {start}
        while len(reached) < len(join.parts):
            step = self._step(join, reached, start if from_delta else None)
            if step is None:
                break
            position, found = step
            self._limit(join.parts[position], _of_part(join, position, limits or {}) | found)
            reached.add(position)
        for position, part in enumerate(join.parts):
            if position not in reached:
                given = _of_part(join, position, limits or {})
                if given:
                    self._limit(part, given)
                else:
                    self._full(part, "no equality of plain columns connects it with the change")

    def _step(
        self, join: Join, reached: set[int], changed: int | None
    ) -> tuple[int, dict[str, _Values]] | None:
        """The part that is reached next, and what limits it.

        The first equality says which. Others that lead there limit it too, unless they need rows
        that the first one doesn't: those may have to be fetched again, when they are more.
        """
        position, first = -1, None
        found: dict[str, _Values] = {}
        for condition in join.conditions:
            sides = equality_sides(condition)
            if sides is None or not all(side.is_column for side in sides):
                continue
            for near, far in (sides, sides[::-1]):
                origin, target = join.part_of(near.column), join.part_of(far.column)
                if origin not in reached or target in reached or far.column in found:
                    continue
                if first is not None and target != position:
                    continue
                with_rows = origin != changed or _has_join(join.parts[origin])
                values = self._values(join, near.column, with_rows=with_rows)
                if values is None or not self._accepts(join.parts[target], far.column, values):
                    continue
                values = _Values(values.origins, values.type, is_null_safe(condition))
                if first is None:
                    position, first = target, values
                if values.costs_no_more_than(first):
                    found[far.column] = values
        return None if first is None else (position, found)

    def _values(self, node: Node, column: str, *, with_rows: bool) -> _Values | None:
        scans = _scans(node, column)
        found = column_type(node, column, self._catalog)
        if scans is None or found is None or not _is_limitable(found):
            return None
        origins = tuple(self._origin(*each, with_rows=with_rows) for each in scans)
        return _Values(origins, found, null_safe=False)

    def _origin(
        self, scan: Scan, column: str, filters: tuple[Scalar, ...], *, with_rows: bool
    ) -> Origin:
        schema = self._catalog.get(scan.relation)
        fields = dict(zip(scan.columns, scan.fields, strict=True))
        sieves = {}
        for each in filters:
            sieve = sieved(renamed(each, fields), partial(type_in, schema))
            if sieve is not None:
                sieves[sieve.sql] = sieve
        return Origin(scan.relation, fields[column], with_rows, tuple(sieves.values()))

    def _accepts(self, node: Node, column: str, values: _Values) -> bool:
        found = column_type(node, column, self._catalog)
        return is_comparable(found, values.type)

    def _limit(self, node: Node, limits: _Limits) -> None:
        if isinstance(node, Scan):
            fields = tuple(
                FieldLimit(node.field_of(column), values.origins, values.null_safe)
                for column, values in limits.items()
            )
            self.reach.add(Hop(node.relation, fields))
        elif isinstance(node, Filter | Negated | Repeated):
            self._limit(node.input, limits)
        elif isinstance(node, Generate | Project):
            made = node.names if isinstance(node, Generate) else ()
            below = {
                source: values
                for column, values in limits.items()
                if (source := _source(node, column)) is not None
            }
            if below:
                self._limit(node.input, below)
            else:
                column = next(iter(limits))
                how = "generated" if column in made else "computed"
                self._full(node, f"{column} is {how}")
        elif isinstance(node, UnionAll):
            positions = {node.columns.index(column): values for column, values in limits.items()}
            for branch in node.branches:
                self._limit(branch, {branch.columns[at]: each for at, each in positions.items()})
        elif isinstance(node, Join):
            owner = node.part_of(next(iter(limits)))
            self._limit(node.parts[owner], _of_part(node, owner, limits))
            self._spread(node, owner, limits, from_delta=False)

    def _full(self, node: Node, reason: str) -> None:
        for relation in node.relations - set(CLOCKS):
            self.reach.full.setdefault(relation, reason)


def _of_part(join: Join, position: int, limits: _Limits) -> dict[str, _Values]:
    """The limits on columns of one part."""
    return {column: values for column, values in limits.items() if join.part_of(column) == position}


def _source(node: Generate | Project, column: str) -> str | None:
    """The input's column that a column is; None where it is made here."""
    if isinstance(node, Project):
        return node.source_of(column)
    return None if column in node.names else column


_Filtered = tuple[Scan, str, tuple["Scalar", ...]]
"""A scan, one of its columns, and predicates that its rows must pass, as far as it decides them."""


def _scans(node: Node, column: str, filters: tuple[Scalar, ...] = ()) -> list[_Filtered] | None:
    """The scans that a column comes from unchanged, filtered; None when it is computed."""
    if isinstance(node, Scan):
        return [(node, column, _within(filters, {name: name for name in node.columns}))]
    if isinstance(node, Filter):
        return _scans(node.input, column, (*filters, node.predicate))
    if isinstance(node, Negated | Repeated):
        return _scans(node.input, column, filters)
    if isinstance(node, Generate | Project):
        source = _source(node, column)
        if source is None:
            return None
        sources = {name: known for name in node.columns if (known := _source(node, name))}
        return _scans(node.input, source, _within(filters, sources))
    if isinstance(node, Join):
        part = node.parts[node.part_of(column)]
        theirs = {name: name for name in part.columns}
        return _scans(part, column, _within((*filters, *node.conditions), theirs))
    if isinstance(node, UnionAll):
        position = node.columns.index(column)
        found: list[_Filtered] = []
        for branch in node.branches:
            below = dict(zip(node.columns, branch.columns, strict=True))
            each = _scans(branch, branch.columns[position], _within(filters, below))
            if each is None:
                return None
            found += each
        return found
    return None


def _within(filters: tuple[Scalar, ...], names: Mapping[str, str]) -> tuple[Scalar, ...]:
    """The filters over the columns below; a column that isn't there is one that nothing knows."""
    return tuple(
        renamed(each, {name: names.get(name, UNKNOWN) for name in each.columns})
        for each in filters
        if not each.columns.isdisjoint(names)
    )


def type_in(schema: Schema | None, name: str) -> DataType | None:
    """The type of a relation's field, where there is such a one."""
    return None if schema is None or name == UNKNOWN else schema.field(name).type


def _why_no_key(keys: tuple[str, ...]) -> str:
    return "no key column comes unchanged from a relation" if keys else "there is one group"


def _has_join(node: Node) -> bool:
    return any(isinstance(each, Join) for each in node.walk())


def _is_limitable(data_type: DataType) -> bool:
    return data_type.kind in INTEGER_BITS or data_type.kind in EXACT


def is_comparable(one: DataType | None, other: DataType | None) -> bool:
    """Whether values of both types are equal on the driver where they are in Spark."""
    if one is None or other is None:
        return False
    if one.kind in INTEGER_BITS and other.kind in INTEGER_BITS:
        return True
    return one == other and _is_limitable(one)
