"""Which kind of value each variable of a clause stands for.

A variable has the kind of the columns and functors that it stands in; a whole number without `u`
takes the kind that is expected of it, a number's where nothing is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ivm_core.frontend.datalog.clauses import (
    Absent,
    Aggregated,
    Clause,
    Literal,
    Predicate,
    shown,
    variables_of,
)
from ivm_core.frontend.datalog.functors import FUNCTORS, NUMERIC, REFUSED, WHOLE, Kind
from ivm_core.frontend.datalog.relations import MOST, Relation, unknown
from ivm_core.frontend.datalog.syntax import (
    Atom,
    Call,
    Comparison,
    Constant,
    Expression,
    HeadAggregate,
    Variable,
)
from ivm_core.model.names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def kind_of(part: Expression, kinds: Mapping[str, Kind]) -> Kind | None:
    """The kind that an expression has by itself; None where it takes any that is expected."""
    if isinstance(part, Variable):
        return kinds.get(part.name)
    if isinstance(part, Constant):
        if isinstance(part.value, str):
            return Kind.SYMBOL
        if isinstance(part.value, float):
            return Kind.FLOAT
        return Kind.UNSIGNED if part.is_unsigned else None
    if isinstance(part, Call):
        functor = FUNCTORS[part.functor]
        if functor.gives is not None:
            return functor.gives
        return common_kind(part.arguments, kinds)
    if isinstance(part, HeadAggregate):
        return aggregate_kind(part.function, part.operand, kinds)
    return None


def common_kind(parts: tuple[Expression, ...], kinds: Mapping[str, Kind]) -> Kind | None:
    """The first kind that is known of any."""
    return next((kind for each in parts if (kind := kind_of(each, kinds))), None)


def aggregate_kind(
    function: str, operand: Expression | None, kinds: Mapping[str, Kind]
) -> Kind | None:
    """The kind of an aggregate's value."""
    if function == "count":
        return Kind.NUMBER
    if function == "mean":
        return Kind.FLOAT
    return None if operand is None else kind_of(operand, kinds)


def infer_kinds(clause: Clause, relations: Mapping[str, Relation]) -> dict[str, Kind]:
    """The kind of every variable; `DatalogError` where two meet, or an arity is wrong."""
    return _Inference(clause, relations).kinds()


