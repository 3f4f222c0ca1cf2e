"""Whether every variable of a clause gets its values from somewhere.

An atom binds the variables among its arguments, `x = …` binds `x` once the other side is bound,
an aggregate its result. Everything else only asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.frontend.datalog.clauses import (
    Absent,
    Aggregated,
    Clause,
    Literal,
    Predicate,
    inner_variables,
    shared_variables,
    shown,
    variables_of,
)
from ivm_core.frontend.datalog.syntax import (
    Atom,
    Call,
    Comparison,
    Expression,
    HeadAggregate,
    Variable,
    Wildcard,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BIND = "use it in an atom of the body that is not negated, or give it a value with ="


def bound_variables(body: Sequence[Literal]) -> set[str]:
    """Variables that a conjunction gives values to."""
    bound: set[str] = set()
    for atom in body:
        if isinstance(atom, Atom):
            bound.update(each.name for each in atom.arguments if isinstance(each, Variable))
    known = -1
    while known != len(bound):
        known = len(bound)
        for literal in body:
            if isinstance(literal, Comparison) and literal.operator == "=":
                _bind_equal(literal, bound)
            elif isinstance(literal, Aggregated) and set(shared_variables(literal)) <= bound:
                bound.add(literal.result.name)
    return bound


def _bind_equal(literal: Comparison, bound: set[str]) -> None:
    for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
        if isinstance(one, Variable) and {each.name for each in variables_of(other)} <= bound:
            bound.add(one.name)


def check_safety(clause: Clause) -> None:
    """Raise `DatalogError` for a variable or `_` without values, and say what would bind it."""
    bound = bound_variables(clause.body)
    for literal in clause.body:
        if isinstance(literal, Aggregated):
            _check_aggregate(clause, literal, bound)
    for literal in clause.body:
        _check_literal(clause, literal, bound)
    for argument in clause.head.arguments:
        _check_wildcards(clause, argument, "the head")
        for variable in variables_of(argument):
            if variable.name not in bound:
                raise clause.error(
                    f"{shown(variable.name)} in the head has no value", BIND, variable.place
                )


def _check_literal(clause: Clause, literal: Literal, bound: Iterable[str]) -> None:
    if isinstance(literal, Aggregated):
        return
    if isinstance(literal, Absent):
        what, arguments = "a negated atom", literal.atom.arguments
    elif isinstance(literal, Comparison):
        what, arguments = "a comparison", (literal.left, literal.right)
    elif isinstance(literal, Predicate):
        what, arguments = literal.name, literal.arguments
    else:
        what, arguments = "an atom", literal.arguments
    for argument in arguments:
        if not (isinstance(literal, Atom | Absent) and isinstance(argument, Wildcard)):
            _check_wildcards(clause, argument, what)
        for variable in variables_of(argument):
            if variable.name not in bound:
                raise clause.error(
                    f"{shown(variable.name)} in {what} has no value", BIND, variable.place
                )


def _check_aggregate(clause: Clause, part: Aggregated, bound: set[str]) -> None:
    inner = bound_variables(part.body)
    shared = shared_variables(part)
    for variable in inner_variables(part):
        if variable.name in shared and variable.name not in bound:
            raise clause.error(
                f"{shown(variable.name)} has no value outside of the {part.function} it stands in",
                "bind it outside too, or call it something else within",
                variable.place,
            )
        if variable.name in shared and variable.name not in inner:
            raise clause.refusal(
                f"{shown(variable.name)} from outside in a condition within {part.function}",
                "the ways are counted per value of what an atom within binds",
                f"bind {shown(variable.name)} by an atom within the braces too",
                variable.place,
            )
    for literal in part.body:
        _check_literal(clause, literal, inner)
    if part.operand is not None:
        _check_wildcards(clause, part.operand, part.function)
        for variable in variables_of(part.operand):
            if variable.name not in inner:
                raise clause.error(
                    f"{shown(variable.name)} in {part.function} has no value", BIND, variable.place
                )


def _check_wildcards(clause: Clause, part: Expression, what: str) -> None:
    if isinstance(part, Wildcard):
        raise clause.error(f"_ in {what} stands for no value", "name a variable", part.place)
    if isinstance(part, Call):
        for each in part.arguments:
            _check_wildcards(clause, each, what)
    if isinstance(part, HeadAggregate) and part.operand is not None:
        _check_wildcards(clause, part.operand, what)
