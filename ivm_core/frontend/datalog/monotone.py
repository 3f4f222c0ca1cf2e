"""What `min` and `max` in a head may do where the relation needs itself.

`dist(y, min(d + w)) :- dist(x, d), edge(x, y, w).` has one meaning because a smaller `d` can only
give smaller values: the values of a recursion only improve. So a value that is still to improve may
go into such an aggregate along a way that keeps the order, be compared on the side that stays true,
and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.frontend.datalog.clauses import Clause, Literal, shown, variables_of
from ivm_core.frontend.datalog.functors import Kind
from ivm_core.frontend.datalog.kinds import kind_of
from ivm_core.frontend.datalog.syntax import (
    Atom,
    Call,
    Comparison,
    Constant,
    Expression,
    HeadAggregate,
    Variable,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

STAYS_TRUE = {"min": ("<", "<="), "max": (">", ">=")}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
REASON = "a value that is still to improve has no one meaning there"
Values = dict[str, str]
"""Variables that hold an improving value, and by which aggregate it improves."""


def check_monotone(
    clause: Clause, improving: Mapping[str, Mapping[int, str]], kinds: Mapping[str, Kind]
) -> None:
    """Refuse uses of improving values that could take back what they gave.

    `improving` has the aggregated columns of the relations of the clause's own stratum.
    """
    values, matched = _values(clause, improving)
    if not values:
        return
    comparisons = [each for each in clause.body if isinstance(each, Comparison)]
    known = -1
    while known != len(comparisons):
        known = len(comparisons)
        comparisons = [c for c in comparisons if not _names_value(c, values, matched, kinds)]
    for comparison in comparisons:
        _check_comparison(clause, comparison, values, kinds)
    for literal in clause.body:
        if not isinstance(literal, Atom | Comparison):
            _refuse_any(clause, literal, values)
    places = improving.get(clause.head.relation, {})
    for place, argument in enumerate(clause.head.arguments):
        if place not in places:
            _refuse_any(clause, argument, values)
            continue
        value = argument.operand if isinstance(argument, HeadAggregate) else argument
        assert value is not None
        ways = {values[v.name] for v in variables_of(value) if v.name in values}
        if ways - {places[place]} or not _keeps_order(value, values, kinds):
            raise _refusal(clause, value, values)


def _values(clause: Clause, improving: Mapping[str, Mapping[int, str]]) -> tuple[Values, set[str]]:
    """Variables of atoms that improve, and those that have to match."""
    values: Values = {}
    seen: set[str] = set()
    for atom in clause.atoms:
        columns = improving.get(atom.relation, {})
        for place, argument in enumerate(atom.arguments):
            improves = place in columns
            names = [each.name for each in variables_of(argument)]
            again = [name for name in names if name in values or (improves and name in seen)]
            is_constant = improves and isinstance(argument, Constant | Call)
            if again or is_constant:
                raise clause.refusal(
                    f"{argument} as a value of {atom.relation} that has to match within recursion",
                    REASON,
                    "compare it with <= or >= on the side that stays true",
                    argument.place,
                )
            if improves and isinstance(argument, Variable):
                values[argument.name] = columns[place]
            seen.update(names)
    return values, seen


def _check_comparison(
    clause: Clause, part: Comparison, values: Values, kinds: Mapping[str, Kind]
) -> None:
    left, right = (
        {values[v.name] for v in variables_of(side) if v.name in values}
        for side in (part.left, part.right)
    )
    if not left and not right:
        return
    sides = ((part.left, left, part.operator), (part.right, right, MIRRORED.get(part.operator, "")))
    for side, ways, operator in sides:
        for way in ways:
            if operator not in STAYS_TRUE[way] or not _keeps_order(side, values, kinds):
                raise _refusal(clause, side, values)


def _names_value(
    part: Comparison, values: Values, matched: set[str], kinds: Mapping[str, Kind]
) -> bool:
    """`e = d + w` gives an improving value another name, which improves alike."""
    if part.operator != "=":
        return False
    for one, other in ((part.left, part.right), (part.right, part.left)):
        ways = {values[v.name] for v in variables_of(other) if v.name in values}
        if not isinstance(one, Variable) or one.name in values or one.name in matched:
            continue
        if len(ways) == 1 and _keeps_order(other, values, kinds):
            values[one.name] = ways.pop()
            return True
    return False


def _keeps_order(part: Expression, values: Values, kinds: Mapping[str, Kind]) -> bool:
    """Whether a smaller value in it never makes a greater one of it."""
    if not any(each.name in values for each in variables_of(part)):
        return True
    if isinstance(part, Variable):
        return True
    if not isinstance(part, Call):
        return False
    if part.functor in ("+", "min", "max"):
        return all(_keeps_order(each, values, kinds) for each in part.arguments)
    left, *rest = part.arguments
    if part.functor == "-":
        fixed = not any(v.name in values for v in variables_of(rest[0]))
        # an unsigned difference fails below zero, which no order foresees
        is_signed = kind_of(part, kinds) is not Kind.UNSIGNED
        return is_signed and fixed and _keeps_order(left, values, kinds)
    return False


def _refuse_any(clause: Clause, part: Expression | Literal, values: Values) -> None:
    if any(each.name in values for each in variables_of(part)):
        raise _refusal(clause, part, values)


def _refusal(clause: Clause, part: Expression | Literal, values: Values) -> Exception:
    names = [v for v in variables_of(part) if v.name in values]
    name = shown(names[0].name)
    way = values[names[0].name]
    return clause.refusal(
        f"this use of {name}, a {way} within the recursion that makes it",
        REASON,
        f"let it go into {way}(…) of the head by +, min or max, or compare it with "
        f"{' or '.join(STAYS_TRUE[way])}; do the rest in a relation after the recursion",
        names[0].place,
    )
