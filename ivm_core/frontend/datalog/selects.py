"""One clause as one SELECT: atoms and groups are joined, a negation is NOT EXISTS.

    tc(x, z) :- tc(x, y), edge(y, z).      SELECT t0.x, t1.y FROM tc t0 JOIN edge t1 ON t0.y = t1.x

Its rows are the ways in which the body holds, each once, so that count, sum and mean need nothing
else; a relation takes them as a set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.frontend.datalog.bodies import Body, Scope
from ivm_core.frontend.datalog.functors import Kind, a_number
from ivm_core.frontend.datalog.kinds import kind_of
from ivm_core.frontend.datalog.syntax import Call, Expression, HeadAggregate
from ivm_core.operators.sql import named
from ivm_core.operators.sql_trees import cast, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from ivm_core.frontend.datalog.program import CheckedClause
    from ivm_core.frontend.datalog.relations import Column, Relation


def clause_select(
    checked: CheckedClause,
    relations: Mapping[str, Relation],
    reads: Mapping[int, str] | None = None,
    *,
    guarded: bool = False,
) -> exp.Select:
    """The clause's rows, in the columns and types of the relation of its head.

    `reads` names other tables for some of its atoms, by their number. Where `guarded`, Spark can't
    ask a condition that fails of rows that the others leave out.
    """
    scope = Scope(checked.kinds, relations, guarded)
    body = Body(scope, checked.clause.body, reads or {})
    head = checked.clause.head
    outputs = [
        named(_output(body, argument, of, checked.kinds), of.name)
        for argument, of in zip(head.arguments, scope.columns(head), strict=True)
    ]
    return body.select(outputs)


def _output(body: Body, argument: Expression, of: Column, kinds: Mapping[str, Kind]) -> exp.Expr:
    if isinstance(argument, HeadAggregate):
        if argument.operand is None:
            return cast(number(1), of.type.ddl)  # what is counted is the row
        if argument.function == "mean":
            kind = kind_of(argument.operand, kinds) or Kind.FLOAT
            value = body.tree(argument.operand, kind)
            is_new = kind is Kind.FLOAT and isinstance(argument.operand, Call)
            return a_number(value) if is_new else cast(value, "DOUBLE")
        argument = argument.operand
    tree = body.tree(argument, of.kind)
    if of.kind is Kind.FLOAT and isinstance(argument, Call):
        return a_number(tree)
    if of.type.ddl == "INT" and body.type_of(argument) != "INT":
        return cast(tree, "INT")
    if of.type.ddl == "BIGINT" and body.type_of(argument) == "INT":
        return cast(tree, "BIGINT")
    return tree
