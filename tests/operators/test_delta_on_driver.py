"""Deltas that the driver tells are the differences of Spark's answers before and after."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from ivm_core.compile.lowering import Lowering
from ivm_core.compile.program import compile_view
from ivm_core.engine import telling
from ivm_core.engine.analysis import SparkAnalyser
from ivm_core.engine.gears import Gears
from ivm_core.engine.telling import Told
from ivm_core.frontend.sql import parse_view
from ivm_core.model.names import WEIGHT
from ivm_core.operators import pairs_on_driver
from ivm_core.operators.accumulator import OnlySpark, TooMany
from ivm_core.operators.delta_on_driver import DeltaOnDriver
from ivm_core.operators.netting import net, stacked
from ivm_core.operators.operator import Form
from ivm_core.operators.row_sets import taken_away
from ivm_core.plan.nodes import Join
from tests.operators.driver_rows import SCHEMA, SMALL, WEIGHTED, drawn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ivm_core.compile.program import ViewProgram

    Tables = dict[tuple[str, Form], pa.Table]

CATALOG = dict.fromkeys("abc", SCHEMA)
FEW: dict[str, list[Any]] = {name: values[-3:] for name, values in SMALL.items()}
"""So few values that rows meet, and come and go again."""
QUERIES = (
    "SELECT k, i + 1 AS j FROM a WHERE i > 0 OR k = 'b'",
    "SELECT i FROM a UNION ALL SELECT b FROM b UNION ALL SELECT i FROM a",
    "SELECT a.k, b.p FROM a JOIN b ON a.k = b.k",
    "SELECT a.k, b.p FROM a JOIN b ON a.i = b.b",
    "SELECT a.k, b.k AS l FROM a JOIN b ON a.p = b.p AND b.d = a.d",
    "SELECT a.k, b.k AS l FROM a JOIN b ON a.k <=> b.k AND a.d <=> b.d",
    "SELECT a.i, b.i AS j FROM a JOIN b ON a.k <=> b.k AND a.i = b.i AND a.b < b.b",
    "SELECT a.k, b.k AS l, c.k AS m FROM a JOIN c ON a.i = c.i JOIN b ON b.i = c.i",
    "SELECT a.k, c.p FROM a, b, c WHERE a.k = b.k AND b.i = c.i AND c.p = a.p",
    "SELECT a.k, b.k AS l FROM a CROSS JOIN b",
    "SELECT a.k, b.k AS l FROM a, b WHERE a.i > b.i OR a.k LIKE '%b%'",
    "SELECT x.k, y.k AS l FROM a x JOIN a y ON x.i = y.i JOIN b ON b.k = y.k",
    "SELECT q.k, c.i FROM (SELECT k, i FROM a UNION ALL SELECT k, i FROM b WHERE i < 5) q "
    "JOIN c ON q.k = c.k",
    "SELECT year(a.d) AS y, CASE WHEN b.k = 'b' THEN a.p * (1 - b.p) ELSE 0 END AS v, a.p / b.p AS r "
    "FROM a JOIN b ON a.i = b.i WHERE a.k IN ('b', 'é', '') OR b.d BETWEEN DATE '0001-01-01' AND a.d",
)


@pytest.fixture(scope="module")
def gears(spark: SparkSession) -> Gears:
    return Gears(spark)


def compiled(sql: str, gears: Gears) -> ViewProgram:
    plan = parse_view(sql, CATALOG, "view v").plan
    return compile_view("v", sql, lambda: plan, CATALOG, SparkAnalyser(gears, "view v"))


def told(program: ViewProgram, tables: Tables, dirty: frozenset[str]) -> pa.Table:
    """What the driver says of the view's change."""
    lowering = Lowering(CATALOG, program.stage_types, dirty)
    known = DeltaOnDriver(lambda *which: tables[which], lowering.types, dirty)
    found = known.change(program.stages[-1].stage.body)
    return found.rename_columns([*program.schema.names, WEIGHT])


def verdict(program: ViewProgram, dirty: frozenset[str]) -> Told:
    """What the driver says before it has any rows."""
    lowering = Lowering(CATALOG, program.stage_types, dirty)
    body, nothing = program.stages[-1].stage.body, frozenset[str]()
    return telling.told(
        body,
        net_of_none,
        CATALOG.__getitem__,
        lowering.types,
        dirty=dirty,
        empty=nothing,
        elsewhere=nothing,
    )


def net_of_none(rows: pa.Table) -> pa.Table:
    assert not rows.num_rows
    return rows


def answer(gears: Gears, sql: str, tables: dict[str, pa.Table]) -> pa.Table:
    """What Spark says of plain rows, each as often as its weight."""
    for name, rows in tables.items():
        copies = np.repeat(np.arange(rows.num_rows), rows.column(WEIGHT).to_numpy())
        plain = rows.take(pa.array(copies)).drop_columns([WEIGHT])
        gears.low.createDataFrame(plain).createOrReplaceTempView(name)
    found = gears.low.sql(sql).toArrow()
    return found.append_column(WEIGHT, pa.array([1] * found.num_rows, pa.int64()))