class _Inference:
    """Spreads kinds over one clause until nothing new is learnt."""

    def __init__(self, clause: Clause, relations: Mapping[str, Relation]) -> None:
        self._clause = clause
        self._relations = relations
        self._kinds: dict[str, Kind] = {}
        self._settling = False

    def kinds(self) -> dict[str, Kind]:
        """All of them."""
        self._until_stable()
        self._settling = True  # what is still open is a number
        self._until_stable()
        for literal in (self._clause.head, *self._clause.body):
            for variable in variables_of(literal):
                if variable.name not in self._kinds:
                    raise self._clause.error(
                        f"the type of {shown(variable.name)} is not to be seen",
                        "use it in an atom, or compare it with something that has a type",
                        variable.place,
                    )
        return self._kinds

    def _until_stable(self) -> None:
        known = -1
        while known != len(self._kinds):
            known = len(self._kinds)
            for literal in self._clause.body:
                self._literal(literal)
            self._atom(self._clause.head)

    def _literal(self, literal: Literal) -> None:
        if isinstance(literal, Atom):
            self._atom(literal)
        elif isinstance(literal, Absent):
            self._atom(literal.atom)
        elif isinstance(literal, Comparison):
            sides = (literal.left, literal.right)
            for side in sides:
                self._look(side)
            self._alike(sides)
        elif isinstance(literal, Predicate):
            if len(literal.arguments) != 2:
                raise self._clause.error(
                    f"{literal.name} takes 2 values, not {len(literal.arguments)}",
                    "contains(part, text), match(pattern, text)",
                    literal.place,
                )
            for argument in literal.arguments:
                self._expect(argument, Kind.SYMBOL)
        else:
            self._aggregated(literal)

    def _aggregated(self, literal: Aggregated) -> None:
        for each in literal.body:
            self._literal(each)
        self._of_aggregate(literal.function, literal.operand)
        kind = aggregate_kind(literal.function, literal.operand, self._kinds)
        if kind is None and self._settling:
            kind = Kind.NUMBER
        if kind is not None:
            self._expect(literal.result, kind)

    def _of_aggregate(self, function: str, operand: Expression | None) -> None:
        if operand is None:
            return
        self._look(operand)
        kind = kind_of(operand, self._kinds)
        if function in ("sum", "mean") and kind is not None and kind not in NUMERIC:
            raise self._clause.error(
                f"{function} of {operand}, which is of type {kind.value}",
                "sum and mean are of numbers",
                operand.place,
            )
        if kind is None and self._settling:
            self._expect(operand, Kind.NUMBER)

    def _atom(self, atom: Atom) -> None:
        relation = self._relations.get(atom.relation)
        rule = self._clause.rule
        if relation is None:
            raise unknown(atom.relation, self._relations, atom.place, rule.text)
        if len(atom.arguments) != len(relation.columns):
            raise self._clause.error(
                f"{atom.relation} has {len(relation.columns)} columns, not {len(atom.arguments)}",
                f"it is declared as {relation.text}",
                atom.place,
            )
        for argument, column in zip(atom.arguments, relation.columns, strict=True):
            if isinstance(argument, HeadAggregate):
                self._of_aggregate(argument.function, argument.operand)
                if argument.function not in ("count", "mean") and argument.operand is not None:
                    self._expect(argument.operand, column.kind)
                    continue
            self._expect(argument, column.kind)
            if isinstance(argument, Constant) and column.kind in WHOLE:
                self._check_range(argument, column.least, column.most)

    # --- expressions ---

    def _expect(self, part: Expression, kind: Kind) -> None:
        self._look(part)
        self._push(part, kind)

    def _alike(self, parts: tuple[Expression, ...]) -> None:
        """One kind for all of them, which have been looked at."""
        kind = common_kind(parts, self._kinds)
        if kind is None and self._settling:
            kind = Kind.NUMBER
        if kind is not None:
            for each in parts:
                self._push(each, kind)

    def _look(self, part: Expression) -> None:
        """Learn what an expression says of the variables in it, whatever is expected of it."""
        if not isinstance(part, Call):
            return
        functor = FUNCTORS.get(part.functor)
        if functor is None:
            reason = REFUSED.get(part.functor)
            if reason:
                raise self._clause.refusal(
                    f"the functor {part.functor}", reason, "give the value as a column", part.place
                )
            if part.functor in self._relations:
                raise self._clause.error(
                    f"{part.functor} is a relation, which has no value",
                    "give the atom a place of its own in the body",
                    part.place,
                )
            names = [name for name in FUNCTORS if name[0].isalpha() and name != "neg"]
            raise self._clause.error(
                f"there is no functor {part.functor}",
                f"{did_you_mean(part.functor, names)}there are: {', '.join(names)}",
                part.place,
            )
        if not functor.fits(len(part.arguments)):
            more = " or more" if functor.is_open else ""
            raise self._clause.error(
                f"{part.functor} takes {len(functor.takes)}{more} values, "
                f"not {len(part.arguments)}",
                "give it as many",
                part.place,
            )
        for argument in part.arguments:
            self._look(argument)
        if functor.same:
            self._alike(part.arguments)
        for place, argument in enumerate(part.arguments):
            takes = functor.kinds_of(place)
            if len(takes) == 1:
                self._push(argument, next(iter(takes)))
            kind = kind_of(argument, self._kinds)
            if kind is not None and kind not in takes:
                wanted = " or ".join(each.value for each in Kind if each in takes)
                raise self._clause.error(
                    f"{_written(part)} of {argument}, which is of type {kind.value}",
                    f"it takes a {wanted}",
                    argument.place,
                )
            if kind is None and self._settling:
                self._push(argument, Kind.NUMBER)

    def _push(self, part: Expression, kind: Kind) -> None:
        own = kind_of(part, self._kinds)
        if own is not None and own is not kind:
            raise self._clause.error(
                f"{_shown(part)} is of type {own.value} where {kind.value} is expected",
                "make the types agree, or convert it with "
                "to_number, to_unsigned, to_float or to_string",
                part.place,
            )
        if isinstance(part, Variable):
            self._kinds[part.name] = kind
        elif isinstance(part, Constant):
            self._check_constant(part, kind)
        elif isinstance(part, Call) and FUNCTORS[part.functor].gives is None:
            for each in part.arguments:
                self._push(each, kind)
            if kind not in FUNCTORS[part.functor].takes[0]:
                raise self._clause.error(
                    f"{_written(part)} gives no {kind.value}", "use another functor", part.place
                )

    def _check_constant(self, part: Constant, kind: Kind) -> None:
        if isinstance(part.value, str):
            return
        if isinstance(part.value, float):
            if not math.isfinite(part.value):
                raise self._clause.error(
                    "a float that is too large", "give a smaller one", part.place
                )
            return
        if kind is Kind.SYMBOL:
            raise self._clause.error(
                f"{part} is a number where a symbol is expected",
                f'write it as a text: "{part}"',
                part.place,
            )
        if kind in WHOLE:
            least = 0 if kind is Kind.UNSIGNED else -MOST["BIGINT"] - 1
            self._check_range(part, least, MOST["BIGINT"])

    def _check_range(self, part: Constant, least: int, most: int) -> None:
        if isinstance(part.value, int) and not least <= part.value <= most:
            raise self._clause.error(
                f"{part} is out of range", f"give a number from {least} to {most}", part.place
            )


def _written(part: Call) -> str:
    return "-" if part.functor == "neg" else part.functor


def _shown(part: Expression) -> str:
    return shown(part.name) if isinstance(part, Variable) else str(part)


def calls_in(part: Expression | None) -> Iterator[Call]:
    """All functor calls within an expression."""
    if isinstance(part, Call):
        yield part
        for each in part.arguments:
            yield from calls_in(each)
    elif isinstance(part, HeadAggregate):
        yield from calls_in(part.operand)
