"""A conjunction as tables that are joined and conditions: where every variable comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.datalog.clauses import (
    Absent,
    Aggregated,
    Literal,
    Predicate,
    shared_variables,
    variables_of,
)
from ivm_core.frontend.datalog.functors import FUNCTORS, PREDICATE_TREES, Kind, a_number
from ivm_core.frontend.datalog.kinds import calls_in, common_kind, kind_of
from ivm_core.frontend.datalog.syntax import (
    Atom,
    Call,
    Comparison,
    Constant,
    Expression,
    Variable,
    Wildcard,
)
from ivm_core.model.errors import InternalError
from ivm_core.operators.sql import column, named, select
from ivm_core.operators.sql import relation as table
from ivm_core.operators.sql_trees import cast, number, string

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ivm_core.frontend.datalog.relations import Column, Relation

COMPARED: dict[str, type[exp.Binary]] = {
    "=": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}
AGGREGATES: dict[str, type[exp.AggFunc]] = {
    "sum": exp.Sum,
    "min": exp.Min,
    "max": exp.Max,
    "mean": exp.Avg,
}
CHOOSING = frozenset({"min", "max"})
VALUE = "value"
WHOLE_SUM = "whole sum"
"""Marks a sum of whole numbers, which may be past 64 bits before the last number is added."""
ZERO_OF_NOTHING = frozenset({"count", "sum"})


def literal(value: Constant, kind: Kind) -> exp.Expr:
    """A constant in the type of its kind."""
    if isinstance(value.value, str):
        return string(value.value)
    if kind is Kind.FLOAT:
        # −0.0 is 0.0 here
        return cast(string(repr(float(value.value) + 0.0)), "DOUBLE")
    digits = exp.Literal.number(str(abs(int(value.value))))
    return cast(exp.Neg(this=digits) if value.value < 0 else digits, "BIGINT")


def aggregate(function: str, value: exp.Expr | None, kind: Kind) -> exp.Expr:
    """The aggregate of a value over a group; `kind` is that of the result."""
    if function == "count" or value is None:
        return exp.Count(this=exp.Star())
    found = AGGREGATES[function](this=value)
    found.meta[WHOLE_SUM] = function == "sum" and kind is not Kind.FLOAT
    return found


@dataclass
class Scope:
    """What the bodies of one clause have in common: the clause's own, and those of aggregates."""

    kinds: Mapping[str, Kind]
    relations: Mapping[str, Relation]
    guarded: bool = False
    """Whether conditions that can fail ask for the others first, where Spark moves them freely."""
    aliases: int = 0

    def alias(self, letter: str) -> str:
        """A name that no other table of the statement has."""
        self.aliases += 1
        return f"{letter}{self.aliases - 1}"

    def columns(self, atom: Atom) -> tuple[Column, ...]:
        """The columns of an atom's relation."""
        return self.relations[atom.relation].columns


