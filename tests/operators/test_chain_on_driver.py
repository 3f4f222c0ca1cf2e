"""Chains, sums and orders that the driver tells are those that Spark's statements give."""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from ivm_core.model.names import WEIGHT
from ivm_core.model.schema import Field, Schema, parse_type
from ivm_core.operators.accumulator import OnlySpark
from ivm_core.operators.accumulators import accumulator_for
from ivm_core.operators.aggregate import AggregateStatements
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.chain_on_driver import chained, folded, in_order
from ivm_core.operators.sql import DIALECT, column_scalar, relation, scalar_of, select, text_of
from ivm_core.operators.top import IS_LAST, PLACE
from ivm_core.plan.nodes import Aggregate, AggregateCall, Filter, Project, Scan
from ivm_core.plan.partitioned import Top

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {
    "k": "STRING",
    "d": "DATE",
    "i": "INT",
    "b": "BIGINT",
    "p": "DECIMAL(12,2)",
    "q": "DECIMAL(18,0)",
    "z": "DECIMAL(9,9)",
    "w": "DECIMAL(25,3)",
    "v": "DECIMAL(38,6)",
}
SCHEMA = Schema(tuple(Field(name, parse_type(of)) for name, of in TYPES.items()))
WEIGHTED = arrow_schema(SCHEMA).append(pa.field(WEIGHT, pa.int64()))
SCAN = Scan("t", "t", tuple(TYPES))
OF = {f"t.{name}": parse_type(of) for name, of in TYPES.items()}
CALLS = {
    "n": ("COUNT_STAR", None),
    "c": ("COUNT", "k"),
    "si": ("SUM", "i"),
    "sb": ("SUM", "b"),
    "ab": ("AVG", "b"),
    "sp": ("SUM", "p"),
    "aq": ("AVG", "q"),
    "sz": ("SUM", "z"),
    "sw": ("SUM", "w"),
    "aw": ("AVG", "w"),
    "sv": ("SUM", "v"),
    "av": ("AVG", "v"),
}
VALUES: dict[str, list[Any]] = {
    "k": ["", "a", "B", "b", "é", "\U0001f30a", "￮", None],
    "d": [date(1, 1, 1), date(2026, 2, 28), date(9999, 12, 31), None],
    "i": [0, 1, -1, 2**31 - 1, -(2**31), None],
    "b": [0, -1, 2**63 - 1, -(2**63), 2**32, None],
    "p": [Decimal("0.00"), Decimal("-0.01"), Decimal("9999999999.99"), None],
    "q": [Decimal(10**18 - 1), Decimal(1 - 10**18), Decimal(0), None],
    "z": [Decimal("0.999999999"), Decimal("-0.000000001"), None],
    "w": [Decimal("1.5"), Decimal("9999999999999999999999.999"), Decimal("-0.001"), None],
    "v": [Decimal("999999999999.999999"), Decimal("-0.000001"), Decimal(0), None],
}
LONG = Decimal("1000000000000.000000")
"""One digit more than a BIGINT is certain to hold of them."""


def drawn(draw: random.Random, count: int, weights: list[int]) -> pa.Table:
    columns = {name: [draw.choice(values) for _ in range(count)] for name, values in VALUES.items()}
    columns[WEIGHT] = [draw.choice(weights) for _ in range(count)]
    return pa.table(columns, schema=WEIGHTED)


def statements(keys: tuple[str, ...], calls: dict[str, tuple[str, str | None]]) -> Any:
    made = {
        name: accumulator_for(call, None if of is None else parse_type(TYPES[of]), f"_tv_{name}")
        for name, (call, of) in calls.items()
    }
    node = Aggregate(
        SCAN,
        tuple((key, f"t.{key}") for key in keys),
        tuple(
            AggregateCall(name, call, None if of is None else f"t.{of}")
            for name, (call, of) in calls.items()
        ),
    )
    results = tuple(Field(name, each.result_type) for name, each in made.items())
    fields = tuple(Field(key, parse_type(TYPES[key])) for key in keys)
    return AggregateStatements(node, "t", fields, tuple(made.values()), results)


def of_scan(rows: pa.Table) -> pa.Table:
    return chained(SCAN, {"t": rows}.__getitem__, lambda _: OF)


