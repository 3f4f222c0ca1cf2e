"""Inputs of a program that are tables: bags, with NULLs perhaps, read as the sets that facts are.

Rows that are no facts (NULL, NaN, a number below 0 in a column of `unsigned`) are left out where
a table is read. That a row is there twice shows only in what counts and sums, so there, and
nowhere else, it is read once; a relation is a set by its own query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.datalog.functors import Kind
from ivm_core.frontend.datalog.queries import relation_query, source_names
from ivm_core.operators.sql import column, named, select
from ivm_core.operators.sql import relation as table
from ivm_core.operators.sql_trees import cast, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.frontend.datalog.program import Program
    from ivm_core.frontend.datalog.relations import Column, Relation

COUNTING = (exp.Count, exp.Sum, exp.Avg)
"""Aggregates that tell a row that is there twice from one that is there once."""


def queries_over_tables(program: Program) -> dict[str, exp.Query]:
    """The query of each derived relation, lower strata first, over tables as inputs."""
    sources = source_names(program)
    inputs = {source: program.relations[name] for name, source in sources.items()}
    queries = {}
    for stratum in program.strata:
        for name in stratum.relations:
            query = relation_query(program, name, sources, stratum.is_recursive)
            queries[name] = _over_tables(
                query, inputs, is_aggregated=bool(program.aggregates[name])
            )
    return queries


def _over_tables(
    query: exp.Query, inputs: Mapping[str, Relation], *, is_aggregated: bool
) -> exp.Query:
    reads = [each for each in query.find_all(exp.Table) if each.name in inputs]
    for each in reads:
        facts = _facts(inputs[each.name], each.name)
        if _is_counted(each):
            facts.set("distinct", exp.Distinct())
        each.replace(facts.subquery(each.alias_or_name, copy=False))
    if reads and isinstance(query, exp.Select) and not is_aggregated:
        query.set("distinct", exp.Distinct())
    return query


def _is_counted(read: exp.Table) -> bool:
    around = read.find_ancestor(exp.Select)
    while around is not None:
        if any(item.find(*COUNTING) is not None for item in around.expressions):
            return True
        around = around.find_ancestor(exp.Select)
    return False


def _facts(relation: Relation, source: str) -> exp.Select:
    """The rows of a table that are facts of a relation."""
    outputs, conditions = [], []
    for each in relation.columns:
        outputs.append(_value(each))
        conditions += _conditions(each)
    return select(outputs, table(source)).where(*conditions, copy=False)


def _value(of: Column) -> exp.Expr:
    if of.kind is not Kind.FLOAT:
        return column(of.name)
    # rows are told apart by their bits, and −0.0 is 0.0 here
    zero = cast(number(0), "DOUBLE")
    return named(exp.Add(this=column(of.name), expression=zero), of.name)


def _conditions(of: Column) -> list[exp.Expr]:
    found: list[exp.Expr] = [
        exp.Not(this=exp.Is(this=column(of.name), expression=exp.Null())),
    ]
    if of.kind is Kind.FLOAT:
        found.append(exp.Not(this=exp.IsNan(this=column(of.name))))
    elif of.kind is Kind.UNSIGNED:
        found.append(exp.GTE(this=column(of.name), expression=cast(number(0), of.type.ddl)))
    return found