class Body:
    """A conjunction: where each variable comes from, joins and conditions."""

    def __init__(self, of: Scope, literals: Sequence[Literal], reads: Mapping[int, str]) -> None:
        self._of = of
        self._values: dict[str, exp.Expr] = {}
        self._types: dict[str, str] = {}
        self._joins: list[tuple[exp.Expr, list[exp.Expr], str]] = []
        self._conditions: list[exp.Expr] = []
        self._risky: list[exp.Expr] = []
        self._atoms: set[str] = set()
        self._failing: set[str] = set()
        atoms = [each for each in literals if isinstance(each, Atom)]
        later: list[tuple[exp.Column, Expression, Kind]] = []
        for place, atom in enumerate(atoms):
            later += self._join(atom, reads.get(place, atom.relation))
        self._bind([each for each in literals if isinstance(each, Comparison | Aggregated)])
        for found, argument, kind in later:
            self._require(exp.EQ(this=found, expression=self.tree(argument, kind)), argument)
        for each in literals:
            if isinstance(each, Absent):
                self._conditions.append(self._not_there(each.atom))
            elif isinstance(each, Predicate):
                self._predicate(each)

    def select(self, outputs: Sequence[exp.Expr]) -> exp.Select:
        """SELECT of outputs over all that is joined."""
        conditions = [*self._conditions, *self._risky]
        if self._of.guarded and self._risky:
            conditions = [*self._conditions, *self._behind_the_others()]
        if not self._joins:
            query = select(outputs, _unit() if conditions else None)
        else:
            if self._joins[0][2]:  # groups of which there may be none
                self._joins.insert(0, (_unit(), [], ""))
            first, on, _ = self._joins[0]
            query = select(outputs, first)
            conditions = [*on, *conditions]
            for source, on, side in self._joins[1:]:
                kind = "" if on else "CROSS"
                query = query.join(
                    source,
                    on=exp.and_(*on, copy=False) if on else None,
                    join_type=" ".join(filter(None, (side, kind))) or None,
                    copy=False,
                )
        return query.where(*conditions, copy=False) if conditions else query

    def _behind_the_others(self) -> list[exp.Expr]:
        """Conditions that can fail, each where all that can't fail holds."""
        sure = [each for _, on, side in self._joins if not side for each in on]
        sure += [each for each in self._conditions if each.find(exp.Exists) is None]
        if not sure:
            return list(self._risky)
        first = exp.and_(*sure)
        return [exp.Case().when(first.copy(), each).else_(exp.false()) for each in self._risky]

    # --- values ---

    def tree(self, part: Expression, kind: Kind) -> exp.Expr:
        """An expression of a kind."""
        if isinstance(part, Variable):
            return self._values[part.name].copy()
        if isinstance(part, Constant):
            return literal(part, kind)
        if isinstance(part, Call):
            functor = FUNCTORS[part.functor]
            common: Kind | None = None
            if functor.same:
                own = common_kind(part.arguments, self._of.kinds) or Kind.NUMBER
                common = kind if functor.gives is None else own
            arguments = []
            for each in part.arguments:
                wanted = common or kind_of(each, self._of.kinds) or Kind.NUMBER
                arguments.append(self._wide(each, wanted))
            first = common or kind_of(part.arguments[0], self._of.kinds) or Kind.NUMBER
            if part.functor in CHOOSING:
                self._say_valued(arguments)
            return functor.render(first, *arguments)
        raise InternalError(f"{part} is no value")

    def _say_valued(self, trees: Sequence[exp.Expr]) -> None:
        """Tell a recursion what is always so here: no column of an atom is NULL."""
        for found in [each for tree in trees for each in tree.find_all(exp.Column)]:
            told = exp.Not(this=exp.Is(this=found.copy(), expression=exp.Null()))
            if found.table in self._atoms and told not in self._conditions:
                self._conditions.append(told)

    def _wide(self, part: Expression, kind: Kind) -> exp.Expr:
        """A value to compute with: whole numbers in 64 bits."""
        tree = self.tree(part, kind)
        return cast(tree, "BIGINT") if self.type_of(part) == "INT" else tree

    def type_of(self, part: Expression) -> str:
        """INT for a variable of such a column; the type of its kind for all else."""
        if isinstance(part, Variable):
            return self._types.get(part.name, "BIGINT")
        return "BIGINT"

    # --- literals ---

    def _join(self, atom: Atom, name: str) -> list[tuple[exp.Column, Expression, Kind]]:
        """Join an atom's relation; what has to match an expression is left for later."""
        alias = self._of.alias("t")
        self._atoms.add(alias)
        on: list[exp.Expr] = []
        later: list[tuple[exp.Column, Expression, Kind]] = []
        for argument, of in zip(atom.arguments, self._of.columns(atom), strict=True):
            found = column(of.name, alias)
            if isinstance(argument, Wildcard):
                continue
            if isinstance(argument, Constant):
                on.append(exp.EQ(this=found, expression=literal(argument, of.kind)))
            elif not isinstance(argument, Variable):
                later.append((found, argument, of.kind))
            elif argument.name in self._values:
                on.append(exp.EQ(this=self._values[argument.name].copy(), expression=found))
            else:
                self._values[argument.name] = found
                self._types[argument.name] = of.type.ddl
        self._joins.append((exp.alias_(table(name), alias, table=True), on, ""))
        return later

    def _bind(self, literals: Sequence[Comparison | Aggregated]) -> None:
        """Take what gives a variable its value once that is known; the rest are conditions."""
        waiting = list(literals)
        known = -1
        while waiting and known != len(waiting):
            known = len(waiting)
            waiting = [each for each in waiting if not self._bound(each)]
        for each in waiting:
            if not isinstance(each, Comparison):
                raise InternalError(f"{each.function} at {each.place} has no values")
            kind = common_kind((each.left, each.right), self._of.kinds) or Kind.NUMBER
            sides = [self.tree(side, kind) for side in (each.left, each.right)]
            condition = COMPARED[each.operator](this=sides[0], expression=sides[1])
            self._require(condition, each.left, each.right)

    def _bound(self, each: Comparison | Aggregated) -> bool:
        if isinstance(each, Aggregated):
            if any(name not in self._values for name in shared_variables(each)):
                return False
            self._aggregate(each)
            return True
        if each.operator != "=":
            return False
        for one, other in ((each.left, each.right), (each.right, each.left)):
            is_new = isinstance(one, Variable) and one.name not in self._values
            if is_new and all(v.name in self._values for v in variables_of(other)):
                assert isinstance(one, Variable)
                kind = self._of.kinds[one.name]
                value = self.tree(other, kind)
                is_new = kind is Kind.FLOAT and isinstance(other, Call)
                self._values[one.name] = a_number(value) if is_new else value
                self._types[one.name] = self.type_of(other)
                if self._can_fail(other):
                    self._failing.add(one.name)
                return True
        return False

    def _aggregate(self, part: Aggregated) -> None:
        """Join the groups of an aggregate by the variables that it shares with the rest."""
        inner = Body(self._of, part.body, {})
        shared = shared_variables(part)
        keys = [
            named(inner.tree(Variable(n), self._of.kinds[n]), f"k{i}") for i, n in enumerate(shared)
        ]
        value = None
        if part.operand is not None:
            kind = kind_of(part.operand, self._of.kinds) or Kind.NUMBER
            value = inner.tree(part.operand, kind)
            if part.function != "count" and inner.type_of(part.operand) == "INT":
                value = cast(value, "BIGINT")
            if kind is Kind.FLOAT and isinstance(part.operand, Call):
                value = a_number(value)
        kind = self._of.kinds[part.result.name]
        query = inner.select([*keys, named(aggregate(part.function, value, kind), VALUE)])
        if shared:
            query = query.group_by(
                *(
                    each.this.copy() if isinstance(each, exp.Alias) else each.copy()
                    for each in keys
                ),
                copy=False,
            )
        alias = self._of.alias("g")
        on: list[exp.Expr] = [
            exp.EQ(this=self._values[name].copy(), expression=column(f"k{number_}", alias))
            for number_, name in enumerate(shared)
        ]
        result: exp.Expr = column(VALUE, alias)
        if part.function in ("sum", "mean") and self._of.kinds[part.result.name] is Kind.FLOAT:
            result = a_number(result)
        zero = part.function in ZERO_OF_NOTHING
        if zero:
            kind = self._of.kinds[part.result.name]
            nothing = cast(number(0), kind.ddl)
            result = exp.Coalesce(this=result, expressions=[nothing])
        elif not shared:
            self._conditions.append(exp.Not(this=exp.Is(this=result.copy(), expression=exp.Null())))
        self._joins.append(
            (query.subquery(alias, copy=False), on, "LEFT" if shared and zero else "")
        )
        known = self._values.get(part.result.name)
        if known is not None:  # an equality has given it a value already
            self._conditions.append(exp.EQ(this=known.copy(), expression=result))
            return
        self._values[part.result.name] = result
        self._types[part.result.name] = "BIGINT"

    def _not_there(self, atom: Atom) -> exp.Expr:
        alias = self._of.alias("n")
        conditions = [
            exp.EQ(this=column(of.name, alias), expression=self.tree(argument, of.kind))
            for argument, of in zip(atom.arguments, self._of.columns(atom), strict=True)
            if not isinstance(argument, Wildcard)
        ]
        source = exp.alias_(table(atom.relation), alias, table=True)
        query = select([number(1)], source)
        if conditions:
            query = query.where(*conditions, copy=False)
        return exp.Not(this=exp.Exists(this=query))

    def _predicate(self, part: Predicate) -> None:
        arguments = [self.tree(each, Kind.SYMBOL) for each in part.arguments]
        condition = PREDICATE_TREES[part.name](*arguments)
        self._require(condition if part.holds else exp.Not(this=condition), *part.arguments)

    def _require(self, condition: exp.Expr, *parts: Expression) -> None:
        """A condition; those that can fail come after those that can't."""
        fails = any(self._can_fail(each) for each in parts)
        (self._risky if fails else self._conditions).append(condition)

    def _can_fail(self, part: Expression) -> bool:
        return any(FUNCTORS[call.functor].raises for call in calls_in(part)) or any(
            each.name in self._failing for each in variables_of(part)
        )


def _unit() -> exp.Expr:
    """A table of one row, to ask conditions of."""
    return select([named(number(1), "one")], None).subquery("unit", copy=False)
