"""The normalised query of a view, as people read it and as plain Spark runs it.

It is the query that a check recomputes, but for two things. Sums and moments of floating-point
numbers are Spark's own, which round on the way. And logical time is bound: to that of the last tick
that the view has seen, or to Spark's clock before there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ivm_core.compile.lowering import Lowering
from ivm_core.operators.exact_moments import as_people_write_it
from ivm_core.operators.operator import Form
from ivm_core.operators.sql import named, select, text_of
from ivm_core.plan.nodes import CLOCKS, NOW

if TYPE_CHECKING:
    from datetime import datetime

    from ivm_core.compile.program import ViewProgram
    from ivm_core.engine.core import Engine


def normalised_sql(engine: Engine, program: ViewProgram) -> str:
    """What the view means; recursive expressions of its text stand in front again."""
    query = _plain(engine, program)
    if query is None:
        return ""
    recursions = engine.catalog.definition(program.name).recursions.values()
    inner = [name for name in engine.catalog.schedule([program.name]) if name in recursions]
    if inner:
        ctes = [_expression(engine, engine.catalog.program(name)) for name in inner]
        query.set("with_", exp.With(expressions=ctes, recursive=True))
    state = engine.history.states.get(program.name)
    time = engine.history.time_at(state.upto) if state is not None else None
    for table in list(query.find_all(exp.Table)):
        if table.name in CLOCKS:
            alias = table.alias or table.name
            table.replace(_clock(table.name, time).subquery(exp.to_identifier(alias, quoted=True)))
    return text_of(as_people_write_it(query), pretty=True)


def _plain(engine: Engine, program: ViewProgram) -> exp.Query | None:
    lowering = Lowering(engine.catalog.schemas(), program.column_types)
    return lowering.render(program.plan, Form.PLAIN)


def _expression(engine: Engine, program: ViewProgram) -> exp.CTE:
    """A recursive expression under the name of the relation that it has become."""
    columns = [exp.to_identifier(name, quoted=True) for name in program.schema.names]
    alias = exp.TableAlias(this=exp.to_identifier(program.name, quoted=True), columns=columns)
    return exp.CTE(this=_plain(engine, program), alias=alias)


def _clock(relation: str, time: datetime | None) -> exp.Select:
    """SELECT TIMESTAMP '…' AS now."""
    field, ddl = CLOCKS[relation]
    if time is None:
        name = "CURRENT_TIMESTAMP" if relation == NOW else "CURRENT_DATE"
        return select([named(exp.Anonymous(this=name), field)], None)
    value = time.isoformat(" ") if relation == NOW else time.date().isoformat()
    return select([named(exp.cast(exp.Literal.string(value), ddl), field)], None)
