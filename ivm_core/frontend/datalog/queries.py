"""The query of each derived relation, as a view or batch mode runs it.

A relation is the UNION of its clauses, each row once. One with an aggregate in its heads is that
aggregate over the UNION ALL of its clauses, per values of the other columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.frontend.datalog.bodies import aggregate, literal
from ivm_core.frontend.datalog.functors import Kind, a_number
from ivm_core.frontend.datalog.selects import clause_select
from ivm_core.frontend.datalog.syntax import Atom, Variable
from ivm_core.operators.sql import column, named, select, union, union_all
from ivm_core.operators.sql import relation as table
from ivm_core.operators.sql_trees import cast, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ivm_core.frontend.datalog.program import CheckedClause, Program
    from ivm_core.frontend.datalog.relations import Relation

INPUT_SUFFIX = "_input"


def source_names(program: Program) -> dict[str, str]:
    """The source of each input relation: of the same name, unless rules derive it too."""
    taken = {name.casefold() for name in program.relations}
    names = {}
    for name in program.inputs:
        source = name
        if name in program.clauses:
            source = name + INPUT_SUFFIX
            while source.casefold() in taken:
                source += "_"
            taken.add(source.casefold())
        names[name] = source
    return names


def relation_query(
    program: Program,
    name: str,
    sources: Mapping[str, str],
    is_recursive: bool,
    *,
    guarded: bool = False,
) -> exp.Query:
    """What a derived relation is."""
    relation = program.relations[name]
    clauses = program.clauses[name]
    branches = branches_of(program, name, sources, guarded=guarded)
    places = program.aggregates[name]
    if places:
        return aggregated(relation, places, branches)
    if len(branches) > 1:
        return union(branches, distinct=True)
    (branch,) = branches
    if is_recursive or not _keeps_all(clauses[0]):
        branch.set("distinct", exp.Distinct())
    return branch


def branches_of(
    program: Program, name: str, sources: Mapping[str, str], *, guarded: bool = False
) -> list[exp.Select]:
    """A SELECT for each clause of a relation, for all its facts, and for its source."""
    relation = program.relations[name]
    branches = []
    if name in sources:
        names = [column(each.name) for each in relation.columns]
        branches.append(select(names, table(sources[name])))
    facts = [each for each in program.clauses[name] if each.constants is not None]
    if facts:
        branches.append(_facts(relation, facts))
    branches += [
        clause_select(each, program.relations, guarded=guarded)
        for each in program.clauses[name]
        if each.constants is None
    ]
    return branches


def aggregated(
    relation: Relation, places: Mapping[int, str], branches: Sequence[exp.Query]
) -> exp.Select:
    """The aggregate of all branches per key; no row where there is nothing."""
    keys, outputs = [], []
    for place, each in enumerate(relation.columns):
        if place in places:
            value = aggregate(places[place], column(each.name), each.kind)
            if each.type.ddl == "INT" and places[place] in ("sum", "count"):
                value = cast(value, "INT")
            if each.kind is Kind.FLOAT and places[place] in ("sum", "mean"):
                value = a_number(value)
            outputs.append(named(value, each.name))
        else:
            keys.append(column(each.name))
            outputs.append(column(each.name))
    query = select(outputs, union_all(list(branches)).subquery("ways", copy=False))
    if keys:
        return query.group_by(*keys, copy=False)
    some = exp.GT(this=exp.Count(this=exp.Star()), expression=number(0))
    return query.having(some, copy=False)


def _facts(relation: Relation, facts: Sequence[CheckedClause]) -> exp.Select:
    """All facts of a relation as one table."""
    rows: dict[tuple[str, ...], exp.Tuple] = {}
    for fact in facts:
        values = [
            literal(constant, each.kind)
            for constant, each in zip(fact.constants or (), relation.columns, strict=True)
        ]
        rows[tuple(value.sql() for value in values)] = exp.Tuple(expressions=values)
    names = [f"c{place}" for place in range(len(relation.columns))]
    alias = exp.TableAlias(
        this=exp.to_identifier("facts"), columns=[exp.to_identifier(name) for name in names]
    )
    outputs = []
    for name, each in zip(names, relation.columns, strict=True):
        value = column(name, "facts")
        tree = cast(value, "INT") if each.type.ddl == "INT" else value
        outputs.append(named(tree, each.name))
    return select(outputs, exp.Values(expressions=list(rows.values()), alias=alias))


def _keeps_all(checked: CheckedClause) -> bool:
    """Whether two ways in which a clause holds are never one row: every value of them is in it."""
    clause = checked.clause
    if checked.constants is not None:
        return True
    kept = {each.name for each in clause.head.arguments if isinstance(each, Variable)}
    return all(
        isinstance(argument, Variable) and argument.name in kept
        for literal_ in clause.body
        if isinstance(literal_, Atom)
        for argument in literal_.arguments
    )
