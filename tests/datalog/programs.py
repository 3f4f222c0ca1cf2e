"""Programs that people write in Datalog, with domains of facts small enough to meet often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Named:
    """A program, and the values that the columns of its inputs take."""

    text: str
    domains: dict[str, Sequence[Sequence[Any]]]


NODES = range(7)
WEIGHTS = range(1, 5)

PROGRAMS = {
    # cycles, diamonds, self-loops and parallel derivations come by themselves on seven nodes
    "closure": Named(
        """
        .decl edge(x: number, y: number) .input edge
        .decl tc(x: number, y: number) .output tc
        .decl looped(x: number) .output looped
        tc(x, y) :- edge(x, y).
        tc(x, z) :- tc(x, y), tc(y, z).
        looped(x) :- tc(x, x).
        """,
        {"edge": (NODES, NODES)},
    ),
    "same generation": Named(
        """
        .decl parent(child: symbol, parent: symbol) .input parent
        .decl sg(x: symbol, y: symbol) .output sg
        sg(x, y) :- parent(x, p), parent(y, p), x != y.
        sg(x, y) :- parent(x, p), sg(p, q), parent(y, q).
        """,
        {"parent": ("abcdefg", "abcdefg")},
    ),
    "points-to": Named(
        """
        // Andersen's analysis: p = &x, p = q, p = *q, *p = q
        .type Var = symbol
        .decl address_of(p: Var, x: Var) .decl copy(p: Var, q: Var)
        .decl load(p: Var, q: Var) .decl store(p: Var, q: Var)
        .input address_of, copy, load, store
        .decl points(p: Var, x: Var) .output points
        points(p, x) :- address_of(p, x).
        points(p, x) :- copy(p, q), points(q, x).
        points(p, x) :- load(p, q), points(q, r), points(r, x).
        points(r, x) :- store(p, q), points(p, r), points(q, x).
        """,
        dict.fromkeys(("address_of", "copy", "load", "store"), ("pqrst", "pqrst")),
    ),
    "types": Named(
        """
        // which method a class has: its own, or that of the nearest class above
        .decl extends(class: symbol, above: symbol) .input extends
        .decl defines(class: symbol, method: symbol) .input defines
        .decl below(class: symbol, above: symbol)
        .decl has(class: symbol, method: symbol, from: symbol) .output has
        .decl abstract(class: symbol) .output abstract
        below(c, a) :- extends(c, a).
        below(c, b) :- below(c, a), extends(a, b).
        has(c, m, c) :- defines(c, m).
        has(c, m, f) :- extends(c, a), has(a, m, f), !defines(c, m), c != f.
        abstract(c), abstract(a) :- below(c, a), !has(c, "run", _), !has(a, "run", _).
        """,
        {"extends": ("ABCDE", "ABCDE"), "defines": ("ABCDE", ("run", "stop"))},
    ),
    "components": Named(
        """
        .decl link(x: number, y: number) .input link
        .decl joined(x: number, y: number)
        .decl component(x: number, least: number) .output component
        .decl sizes(least: number, size: number) .output sizes
        joined(x, y), joined(y, x) :- link(x, y).
        component(x, x) :- joined(x, _).
        component(y, min(l)) :- component(x, l), joined(x, y).
        sizes(l, count()) :- component(_, l).
        """,
        {"link": (range(9), range(9))},
    ),
    "shortest paths": Named(
        """
        .decl road(x: number, y: number, w: number) .input road
        .decl start(x: number) .input start
        .decl dist(x: number, d: number) .output dist
        .decl far(x: number) .output far
        dist(x, 0) :- start(x).
        dist(y, min(d + w)) :- dist(x, d), road(x, y, w).
        far(x) :- dist(x, d), d = max e : { dist(_, e) }.
        """,
        {"road": (NODES, NODES, WEIGHTS), "start": (NODES,)},
    ),
    "widest paths": Named(
        """
        .decl pipe(x: number, y: number, w: unsigned) .input pipe
        .decl wide(x: number, y: number, w: unsigned) .output wide
        wide(x, y, max(w)) :- pipe(x, y, w).
        wide(x, z, max(min(v, w))) :- wide(x, y, v), pipe(y, z, w).
        """,
        {"pipe": (range(5), range(5), WEIGHTS)},
    ),
    "evens and odds": Named(
        """
        .decl next(x: number, y: number) .input next
        .decl zero(x: number) .input zero
        .decl even(x: number) .output even
        .decl odd(x: number) .output odd
        .decl neither(x: number) .output neither
        even(x) :- zero(x).
        even(y) :- odd(x), next(x, y).
        odd(y) :- even(x), next(x, y).
        neither(x) :- (next(x, _); next(_, x)), !(even(x); odd(x)).
        """,
        {"next": (NODES, NODES), "zero": (NODES,)},
    ),
}

EVERYTHING = r"""
.decl e(x: number, y: number) .decl s(t: symbol, f: float) .decl small(a: int32)
.input e, s, small
.decl tc(x: number, y: number)
tc(x, y) :- e(x, y); tc(x, z), e(z, y).
.decl dist(x: number, d: unsigned)
dist(0, 0).
dist(y, min(d + 1)) :- dist(x, d), e(x, y), d < 9.
.decl wide(a: int32, b: number, c: number)
wide(a * a, a / 2, -a % 3) :- small(a), a / 2 != 1, a > -3.
.decl text(t: symbol, n: number)
text(cat(t, "-", substr(t, 1, 2), to_string(n)), n) :- s(t, _), n = strlen(t), !match("b.*", t).
text("\"q\"'\\", max(1, 2, strlen(t))) :- s(t, _), contains("\\", t).
.decl sums(n: number, total: number, least: symbol, mean: float)
sums(n, total, least, average) :- n = count : { e(_, _) }, total = sum x * y : { e(x, y), x < y },
    least = min t : { s(t, _) }, average = mean f : { s(_, f) }.
.decl degree(x: number, n: number, most: number)
degree(x, n, m) :- (e(x, _); e(_, x)), n = count : { e(x, _) }, m = sum y : { e(x, y), !e(y, x) }.
.decl lone(x: number)
lone(7) :- !e(7, _).
lone(y) :- y = 3 + 1, n = count : { e(y, _) }, n = 0, !e(_, 9).
.decl out(x: number, n: number, f: float)
out(x, count(), sum(f * -1)) :- e(x, _), s(_, f).
.decl both(x: number, lo: number, hi: number)
both(x, min(y), max(y)) :- e(x, y).
both(x, y, y) :- e(_, x), y = x.
.decl bits(b: number, o: number, x: number)
bits(band(x, y), bor(x, y), bxor(x, y)) :- e(x, y).
"""
"""One rule of every kind, for facts that try them."""
FACTS: dict[str, list[tuple[Any, ...]]] = {
    "e": [(0, 1), (1, 2), (2, 0), (2, 3), (3, 3), (5, 6), (5, 6), (-4, 5)],
    "s": [("bar", 0.5), ("c\\d", -2.25), ("ééé", 0.0), ("", 1e300)],
    "small": [(3,), (-2,), (-7,), (5,), (2,)],
}


def together(names: Sequence[str]) -> Named:
    """Several of them as one program."""
    chosen = [PROGRAMS[name] for name in names]
    domains = {name: values for each in chosen for name, values in each.domains.items()}
    return Named("\n".join(each.text for each in chosen), domains)
