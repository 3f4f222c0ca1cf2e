"""Random programs: up to four strata with negation, mutual recursion and aggregates.

Every program is legal by construction. Values are small whole numbers, and nothing computes new
ones within a recursion, so that all of them end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.datalog.stories import Story, random_steps

if TYPE_CHECKING:
    from random import Random

INPUTS = {"e": 2, "f": 2, "g": 1}
VALUES = range(4)
VARIABLES = "xyzw"
MOST_STRATA = 4


@dataclass
class _Rule:
    """A rule while it is made."""

    atoms: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    bound: list[str] = field(default_factory=list)


class ProgramMaker:
    """Makes one program."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._arity = dict(INPUTS)
        self._lines = [
            *(f".decl {n}({_columns(a)}) .input {n}" for n, a in INPUTS.items()),
        ]

    def program(self) -> str:
        random = self._random
        for stratum in range(random.randint(1, MOST_STRATA)):
            kind = random.choice(["plain", "recursive", "recursive", "mutual", "extreme", "count"])
            getattr(self, f"_{kind}")(f"p{stratum}")
        return "\n".join(self._lines) + "\n"

    # --- strata ---

    def _plain(self, name: str) -> None:
        lower = list(self._arity)
        self._declare(name, self._random.randint(1, 2))
        for _ in range(self._random.randint(1, 2)):
            self._write(name, lower, [])

    def _recursive(self, name: str) -> None:
        lower = list(self._arity)
        self._declare(name, 2 if self._random.random() < 0.7 else 1)
        self._write(name, lower, [])
        for _ in range(self._random.randint(1, 2)):
            self._write(name, lower, [name])

    def _mutual(self, name: str) -> None:
        lower = list(self._arity)
        names = [f"{name}a", f"{name}b"]
        for each in names:
            self._declare(each, self._random.randint(1, 2))
        self._write(names[0], lower, [])
        self._write(names[0], lower, [names[1]])
        self._write(names[1], lower, [names[0]])
        if self._random.random() < 0.5:
            self._write(names[1], lower, names)

    def _extreme(self, name: str) -> None:
        """The least or greatest value that a path brings along."""
        random = self._random
        binary = [each for each, arity in self._arity.items() if arity == 2]
        function = random.choice(["min", "max"])
        start, edge = random.choice(binary), random.choice(binary)
        self._declare(name, 2)
        value = random.choice(["v", f"{function}(v, w)", "min(v, w)", "max(v, w)"])
        guard = random.choice(["", ", v <= 3" if function == "min" else ", v >= 0"])
        self._lines.append(f"{name}(x, {function}(v)) :- {start}(x, v).")
        self._lines.append(
            f"{name}(y, {function}({value})) :- {name}(x, v), {edge}(x, y){guard}, w = y."
        )

    def _count(self, name: str) -> None:
        random = self._random
        of = random.choice(list(self._arity))
        aggregate = random.choice(["count()", "sum(y)", "min(y)", "max(y)"])
        self._declare(name, 2)
        if random.random() < 0.5 and self._arity[of] == 2:
            self._lines.append(f"{name}(x, {aggregate}) :- {of}(x, y).")
        else:
            function = random.choice(["count", "sum y", "max y"])
            inner = f"{of}(x, y)" if self._arity[of] == 2 else f"{of}(y), e(x, y)"
            self._lines.append(f"{name}(x, n) :- f(x, _), n = {function} : {{ {inner} }}.")

    # --- rules ---

    def _declare(self, name: str, arity: int) -> None:
        self._arity[name] = arity
        self._lines.append(f".decl {name}({_columns(arity)}) .output {name}")

    def _write(self, name: str, lower: list[str], same: list[str]) -> None:
        random = self._random
        rule = _Rule()
        for relation in same:
            self._atom(rule, relation)
        for _ in range(random.randint(0 if same else 1, 2)):
            self._atom(rule, random.choice(lower))
        if not rule.bound:
            self._atom(rule, "g", fresh=True)
        if random.random() < 0.35:
            denied = random.choice(lower)
            arguments = [
                random.choice([random.choice(rule.bound), "_", str(random.choice(VALUES))])
                for _ in range(self._arity[denied])
            ]
            rule.others.append(f"!{denied}({', '.join(arguments)})")
        if random.random() < 0.3:
            operator = random.choice(["=", "!=", "<", "<=", ">", ">="])
            left = random.choice(rule.bound)
            others = [each for each in rule.bound if each != left]
            right = random.choice([*others, str(random.choice(VALUES))])
            rule.others.append(f"{left} {operator} {right}")
        if random.random() < 0.1:
            one, two = (random.choice(rule.bound) for _ in range(2))
            rule.others.append(f"({one} < 2; !({two} = 3))")
        head: list[str] = []
        for _ in range(self._arity[name]):
            fresh = [each for each in rule.bound if each not in head] or rule.bound
            is_variable = random.random() < 0.95
            head.append(random.choice(fresh) if is_variable else str(random.choice(VALUES)))
        body = [*rule.atoms, *rule.others]
        random.shuffle(body)
        self._lines.append(f"{name}({', '.join(head)}) :- {', '.join(body)}.")

    def _atom(self, rule: _Rule, relation: str, *, fresh: bool = False) -> None:
        random = self._random
        arguments = []
        for _ in range(self._arity[relation]):
            chance = 0.0 if fresh else random.random()
            if chance < 0.85:
                known = rule.bound if rule.bound and random.random() < 0.6 else VARIABLES
                others = [each for each in known if each not in arguments]
                name = random.choice(others if others and random.random() < 0.9 else known)
                arguments.append(name)
                if name not in rule.bound:
                    rule.bound.append(name)
            else:
                arguments.append("_" if chance < 0.94 else str(random.choice(VALUES)))
        rule.atoms.append(f"{relation}({', '.join(arguments)})")


def _columns(arity: int) -> str:
    return ", ".join(f"c{place}: number" for place in range(arity))


def random_story(random: Random, steps: int) -> Story:
    """A program, and facts that come and go."""
    program = ProgramMaker(random).program()
    domains = {name: (VALUES,) * arity for name, arity in INPUTS.items()}
    return Story(program, random_steps(random, domains, steps, 2))