def states(draw: random.Random, count: int, *, changes: bool) -> tuple[pa.Table, pa.Table]:
    """Netted rows before, and a change of them: some go, some of those come back, others come."""
    old = net(drawn(draw, count, [1, 1, 2], FEW), SCHEMA)
    if not changes:
        return old, WEIGHTED.empty_table()
    gone = taken_away(old.slice(0, old.num_rows // 2))
    came = drawn(draw, count // 2, [1, 3], FEW)
    return old, net(stacked(gone, came), SCHEMA)


@pytest.mark.parametrize("sql", QUERIES)
@pytest.mark.parametrize("count", [1, 12])
def test_the_delta_is_the_difference_of_sparks_answers(sql: str, count: int, gears: Gears) -> None:
    program = compiled(sql, gears)
    draw = random.Random(f"{sql} {count}")
    reads = sorted(program.stages[-1].stage.body.relations)
    for dirty in (frozenset(draw.sample(reads, 1)), frozenset(reads)):
        tables: Tables = {}
        for name in reads:
            old, delta = states(draw, count, changes=name in dirty)
            tables |= {(name, Form.OLD): old, (name, Form.DELTA): delta}
        before = {name: tables[name, Form.OLD] for name in reads}
        after = {
            name: net(stacked(old, tables[name, Form.DELTA]), SCHEMA)
            for name, old in before.items()
        }
        gone = taken_away(answer(gears, sql, before))
        wanted = net(stacked(answer(gears, sql, after), gone), program.schema)
        found = net(told(program, tables, dirty), program.schema)
        assert bag(found) == bag(wanted)
        body = program.stages[-1].stage.body
        looks_up = any(isinstance(node, Join) for node in body.walk())
        assert verdict(program, dirty) is (Told.WITH_LOOKUPS if looks_up else Told.FROM_CHANGE)


def bag(table: pa.Table) -> list[str]:
    return sorted(repr(list(row.values())) for row in table.to_pylist())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k FROM a WHERE i > 0 AND abs(b) = 1",
        "SELECT k || 'x' AS x FROM a",
        "SELECT i > 0 AS x FROM a",
        "SELECT a.k FROM a JOIN b ON a.k = upper(b.k)",
        "SELECT a.k FROM a JOIN b ON a.p = b.w",
        "SELECT k, explode(array(1, 2)) AS x FROM a",
    ],
)
def test_what_the_driver_leaves_to_spark(sql: str, gears: Gears) -> None:
    program = compiled(sql, gears)
    draw = random.Random(sql)
    old, delta = states(draw, 9, changes=True)
    tables = {(name, Form.OLD): old for name in "ab"}
    tables |= {(name, Form.DELTA): delta for name in "ab"}
    with pytest.raises(OnlySpark):
        told(program, tables, frozenset("ab"))
    assert verdict(program, frozenset("ab")) is Told.NEVER


@pytest.mark.parametrize(
    ("sql", "pairs"),
    [
        ("SELECT a.i FROM a CROSS JOIN b", 24),
        ("SELECT a.i FROM a JOIN b ON a.k = b.k", 24),
        ("SELECT a.i FROM a JOIN b ON a.k <=> b.k", 24),
    ],
)
def test_many_pairs_are_left_to_spark(
    sql: str, pairs: int, gears: Gears, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are counted before they are made, also where most keys have few."""
    program = compiled(sql, gears)
    ours = drawn(random.Random(1), 4, [1], {**SMALL, "k": ["b"]})
    theirs = drawn(random.Random(2), 6, [1], {**SMALL, "k": ["b"]})
    others = drawn(random.Random(3), 40, [1], {**SMALL, "k": [str(n) for n in range(1000)]})
    tables = {("a", Form.DELTA): ours, ("b", Form.OLD): theirs}
    if "JOIN b ON" in sql:
        tables["b", Form.OLD] = pa.concat_tables([theirs, others])
    for most, is_made in ((pairs, True), (pairs - 1, False)):
        monkeypatch.setattr(pairs_on_driver, "MOST_PAIRS", most)
        if is_made:
            assert told(program, tables, frozenset("a")).num_rows == pairs
        else:
            with pytest.raises(OnlySpark):
                told(program, tables, frozenset("a"))


def test_pairs_of_long_texts_are_left_to_spark(
    gears: Gears, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One long text stands in many pairs; those of several terms count together."""
    monkeypatch.setattr(pairs_on_driver, "MOST_BYTES", 1 << 21)
    program = compiled("SELECT a.k, b.i FROM a JOIN b ON a.d = b.d", gears)
    ours = drawn(random.Random(1), 4, [1], {**SMALL, "k": ["x" * 1000], "d": SMALL["d"][:1]})
    for count, is_made in ((400, True), (600, False)):
        theirs = drawn(random.Random(2), count, [1], {**SMALL, "d": SMALL["d"][:1]})
        tables = {("a", Form.DELTA): ours, ("b", Form.OLD): theirs}
        if is_made:
            assert told(program, tables, frozenset("a")).num_rows == 4 * count
        else:
            with pytest.raises(TooMany):
                told(program, tables, frozenset("a"))


def test_weights_that_multiply_beyond_bigint_are_left_to_spark(gears: Gears) -> None:
    program = compiled("SELECT a.i FROM a CROSS JOIN b", gears)
    rows = drawn(random.Random(1), 1, [1 << 40])
    with pytest.raises(OnlySpark):
        told(program, {("a", Form.DELTA): rows, ("b", Form.OLD): rows}, frozenset("a"))
