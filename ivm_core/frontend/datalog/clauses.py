"""Rules in normal form: one head, and a body that is a plain conjunction.

    p(x), q(x) :- a(x), (b(x); !c(x)).

becomes four clauses. Aggregates get a variable of their own: `n + 1 = count : { … }` is
`n + 1 = ?1, ?1 = count : { … }`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from ivm_core.frontend.datalog.syntax import (
    Atom,
    BodyAggregate,
    Call,
    Comparison,
    Conjunction,
    Disjunction,
    Expression,
    Formula,
    Negation,
    Place,
    Rule,
    Variable,
)
from ivm_core.model.errors import DatalogError, Unsupported

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

PREDICATES = frozenset({"contains", "match"})
"""What looks like an atom of a relation and is a condition on values."""
OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MOST_CLAUSES = 1000
LOCAL = "@"
"""In the name of a variable that stands within one aggregate only."""
LIFTED = "#"
"""Begins the name of what stands for an aggregate; no name in a program can."""


@dataclass(frozen=True)
class Predicate:
    """`contains` or `match` of values, or that it doesn't hold."""

    name: str
    arguments: tuple[Expression, ...]
    place: Place
    holds: bool = True


@dataclass(frozen=True)
class Absent:
    """A fact that isn't there."""

    atom: Atom


@dataclass(frozen=True)
class Aggregated:
    """A variable that is an aggregate over the ways in which literals hold."""

    result: Variable
    function: str
    operand: Expression | None
    body: tuple[Literal, ...]
    place: Place


Literal = Atom | Absent | Comparison | Predicate | Aggregated


@dataclass(frozen=True)
class Clause:
    """One head, and literals that all hold."""

    head: Atom
    body: tuple[Literal, ...]
    rule: Rule

    def error(self, what: str, fix: str, place: Place | None = None) -> DatalogError:
        """What is wrong with it, at a place within its rule."""
        at = place or self.rule.place
        return DatalogError(what, fix=fix, line=at.line, column=at.column, rule=self.rule.text)

    def refusal(self, construct: str, reason: str, rewrite: str, place: Place) -> Unsupported:
        """That it is not maintained, at a place within its rule."""
        return Unsupported(construct, f"{place}: {self.rule.text}", reason, rewrite)

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """The relations that it reads as they are, in the order written."""
        return tuple(each for each in self.body if isinstance(each, Atom))


def clauses_of(rule: Rule, relations: Collection[str]) -> Iterator[Clause]:
    """The clauses of a rule; `relations` are the declared ones."""
    ways = [()] if rule.body is None else _Normaliser(rule, relations).ways(rule.body)
    for head in rule.heads:
        for literals in ways:
            yield Clause(head, _with_local_names(head, literals), rule)


def _with_local_names(head: Atom, body: tuple[Literal, ...]) -> tuple[Literal, ...]:
    """Variables that stand only within an aggregate are told apart from those of others."""
    outside = {each.name for argument in head.arguments for each in variables_of(argument)}
    for literal in body:
        inner = isinstance(literal, Aggregated)
        outside.update(each.name for each in ([] if inner else variables_of(literal)))
    result: list[Literal] = []
    for literal in body:
        if isinstance(literal, Aggregated):
            local = {v.name for v in inner_variables(literal)} - outside
            names = {name: f"{name}{LOCAL}{literal.result.name}" for name in local}
            of = literal.operand
            literal = replace(
                literal,
                operand=None if of is None else renamed(of, names),
                body=tuple(renamed(each, names) for each in literal.body),
            )
        result.append(literal)
    return tuple(result)


def renamed(part: Any, names: Mapping[str, str]) -> Any:
    """An expression or literal with other variables."""
    if isinstance(part, Variable):
        return replace(part, name=names.get(part.name, part.name))
    if isinstance(part, Call | Atom | Predicate):
        return replace(part, arguments=tuple(renamed(each, names) for each in part.arguments))
    if isinstance(part, Absent):
        return Absent(renamed(part.atom, names))
    if isinstance(part, Comparison):
        return replace(part, left=renamed(part.left, names), right=renamed(part.right, names))
    return part


def shown(name: str) -> str:
    """A variable as it was written."""
    return name.partition(LOCAL)[0]


