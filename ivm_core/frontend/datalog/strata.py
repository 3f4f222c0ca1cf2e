"""The order in which relations are computed: strata of those that need each other.

A stratum's relations are computed together, after all that they read from lower ones. What is
negated or aggregated has to be complete, so it has to be lower.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.frontend.datalog.clauses import Absent, Aggregated, Clause
from ivm_core.frontend.datalog.syntax import Atom, HeadAggregate, Place
from ivm_core.plan.recursion import components

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

MONOTONE = frozenset({"min", "max"})
"""Aggregates of the head that a relation may have over itself."""


@dataclass(frozen=True)
class Stratum:
    """Relations that are computed together."""

    relations: tuple[str, ...]
    is_recursive: bool


@dataclass(frozen=True)
class Need:
    """That a clause needs a relation; `why` it has to be complete before, if it has to."""

    clause: Clause
    reads: str
    place: Place
    why: str = ""


def needs_of(clause: Clause) -> Iterator[Need]:
    """What a clause reads."""
    aggregate = next(
        (
            each.function
            for each in clause.head.arguments
            if isinstance(each, HeadAggregate) and each.function not in MONOTONE
        ),
        "",
    )
    for literal in clause.body:
        if isinstance(literal, Atom):
            yield Need(clause, literal.relation, literal.place, aggregate)
        elif isinstance(literal, Absent):
            yield Need(clause, literal.atom.relation, literal.atom.place, "negation")
        elif isinstance(literal, Aggregated):
            for inner in literal.body:
                atom = inner.atom if isinstance(inner, Absent) else inner
                if isinstance(atom, Atom):
                    yield Need(clause, atom.relation, atom.place, literal.function)


def strata_of(derived: Sequence[str], clauses: Iterable[Clause]) -> tuple[Stratum, ...]:
    """Strata of the derived relations, lower ones first.

    `DatalogError` where a relation needs itself to be absent, `Unsupported` where it is aggregated
    over itself by anything but `min` and `max` in the head.
    """
    needs = [need for clause in clauses for need in needs_of(clause)]
    reads: dict[str, dict[str, None]] = {name: {} for name in derived}
    for need in needs:
        if need.reads in reads:
            reads[need.clause.head.relation][need.reads] = None
    groups = components(reads)
    place = {name: number for number, group in enumerate(groups) for name in group}
    for need in needs:
        if need.why and place.get(need.reads, -1) == place[need.clause.head.relation]:
            raise _circular(need, reads)
    return tuple(Stratum(group, len(group) > 1 or group[0] in reads[group[0]]) for group in groups)


def _circular(need: Need, reads: Mapping[str, Iterable[str]]) -> Exception:
    head = need.clause.head.relation
    way = " needs ".join((head, *_path(need.reads, head, reads)))
    if need.why == "negation":
        return need.clause.error(
            f"{head} is defined by the absence of {need.reads}, which needs {head}: {way}",
            "negate a relation that doesn't need this one; "
            "then it is complete before this one is computed",
            need.place,
        )
    if any(isinstance(each, HeadAggregate) for each in need.clause.head.arguments):
        rewrite = "aggregate in a relation of its own, after the recursion"
    else:
        rewrite = "put min or max in the head: p(x, min(v)) :- …; others after the recursion"
    return need.clause.refusal(
        f"{need.why} within recursion ({way})",
        "what it is of must be complete before, and here it depends on the result; "
        "only min and max in the head have one meaning then",
        rewrite,
        need.place,
    )


def _path(start: str, end: str, reads: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """A shortest way from one relation to another along what they read."""
    ways: list[tuple[str, ...]] = [(start,)]
    seen = {start}
    while ways:
        way = ways.pop(0)
        if way[-1] == end:
            return way
        for following in reads[way[-1]]:
            if following not in seen:
                seen.add(following)
                ways.append((*way, following))
    return (start, end)
