"""Batch mode: a program evaluated once over given facts, without flow, state or ticks.

    run(program, {"edge": [(1, 2), (2, 3)]})["tc"]          # [(1, 2), (1, 3), (2, 3)]

It is what an incremental session is compared with, so it shares the translation of clauses with it
and nothing else: stratum by stratum, and within a recursive one semi-naively, where every round
joins what the round before has found with all there is. Few rows stay on the driver, many are kept
by Spark between rounds, so that no plan grows. Sums of floats are Spark's own, rounded on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession
from sqlglot import exp

from ivm_core.api.arguments import recursion_limits
from ivm_core.api.fact_rows import ByRelation, FactRows, facts_in
from ivm_core.api.facts import checked_facts
from ivm_core.api.session import program_text
from ivm_core.engine.active_session import active_session_kept
from ivm_core.engine.evaluation import without_advice
from ivm_core.engine.gears import FrameRows, Gears, LocalRows
from ivm_core.engine.local_spark import local_spark
from ivm_core.engine.relations import LOCAL_ROWS
from ivm_core.frontend.datalog.bodies import WHOLE_SUM
from ivm_core.frontend.datalog.program import Program, checked_program
from ivm_core.frontend.datalog.queries import aggregated, branches_of, relation_query
from ivm_core.frontend.datalog.selects import clause_select
from ivm_core.model.errors import DatalogError, TickFailed, UnknownName, UserError
from ivm_core.model.names import did_you_mean
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.sql import column, select, text_of, union
from ivm_core.operators.sql import relation as table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from pyspark.sql import DataFrame

    from ivm_core.api.fact_rows import Fact
    from ivm_core.api.facts import Rows
    from ivm_core.frontend.datalog.strata import Stratum
    from ivm_core.model.schema import Schema

MOST_ITERATIONS = 10_000
ROUNDS_APART = 10
"""Rounds whose rows are kept apart before they are copied together: a plan never has more."""
Kept = LocalRows | FrameRows


class BatchResult(ByRelation["Fact"]):
    """The facts of every output relation, each like a list of tuples with `.df`."""

    def __init__(self, rows: Mapping[str, FactRows[Fact]], iterations: Mapping[str, int]) -> None:
        """Use `run`."""
        super().__init__(rows)
        self.iterations = dict(iterations)
        """Rounds that each recursive relation took."""


def run(
    program: str | PathLike[str],
    facts: Mapping[str, Rows] | None = None,
    spark: SparkSession | None = None,
    *,
    max_iterations: int = MOST_ITERATIONS,
) -> BatchResult:
    """The output relations of a program over given facts of its input relations.

    Raises what `Session.create` and `Session.insert` do for a program or facts that don't fit, and
    `TickFailed` where a rule can't be evaluated or a recursion takes more rounds than it may.
    """
    checked = checked_program(program_text(program))
    given = {} if facts is None else facts
    if not isinstance(given, Mapping):
        raise UserError(
            f"facts are a mapping of relations, not {type(given).__name__}",
            fix='give them by relation: {"edge": [(1, 2), (2, 3)]}',
        )
    for name in given:
        if name not in checked.inputs:
            raise UnknownName(
                f"there is no input relation {name!r}",
                fix=f"{did_you_mean(name, checked.inputs)}there are: {', '.join(checked.inputs)}",
            )
    recursion_limits(max_iterations, None)
    rows = {n: checked_facts(checked.relations[n], given.get(n, [])) for n in checked.inputs}
    session = spark or SparkSession.getActiveSession() or local_spark()
    with active_session_kept(lambda: session):
        return _Batch(checked, Gears(session), max_iterations).result(rows)


class _Batch:
    """One evaluation."""

    def __init__(self, program: Program, gears: Gears, most: int) -> None:
        self._program = program
        self._gears = gears
        self._most = most
        self._sources = {n: f"{n} given" for n in program.inputs if n in program.clauses}
        self._known: dict[str, Kept] = {}
        self._iterations: dict[str, int] = {}

    def result(self, facts: Mapping[str, Sequence[Fact]]) -> BatchResult:
        """Evaluate stratum by stratum."""
        for name, rows in facts.items():
            schema = self._schema(name)
            self._known[self._sources.get(name, name)] = LocalRows(_table(rows, schema), schema)
        for stratum in self._program.strata:
            if stratum.is_recursive:
                self._iterate(stratum)
            else:
                (name,) = stratum.relations
                query = relation_query(
                    self._program, name, self._sources, is_recursive=False, guarded=True
                )
                self._known[name] = self._kept(name, query)
        outputs = {name: self._rows(name) for name in self._program.outputs}
        self._gears.release()
        return BatchResult(outputs, self._iterations)

    # --- recursion ---

    def _iterate(self, stratum: Stratum) -> None:
        names = stratum.relations
        fresh = {name: self._first(name, names) for name in names}
        for name in names:
            self._known[name] = fresh[name]
        rounds = 0
        while any(map(_size, fresh.values())):
            rounds += 1
            if rounds > self._most:
                raise TickFailed(
                    f"the recursion of {', '.join(names)} has not ended after {self._most} rounds",
                    fix="bound it by a comparison, or give a larger max_iterations=",
                    view=names[0],
                )
            for name in names:
                self._known[_delta(name)] = fresh[name]
            found = {name: self._next(name, names) for name in names}
            for name in names:
                self._known[name] = self._grown(name, found[name], rounds)
            fresh = found
        for name in names:
            self._iterations[name] = rounds
            self._known.pop(_delta(name), None)

    def _first(self, name: str, stratum: Sequence[str]) -> Kept:
        """What doesn't need the stratum itself."""
        program = self._program
        needed = [
            each
            for each in program.clauses[name]
            if not any(atom.relation in stratum for atom in each.clause.atoms)
        ]
        if not needed and name not in self._sources:
            return LocalRows(_table([], self._schema(name)), self._schema(name))
        part = Program(
            program.relations,
            program.inputs,
            program.outputs,
            {**program.clauses, name: tuple(needed)},
            program.strata,
        )
        branches = branches_of(part, name, self._sources, guarded=True)
        return self._kept(name, self._combined(name, branches))

    def _next(self, name: str, stratum: Sequence[str]) -> Kept:
        """What follows from what the round before has found, and is new."""
        branches = []
        for checked in self._program.clauses[name]:
            for place, atom in enumerate(checked.clause.atoms):
                if atom.relation in stratum and _size(self._known[_delta(atom.relation)]):
                    reads = {place: _delta(atom.relation)}
                    branches.append(
                        clause_select(checked, self._program.relations, reads, guarded=True)
                    )
        if not branches:
            return LocalRows(_table([], self._schema(name)), self._schema(name))
        found = self._combined(name, branches)
        if self._program.aggregates[name]:
            return self._kept(name, self._improving(name, found))
        known = select([column(each) for each in self._schema(name).names], table(name))
        return self._kept(name, exp.Except(this=found, expression=known, distinct=True))

    def _combined(self, name: str, branches: Sequence[exp.Select]) -> exp.Query:
        places = self._program.aggregates[name]
        if places:
            return aggregated(self._program.relations[name], places, branches)
        if len(branches) == 1:
            return branches[0].distinct(copy=False)
        result = union(branches, distinct=True)
        # a set operation over a set operation needs its parentheses
        names = [column(each) for each in self._schema(name).names]
        return select(names, result.subquery("ways", copy=False))

    def _improving(self, name: str, found: exp.Query) -> exp.Select:
        """Keys that are new, and values that are better than those that were known."""
        ((place, function),) = self._program.aggregates[name].items()
        names = self._schema(name).names
        value = names[place]
        same = [
            exp.EQ(this=column(key, "found"), expression=column(key, "known"))
            for key in names
            if key != value
        ]
        better = exp.LT if function == "min" else exp.GT
        condition = exp.or_(
            exp.Is(this=column(value, "known"), expression=exp.Null()),
            better(this=column(value, "found"), expression=column(value, "known")),
        )
        return (
            select([column(each, "found") for each in names], found.subquery("found"))
            .join(
                exp.alias_(table(name), "known", table=True), on=exp.and_(*same), join_type="LEFT"
            )
            .where(condition)
        )

    def _grown(self, name: str, found: Kept, rounds: int) -> Kept:
        """What was known, with what was found; of an aggregate the better value of each key."""
        if not _size(found):
            return self._known[name]
        names = [column(each) for each in self._schema(name).names]
        both = exp.union(
            select(list(names), table(name)),
            select([each.copy() for each in names], table(FOUND)),
            distinct=False,
        )
        places = self._program.aggregates[name]
        self._known[FOUND] = found
        try:
            if places:
                query: exp.Query = aggregated(self._program.relations[name], places, [both])
                return self._kept(name, query)
            known = self._known[name]
            if isinstance(known, LocalRows) and isinstance(found, LocalRows):
                rows = pa.concat_tables([known.table, found.table]).combine_chunks()
                return LocalRows(rows, known.schema)
            if rounds % ROUNDS_APART:
                return FrameRows(self._high(known).unionAll(self._high(found)))
            return self._kept(name, both)
        finally:
            del self._known[FOUND]

    def _high(self, rows: Kept) -> DataFrame:
        return self._gears.frame_in(self._gears.high, rows)

    # --- rows ---

    def _schema(self, name: str) -> Schema:
        return self._program.relations[name].schema

    def _kept(self, name: str, query: exp.Query) -> Kept:
        """The rows of a query: on the driver where all that it reads is, else with Spark."""
        for each in [e for e in query.find_all(exp.Sum) if e.meta.get(WHOLE_SUM)]:
            each.replace(_of_any_size(each))
        text = text_of(query)
        read = {each.name: self._known[each.name] for each in _tables(query, self._known)}
        schema = self._schema(name)
        local = {n: each for n, each in read.items() if isinstance(each, LocalRows)}
        small = sum(each.table.num_rows for each in local.values()) <= LOCAL_ROWS
        try:
            if small and len(local) == len(read):
                return LocalRows(self._gears.rows(text, local, schema), schema)
            with self._gears.reading(text, read) as frame:
                return FrameRows(frame.localCheckpoint())
        except Exception as error:
            raise self._failed(name, error) from error

    def _failed(self, name: str, error: Exception) -> Exception:
        rules = dict.fromkeys(each.clause.rule.text for each in self._program.clauses[name])
        return TickFailed(
            f"relation {name} can't be evaluated",
            f"relation {name}\n" + "\n".join(rules),
            "correct the facts or the rules",
            view=name,
            cause=without_advice(str(error).partition("\n\nJVM stacktrace")[0]),
        )

    def _rows(self, name: str) -> FactRows[Fact]:
        kept = self._known[name]

        def frame() -> DataFrame:
            return self._gears.frame_in(self._gears.spark, kept)

        if isinstance(kept, LocalRows):
            return FactRows(lambda: facts_in(kept.table), frame)
        return FactRows(lambda: facts_in(kept.frame.toArrow()), frame)