def variables_of(part: Expression | Literal) -> Iterator[Variable]:
    """Variables in the order written, those within aggregates too."""
    if isinstance(part, Variable):
        yield part
    elif isinstance(part, Call | Atom | Predicate):
        for each in part.arguments:
            yield from variables_of(each)
    elif isinstance(part, Absent):
        yield from variables_of(part.atom)
    elif isinstance(part, Comparison):
        yield from variables_of(part.left)
        yield from variables_of(part.right)
    elif isinstance(part, Aggregated):
        yield part.result
        yield from inner_variables(part)
    elif operand := getattr(part, "operand", None):
        yield from variables_of(operand)


def inner_variables(part: Aggregated) -> Iterator[Variable]:
    """Variables of an aggregate's body and operand."""
    for each in part.body:
        yield from variables_of(each)
    if part.operand is not None:
        yield from variables_of(part.operand)


def shared_variables(part: Aggregated) -> tuple[str, ...]:
    """Variables of an aggregate that also stand outside of it: they have the value from there."""
    return tuple(dict.fromkeys(v.name for v in inner_variables(part) if LOCAL not in v.name))


class _Normaliser:
    """Writes one rule's body as alternatives of plain literals."""

    def __init__(self, rule: Rule, relations: Collection[str]) -> None:
        self._rule = rule
        self._relations = relations
        self._lifted = 0

    def ways(self, formula: Formula, *, holds: bool = True) -> list[tuple[Literal, ...]]:
        """Alternatives, each a conjunction; of the opposite where the formula doesn't hold."""
        if isinstance(formula, Negation):
            return self.ways(formula.formula, holds=not holds)
        if isinstance(formula, Conjunction | Disjunction):
            parts = [self.ways(each, holds=holds) for each in formula.parts]
            if isinstance(formula, Disjunction) == holds:
                return [way for part in parts for way in part]
            return self._combined(parts)
        if isinstance(formula, Comparison):
            operator = formula.operator if holds else OPPOSITE[formula.operator]
            lifted: list[Literal] = []
            left, right = (self._lift(side, lifted) for side in (formula.left, formula.right))
            plain = replace(formula, operator=operator, left=left, right=right)
            return [(plain, *lifted)]
        lifted = []
        arguments = tuple(self._lift(each, lifted) for each in formula.arguments)
        if formula.relation in PREDICATES and formula.relation not in self._relations:
            predicate = Predicate(formula.relation, arguments, formula.place, holds)
            return [(predicate, *lifted)]
        atom = replace(formula, arguments=arguments)
        return [(atom if holds else Absent(atom), *lifted)]

    def _combined(self, parts: list[list[tuple[Literal, ...]]]) -> list[tuple[Literal, ...]]:
        size = 1
        for part in parts:
            size *= len(part)
            if size > MOST_CLAUSES:
                raise self._error(
                    f"the disjunctions of this rule multiply to more than {MOST_CLAUSES} cases",
                    "give some of them relations of their own",
                    self._rule.place,
                )
        return [
            tuple(literal for part in combined for literal in part) for combined in product(*parts)
        ]

    def _lift(self, part: Expression, lifted: list[Literal]) -> Expression:
        if isinstance(part, Call):
            arguments = tuple(self._lift(each, lifted) for each in part.arguments)
            return replace(part, arguments=arguments)
        if not isinstance(part, BodyAggregate):
            return part
        self._lifted += 1
        result = Variable(f"{LIFTED}{self._lifted}", part.place)
        ways = self.ways(part.body)
        if len(ways) > 1:
            raise self._unsupported(part, "a disjunction within an aggregate")
        if any(isinstance(each, Aggregated) for each in ways[0]):
            raise self._unsupported(part, "an aggregate within an aggregate")
        lifted.append(Aggregated(result, part.function, part.operand, ways[0], part.place))
        return result

    def _unsupported(self, part: BodyAggregate, construct: str) -> Unsupported:
        return Unsupported(
            construct,
            f"{part.place}: {self._rule.text}",
            "which of its ways are one is not to be seen from it",
            "give the inner part a relation of its own, and aggregate over that",
        )

    def _error(self, what: str, fix: str, place: Place) -> DatalogError:
        return DatalogError(
            what, fix=fix, line=place.line, column=place.column, rule=self._rule.text
        )
