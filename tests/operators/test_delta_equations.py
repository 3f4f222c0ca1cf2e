"""Every stateless operator's equation on random Z-sets: NEW = OLD + Δ, whatever changes.

Only the rendered statements are run, without store or engine.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from ivm_core.compile.lowering import Lowering
from ivm_core.compile.program import compile_view
from ivm_core.engine.analysis import SparkAnalyser
from ivm_core.engine.gears import Gears, LocalRows
from ivm_core.engine.layout import weighted
from ivm_core.frontend.sql import parse_view
from ivm_core.model.names import WEIGHT
from ivm_core.model.schema import Field, Schema
from ivm_core.model.types import BIGINT
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.consolidation import consolidated
from ivm_core.operators.operator import Form
from ivm_core.operators.scan import bound_name
from ivm_core.operators.sql import column, named, select, text_of, union_all, weight
from tests.compile.plans import CATALOG

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from sqlglot import exp

VALUES = {
    "INT": (0, 1, 2, None),
    "BIGINT": (0, 1, 2, None),
    "STRING": ("p", "q", None),
    "DOUBLE": (0.0, -0.0, 1.5, None),
}
QUERIES = (
    "SELECT x, s FROM a",
    "SELECT x + 1 AS u, upper(s) AS t FROM a WHERE x > 0 OR s = 'p'",
    "SELECT x FROM a UNION ALL SELECT z FROM b UNION ALL SELECT x FROM a",
    "SELECT a.s, b.y FROM a JOIN b ON a.x = b.x",
    "SELECT a.s, b.y FROM a, b WHERE a.x < b.x AND a.y = b.y",
    "SELECT p.s, q.y FROM a p JOIN a q ON p.x = q.y",
    "SELECT a.d, a.x * b.y AS m, c.s FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y",
    "SELECT a.s, d.s AS t FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y JOIN d ON c.z = d.z",
    "SELECT q.x, c.s FROM (SELECT x, y FROM a UNION ALL SELECT y, x FROM b) q JOIN c ON q.y <=> c.y",
    "SELECT q.u, c.z FROM (SELECT a.x + b.y AS u FROM a JOIN b ON a.x = b.x) q JOIN c ON q.u = c.y",
    "SELECT a.x / (b.y + 1) AS r FROM a CROSS JOIN b WHERE a.y % 2 = 0",
)


@pytest.fixture(scope="module")
def gears(spark: SparkSession) -> Gears:
    return Gears(spark)


@pytest.mark.parametrize("sql", QUERIES)
def test_new_is_old_and_delta(sql: str, gears: Gears) -> None:
    plan = parse_view(sql, CATALOG, "view v").plan
    program = compile_view("v", sql, lambda: plan, CATALOG, SparkAnalyser(gears, "view v"))
    body = program.stages[-1].stage.body
    random = Random(sql)
    reads = sorted(body.relations)
    for dirty in (frozenset(random.sample(reads, 1)), frozenset(reads)):
        lowering = Lowering(CATALOG, program.stage_types, dirty)
        forms = [(lowering.render(body, form), form) for form in (Form.OLD, Form.DELTA, Form.NEW)]
        parts = [_signed(query, body.columns, form) for query, form in forms if query is not None]
        types = {each.name: each.type for each in program.schema}
        statement = text_of(consolidated(union_all(parts), types))
        bound: dict[str, LocalRows] = {}
        for name in reads:
            old, delta = _zsets(random, CATALOG[name], is_dirty=name in dirty)
            schema = weighted(CATALOG[name])
            bound[bound_name(name, Form.OLD)] = LocalRows(old, schema)
            bound[bound_name(name, Form.DELTA)] = LocalRows(delta, schema)
        schema = Schema((*program.schema, Field(WEIGHT, BIGINT)), internal=True)
        left = gears.rows(statement, bound, schema)
        assert left.num_rows == 0, left.to_pylist()


def _signed(query: exp.Query, columns: tuple[str, ...], form: Form) -> exp.Query:
    sign = -weight() if form is Form.NEW else weight()
    return select([*(column(name) for name in columns), named(sign, WEIGHT)], query)


def _zsets(random: Random, schema: Schema, *, is_dirty: bool) -> tuple[pa.Table, pa.Table]:
    """Rows as they were, and a change that takes none away that is not there."""
    rows = [_row(random, schema) for _ in range(random.randint(0, 8))]
    old = [(row, random.randint(1, 2)) for row in rows]
    delta = []
    if is_dirty:
        delta = [(row, -1) for row, _ in old if random.random() < 0.4]
        delta += [(_row(random, schema), random.randint(1, 2)) for _ in range(random.randint(0, 4))]
    return _table(schema, old), _table(schema, delta)


def _row(random: Random, schema: Schema) -> tuple[object, ...]:
    return tuple(random.choice(VALUES[each.type.kind]) for each in schema)


def _table(schema: Schema, zset: list[tuple[tuple[object, ...], int]]) -> pa.Table:
    wanted = arrow_schema(weighted(schema))
    rows = [dict(zip(wanted.names, (*row, count), strict=True)) for row, count in zset]
    return (
        wanted.empty_table() if not rows else type(wanted.empty_table()).from_pylist(rows, wanted)
    )
