"""A pipeline of recursive views and a Datalog program over edges, and what it has to hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Edge = tuple[int, int]
DECLARATION = """
name: till
sources:
  edge:
    schema: id BIGINT, x BIGINT, y BIGINT
    primary_key: [id]
"""
REACH = "SELECT x, y FROM edge UNION SELECT r.x, e.y FROM reach r JOIN edge e ON r.y = e.x"
EVEN = "SELECT x AS n FROM edge WHERE x = 1 UNION SELECT e.y FROM odd o JOIN edge e ON o.n = e.x"
ODD = "SELECT DISTINCT e.y AS n FROM even v JOIN edge e ON v.n = e.x"
COUNTED = "SELECT x, COUNT(*) AS n FROM reach GROUP BY x"
PROGRAM = """\
.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl ways(x: number, n: number)
ways(x, count()) :- edge(x, _).
.decl last(x: number)
last(y) :- path(_, y), !edge(y, _).
"""
VIEWS = {"reach": REACH, "even": EVEN, "odd": ODD, "counted": COUNTED, "walks.dl": PROGRAM}
RELATIONS = ("path", "ways", "last")


def closure(edges: Iterable[Edge]) -> list[Edge]:
    """All pairs that a walk connects, by a loop."""
    there = set(edges)
    found = set(there)
    while new := {(a, d) for a, b in found for c, d in there if b == c} - found:
        found |= new
    return sorted(found)


def sides(edges: Iterable[Edge]) -> tuple[list[tuple[int]], list[tuple[int]]]:
    """Where one is after an even and after an odd number of steps from 1."""
    there = set(edges)
    even = {x for x, _ in there if x == 1}
    odd: set[int] = set()
    while True:
        more = {y for x, y in there if x in even}, {y for x, y in there if x in odd}
        if more[0] <= odd and more[1] <= even:
            return sorted((n,) for n in even), sorted((n,) for n in odd)
        odd |= more[0]
        even |= more[1]
