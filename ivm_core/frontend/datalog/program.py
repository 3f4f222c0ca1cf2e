"""A checked Datalog program: relations, clauses with their kinds, strata.

    .decl edge(x: number, y: number)
    .input edge
    .decl tc(x: number, y: number)
    .output tc
    tc(x, y) :- edge(x, y).
    tc(x, z) :- tc(x, y), edge(y, z).

Whatever is wrong with one is told here, before anything is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ivm_core.frontend.datalog.clauses import Clause, clauses_of
from ivm_core.frontend.datalog.kinds import infer_kinds
from ivm_core.frontend.datalog.monotone import check_monotone
from ivm_core.frontend.datalog.parsing import parse_program
from ivm_core.frontend.datalog.relations import Relation, declared_relations, unknown
from ivm_core.frontend.datalog.safety import check_safety
from ivm_core.frontend.datalog.strata import MONOTONE, Stratum, strata_of
from ivm_core.frontend.datalog.syntax import Constant, HeadAggregate
from ivm_core.model.errors import DatalogError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.frontend.datalog.functors import Kind


@dataclass(frozen=True)
class CheckedClause:
    """A clause, and the kinds of its variables."""

    clause: Clause
    kinds: Mapping[str, Kind]

    @property
    def constants(self) -> tuple[Constant, ...] | None:
        """The values of a fact; None for anything else."""
        if self.clause.body:
            return None
        found = tuple(each for each in self.clause.head.arguments if isinstance(each, Constant))
        return found if len(found) == len(self.clause.head.arguments) else None


@dataclass(frozen=True)
class Program:
    """A program that has a meaning."""

    relations: Mapping[str, Relation]
    inputs: tuple[str, ...]
    """Relations whose facts are given: those of `.input`, and those that no rule derives."""
    outputs: tuple[str, ...]
    """Relations of `.output`; all derived ones where there is none."""
    clauses: Mapping[str, tuple[CheckedClause, ...]]
    """By the relation that they derive."""
    strata: tuple[Stratum, ...]

    @property
    def derived(self) -> tuple[str, ...]:
        """Relations that rules or facts of the program derive, lower strata first."""
        return tuple(name for stratum in self.strata for name in stratum.relations)

    @cached_property
    def aggregates(self) -> Mapping[str, Mapping[int, str]]:
        """By relation and place of the column: the aggregate that the heads have there."""
        return {name: _aggregated(each) for name, each in self.clauses.items()}

    def rules_of(self, relation: str) -> list[str]:
        """The rules that derive a relation, as they are written; none for an input."""
        clauses = self.clauses.get(relation, ())
        return list(dict.fromkeys(each.clause.rule.text for each in clauses))

    def explain(self) -> str:
        """The strata for people, with the rules of each."""
        lines = []
        for name in self.inputs:
            also = ", and derived" if name in self.clauses else ""
            lines.append(f"input {name}{also}: {self.relations[name].text}")
        for number, stratum in enumerate(self.strata, 1):
            kind = ", recursive" if stratum.is_recursive else ""
            lines.append(f"stratum {number}{kind}: {', '.join(stratum.relations)}")
            rules = dict.fromkeys(t for name in stratum.relations for t in self.rules_of(name))
            lines.extend(f"  {text}" for text in list(rules)[:SHOWN])
            if len(rules) > SHOWN:
                lines.append(f"  and {len(rules) - SHOWN} more")
        lines.append(f"output {', '.join(self.outputs)}")
        return "\n".join(lines)


SHOWN = 50


def checked_program(text: str) -> Program:
    """The program of a text; `DatalogError` or `Unsupported` for what has no meaning."""
    source = parse_program(text)
    relations = declared_relations(source)
    if not relations:
        raise DatalogError("the program declares no relation", fix="begin with .decl")
    clauses: dict[str, list[CheckedClause]] = {}
    for rule in source.rules:
        for head in rule.heads:
            if head.relation not in relations:
                raise unknown(head.relation, relations, head.place, rule.text)
        for clause in clauses_of(rule, relations):
            kinds = infer_kinds(clause, relations)
            check_safety(clause)
            clauses.setdefault(clause.head.relation, []).append(CheckedClause(clause, kinds))
    derived = [name for name in relations if name in clauses]
    given = {mention.relation for mention in source.inputs}
    shown = {mention.relation for mention in source.outputs}
    program = Program(
        relations,
        tuple(name for name in relations if name in given or name not in clauses),
        tuple(name for name in relations if name in (shown or derived)),
        {name: tuple(clauses[name]) for name in derived},
        strata_of(derived, [each.clause for name in derived for each in clauses[name]]),
    )
    _check_aggregates(program, given)
    return program


def _aggregated(clauses: tuple[CheckedClause, ...]) -> dict[int, str]:
    found: dict[int, str] = {}
    for each in clauses:
        for place, argument in enumerate(each.clause.head.arguments):
            if not isinstance(argument, HeadAggregate):
                continue
            other = found.setdefault(place, argument.function)
            if other != argument.function:
                raise each.clause.error(
                    f"{argument.function} where another rule of {each.clause.head.relation} has "
                    f"{other}",
                    "let all rules of a relation aggregate alike, or use two relations",
                    argument.place,
                )
    return found


def _check_aggregates(program: Program, given: set[str]) -> None:
    for stratum in program.strata:
        improving = {
            name: program.aggregates[name] for name in stratum.relations if stratum.is_recursive
        }
        for name in stratum.relations:
            places = program.aggregates[name]
            for each in program.clauses[name]:
                _check_head(each.clause, places, is_input=name in given)
                if stratum.is_recursive:
                    _check_recursive_head(each.clause, places)
                    check_monotone(each.clause, improving, each.kinds)


def _check_head(clause: Clause, places: Mapping[int, str], *, is_input: bool) -> None:
    name = clause.head.relation
    if places and is_input:
        raise clause.error(f"{name} is an input and aggregated", "aggregate into another relation")
    for place, function in places.items():
        argument = clause.head.arguments[place]
        if function not in MONOTONE and not isinstance(argument, HeadAggregate):
            raise clause.error(
                f"{name} is a {function} in other rules, and not in this one",
                f"let every rule of {name} have {function} there",
                argument.place,
            )


def _check_recursive_head(clause: Clause, places: Mapping[int, str]) -> None:
    if len(places) > 1 or len(places) == len(clause.head.arguments):
        what = "two aggregates" if len(places) > 1 else "an aggregate without a key"
        raise clause.refusal(
            f"{what} in the head of {clause.head.relation} within recursion",
            "a recursive aggregate keeps one best value per key",
            "give each a relation of its own, and every one a key",
            clause.head.place,
        )