@pytest.mark.parametrize("keys", [("d", "k"), ("p",), ("b", "i"), ()])
@pytest.mark.parametrize("count", [0, 400])
def test_sums_of_a_change(spark: SparkSession, keys: tuple[str, ...], count: int) -> None:
    draw = random.Random(f"{keys} {count}")
    rows = drawn(draw, count, [1, -1, 3, 0, -1000])
    of = statements(keys, CALLS)
    spark.createDataFrame(
        of_scan(rows),
    ).createOrReplaceTempView("driver_rows")
    asked = of.fold_of(select([exp.Star()], relation("driver_rows")), OF)
    wanted = spark.sql(text_of(asked)).toArrow()
    found = folded(of, of_scan(rows))
    assert found.schema.names == list(of.state_schema.names)
    assert bag(found) == bag(wanted.select(found.column_names))


def bag(table: pa.Table) -> list[str]:
    return sorted(repr(list(row.values())) for row in table.to_pylist())


@pytest.mark.parametrize(
    ("keys", "calls", "weight"),
    [
        (("k",), {"m": ("MIN", "i")}, 1),
        (("k",), {"s": ("SUM", "v")}, 1),
        (("k",), {"n": ("COUNT_STAR", None)}, 1 << 40),
    ],
)
def test_what_the_driver_does_not_add_up(
    keys: tuple[str, ...], calls: dict[str, tuple[str, str | None]], weight: int
) -> None:
    rows = of_scan(drawn(random.Random(1), 3, [weight]))
    place = rows.column_names.index("t.v")
    rows = rows.set_column(place, "t.v", pa.array([None, LONG, None], rows["t.v"].type))
    with pytest.raises(OnlySpark):
        folded(statements(keys, calls), rows)


def scalar(text: str) -> Any:
    tree = sqlglot.parse_one(text, dialect="spark")
    return scalar_of(tree)


def test_a_chain_filters_and_renames() -> None:
    rows = drawn(random.Random(2), 200, [1, -2])
    few = Filter(SCAN, scalar("`t.i` > 0 AND `t.k` <> 'a'"))
    node = Project(few, (("x", column_scalar("t.i")), ("y", column_scalar("t.i"))))
    found = chained(node, {"t": rows}.__getitem__, lambda _: OF)
    assert found.column_names == ["x", "y", WEIGHT]
    assert found.to_pylist() == [
        {"x": row["i"], "y": row["i"], WEIGHT: row[WEIGHT]}
        for row in rows.to_pylist()
        if row["i"] is not None and row["i"] > 0 and row["k"] not in (None, "a")
    ]


@pytest.mark.parametrize(
    "node",
    [
        Filter(SCAN, scalar("`t.i` > 0 AND abs(`t.b`) = 1")),
        Filter(SCAN, scalar("`t.i` > `t.b`")),
        Project(SCAN, (("x", scalar("`t.i` / 2")),)),
        Project(SCAN, (("x", scalar("`t.k` || 'x'")),)),
        Project(SCAN, (("x", scalar("`t.d` = `t.d`")),)),
    ],
)
def test_what_is_not_said_wholly_is_left_to_spark(node: Any) -> None:
    with pytest.raises(OnlySpark):
        chained(node, {"t": drawn(random.Random(3), 5, [1])}.__getitem__, lambda _: OF)


LEFT_TO_SPARK = ["v * p", "w * p * p", "z * z * z * z * z", "v + p", "-p * 2", "p / 2"]
COMPUTED = [
    "i + 1",
    "7",
    "b - i",
    "i * i",
    "p * (1 - z)",
    "p * (1 + p) - 2.50",
    "0.05 * p",
    "p * -3",
    "i * p",
    "b + p",
    "p + w",
    "q * p * (1 + p)",
    "w * w",
    "w * p * 1.5",
    "100 - b",
    "1.0 - p",
    *LEFT_TO_SPARK,
]


