"""Which rows of a join's inputs can have partners at all, by the equalities between the inputs.

    ΔA ⋈ B   needs of ΔA only the rows whose key some row of B or ΔB has; the same of B and ΔB

Every term of a delta, and every product of all rows, pairs rows of all inputs. A row that no row of
another input equals where a condition asks for it, or that a filter takes away, is in none of them.
What can raise is not kept from a row: a filter, or one side of a condition, that is not total.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

from ivm_core.compile.reach import is_comparable, type_in
from ivm_core.compile.totality import column_type, is_total
from ivm_core.operators.sieve import sieved
from ivm_core.operators.sql import equality_sides, renamed
from ivm_core.plan.nodes import CLOCKS, Filter, Join, Node, Project, Scan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ivm_core.model.schema import Schema
    from ivm_core.model.types import DataType
    from ivm_core.plan.scalar import Scalar


@dataclass(frozen=True)
class Use:
    """One place where a relation is an input of a join, and what its rows must pass there."""

    relation: str
    sieves: tuple[Scalar, ...]
    may_lose_rows: bool
    """Whether rows without partners can be left out: nothing that could raise looks at them."""


@dataclass(frozen=True)
class Link:
    """`field` of one use equals `other_field` of another."""

    use: int
    field: str
    other_use: int
    other_field: str


@dataclass(frozen=True)
class Partners:
    """The uses of a body's relations in joins, and the equalities that link them."""

    uses: tuple[Use, ...]
    links: tuple[Link, ...]
    through: frozenset[int]
    """Uses that have a row in every row of the body."""
    elsewhere: frozenset[str]
    """Relations that are read in other places too, where all their rows may be needed."""

    def only_use(self, relation: str) -> int | None:
        """The one place where a relation is read; None for none or several."""
        found = [at for at, use in enumerate(self.uses) if use.relation == relation]
        return found[0] if len(found) == 1 and relation not in self.elsewhere else None

    def links_of(self, use: int) -> Iterator[tuple[str, str, str]]:
        """Fields of a use, each with a relation and a field of it that must equal it."""
        for link in self.links:
            if link.use == use:
                yield link.field, self.uses[link.other_use].relation, link.other_field
            elif link.other_use == use:
                yield link.other_field, self.uses[link.use].relation, link.field

    @property
    def relations(self) -> frozenset[str]:
        """Relations that can lose rows."""
        lasting = {use.relation for use in self.uses if not use.may_lose_rows}
        return frozenset(use.relation for use in self.uses) - lasting - self.elsewhere


def partners_of(body: Node, catalog: Mapping[str, Schema]) -> Partners:
    """The partners within all joins of a stage's body."""
    uses: list[Use] = []
    links: list[Link] = []
    through: set[int] = set()
    root = body
    while isinstance(root, Filter | Project):
        root = root.input
    for join, above in _joins(body, ()):
        known: dict[int, int] = {}
        for at in range(len(join.parts)):
            found = _input_of(join, at, above, catalog)
            if found is not None:
                known[at] = len(uses)
                uses.append(found)
        if join is root:
            through.update(known.values())
        links += _links(join, known, catalog)
    seen = [use.relation for use in uses]
    scanned = list(_scanned(body))
    elsewhere = frozenset(name for name in seen if scanned.count(name) > seen.count(name))
    return Partners(tuple(uses), tuple(links), frozenset(through), elsewhere)


def _scanned(node: Node) -> Iterator[str]:
    """The relations that are read, as often as they are: one node may stand in several places."""
    if isinstance(node, Scan):
        yield node.relation
    for child in node.inputs:
        yield from _scanned(child)


def _joins(
    node: Node, above: tuple[frozenset[str], ...]
) -> Iterator[tuple[Join, tuple[frozenset[str], ...]]]:
    """Joins, each with the columns of every predicate that is asked right above it."""
    if isinstance(node, Join):
        yield node, above
    if isinstance(node, Filter):
        above = (*above, node.predicate.columns)
    elif isinstance(node, Project):
        sources = {name: scalar.columns for name, scalar in node.outputs}
        above = tuple(frozenset().union(*(sources[name] for name in each)) for each in above)
    else:
        above = ()
    for child in node.inputs:
        yield from _joins(child, above)


def _input_of(
    join: Join, at: int, above: tuple[frozenset[str], ...], catalog: Mapping[str, Schema]
) -> Use | None:
    """A part that is a relation's rows, renamed and filtered; None for any other."""
    part = join.parts[at]
    own = frozenset(part.columns)
    is_safe = all(_is_harmless(each, own, join, catalog) for each in join.conditions)
    # Spark asks what is above of the part's rows, if it needs no other; no more is known of it here
    is_safe = is_safe and not any(each <= own for each in above)
    node = part
    found = [each for each in join.conditions if each.columns <= own]
    while isinstance(node, Filter | Project):
        if isinstance(node, Filter):
            is_safe = is_safe and is_total(node.predicate, node.input, catalog)
            found.append(node.predicate)
        else:
            sources = {name: node.source_of(name) for name in node.columns}
            plain = {name: source for name, source in sources.items() if source is not None}
            made = (scalar for name, scalar in node.outputs if name not in plain)
            is_safe = is_safe and all(is_total(each, node.input, catalog) for each in made)
            found = [renamed(each, plain) for each in found if each.columns <= set(plain)]
        node = node.input
    if not isinstance(node, Scan) or node.relation in CLOCKS or node.relation not in catalog:
        return None
    fields = dict(zip(node.columns, node.fields, strict=True))
    type_of = partial(type_in, catalog[node.relation])
    sieves = {}
    for each in found:
        sieve = sieved(renamed(each, fields), type_of)
        if sieve is not None:
            sieves[sieve.sql] = sieve
    return Use(node.relation, tuple(sieves.values()), is_safe)


def _is_harmless(
    condition: Scalar, own: frozenset[str], join: Join, catalog: Mapping[str, Schema]
) -> bool:
    """Whether no row of a part can make a condition raise before it has met its partners."""
    if condition.columns.isdisjoint(own) or is_total(condition, join, catalog):
        return True
    return equality_sides(condition) is None and not condition.columns <= own


def _links(join: Join, known: Mapping[int, int], catalog: Mapping[str, Schema]) -> Iterator[Link]:
    """All pairs of fields that must be equal, those that follow from others among them."""
    classes: list[dict[tuple[int, str], DataType]] = []
    for condition in join.conditions:
        sides = equality_sides(condition)
        if sides is None or not all(side.is_column for side in sides):
            continue
        ends: dict[tuple[int, str], DataType] = {}
        for side in sides:
            place = join.part_of(side.column)
            of = column_type(join, side.column, catalog)
            name = _field(join.parts[place], side.column) if place in known else None
            if name is not None and of is not None:
                ends[known[place], name] = of
        # what is equal only when it is cast says nothing of what equals that
        if len(ends) == len(sides) and is_comparable(*ends.values()):
            touched = [each for each in classes if not ends.keys().isdisjoint(each)]
            classes = [each for each in classes if each not in touched]
            classes.append(ends | {end: of for each in touched for end, of in each.items()})
    for each in classes:
        for one, other in combinations(each, 2):
            if one[0] != other[0]:
                yield Link(*one, *other)


def _field(node: Node, column: str) -> str | None:
    """The relation's field that a column of a part is."""
    while not isinstance(node, Scan):
        if isinstance(node, Project):
            source = node.source_of(column)
            if source is None:
                return None
            column = source
        node = node.inputs[0]
    return node.field_of(column)