FOUND = "found in a round"


def _of_any_size(total: exp.Sum) -> exp.Expr:
    """A sum that fails only where the whole doesn't fit, whatever the order of its parts."""
    wide = exp.cast(total.this.copy(), "DECIMAL(38, 0)", dialect="spark")
    return exp.cast(exp.Sum(this=wide), "BIGINT", dialect="spark")


def _delta(name: str) -> str:
    """What the round before has found of a relation; no relation can have such a name."""
    return f"{name} of late"


def _tables(query: exp.Query, known: Mapping[str, Kept]) -> list[exp.Table]:
    return [each for each in query.find_all(exp.Table) if each.name in known]


def _size(rows: Kept) -> int:
    """How many rows there are; of rows that Spark keeps, whether there are any."""
    if isinstance(rows, LocalRows):
        return int(rows.table.num_rows)
    return 0 if rows.frame.isEmpty() else 1


def _table(rows: Sequence[Fact], schema: Schema) -> pa.Table:
    types = arrow_schema(schema)
    columns = zip(*dict.fromkeys(rows), strict=True) if rows else [[] for _ in types]
    arrays = [pa.array(v, each.type) for v, each in zip(columns, types, strict=True)]
    return pa.table(arrays, names=types.names)


__all__ = ["BatchResult", "DatalogError", "run"]