@pytest.mark.parametrize("text", COMPUTED)
def test_arithmetic_has_the_values_and_types_of_spark(spark: SparkSession, text: str) -> None:
    """Or it is left to Spark: where digits would be dropped, where a value doesn't fit."""
    draw = random.Random(text)
    small = {"i": [0, 7, -3, None], "b": [2**40, -5, None], "v": [Decimal("-1.000001"), None]}
    small |= {"w": [Decimal("12345.678"), None], "q": [Decimal(-77), None]}
    small |= {"p": [Decimal("-12.34"), Decimal("0.01"), None]}
    told = 0
    for values in (VALUES, VALUES | small):
        columns = {name: [draw.choice(values[name]) for _ in range(40)] for name in TYPES}
        rows = pa.table({**columns, WEIGHT: [1] * 40}, schema=WEIGHTED)
        spark.createDataFrame(rows).createOrReplaceTempView("driver_rows")
        asked = spark.sql(f"SELECT {text} AS x FROM driver_rows")
        of = parse_type(asked.schema["x"].dataType.simpleString().upper())
        tree = sqlglot.parse_one(text, dialect=DIALECT)
        for each in list(tree.find_all(exp.Column)):
            each.replace(exp.column(exp.to_identifier(f"t.{each.name}", quoted=True)))
        node = Project(SCAN, (("x", scalar_of(tree)),))
        try:
            found = chained(node, {"t": rows}.__getitem__, lambda _, of=of: {"x": of})
        except OnlySpark:
            continue
        told += 1
        assert found.column("x").to_pylist() == asked.toArrow().column("x").to_pylist()
    assert bool(told) != (text in LEFT_TO_SPARK)


ORDERS = [
    ["`k`", "`i` DESC"],
    ["`p` DESC NULLS FIRST", "`k` ASC NULLS LAST"],
    ["`d` DESC", "`b`", "`k` DESC NULLS LAST"],
]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("limit", [1, 30])
def test_first_rows_and_what_came(spark: SparkSession, order: list[str], limit: int) -> None:
    """Against Spark's own order of the same rows."""
    draw = random.Random(f"{order} {limit}")
    ties = [f"`{name}`" for name in TYPES]
    total = ", ".join([*order, *ties])
    before = drawn(draw, min(limit, 25), [1])
    change = pa.concat_tables(
        [
            drawn(draw, 20, [1, 2]),
            before.slice(0, 1).set_column(len(TYPES), WEIGHT, pa.array([-1])),
        ]
    )
    plain = [f"`{name}`" for name in TYPES]
    listed = ", ".join(plain)
    spark.createDataFrame(before).createOrReplaceTempView("driver_before")
    spark.createDataFrame(change).createOrReplaceTempView("driver_change")
    known = (
        f"SELECT {listed}, SUM(_weight) AS times FROM (SELECT * FROM driver_before UNION ALL "
        f"SELECT * FROM driver_change) GROUP BY {listed} HAVING SUM(_weight) > 0"
    )
    copies = (
        f"SELECT {listed}, 0 AS _is_last FROM ({known}) "
        "LATERAL VIEW explode(sequence(1, times)) g AS copy"
    )
    last = (
        f"SELECT {listed}, 1 AS _is_last FROM (SELECT *, row_number() OVER (ORDER BY {total}) AS n "
        f"FROM driver_before) ORDER BY n DESC LIMIT 1"
    )
    asked = f"SELECT * FROM (({copies}) UNION ALL ({last})) ORDER BY {total}, _is_last"
    wanted = spark.sql(asked).toArrow()
    scan = Scan("t", "t", tuple(TYPES))
    prefixed = [text.replace("`", "`t.", 1) for text in [*order, *ties]]
    ordered = [sqlglot.parse_one(f"SELECT 1 ORDER BY {text}", dialect="spark") for text in prefixed]
    keys = tuple(scalar_of(each.args["order"].expressions[0]) for each in ordered)
    found = in_order(Top(scan, (), keys, limit), before, of_scan(change), SCHEMA)
    assert found[PLACE].to_pylist() == list(range(1, found.num_rows + 1))
    names = [*TYPES, IS_LAST]
    assert found.select(names).to_pylist() == wanted.select(names).to_pylist()


def test_no_first_rows_yet() -> None:
    change = of_scan(drawn(random.Random(5), 3, [1]))
    keys = tuple(column_scalar(name) for name in change.column_names[:-1])
    found = in_order(Top(SCAN, (), keys, 10), WEIGHTED.empty_table(), change, SCHEMA)
    assert found[IS_LAST].to_pylist() == [0, 0, 0]
