"""Sums, extremes and orders that the driver tells are those that Spark's statements give."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from ivm_core.model.names import PLACE, WEIGHT
from ivm_core.model.schema import Field, parse_type
from ivm_core.operators.accumulator import OnlySpark
from ivm_core.operators.accumulators import accumulator_for
from ivm_core.operators.aggregate import AggregateStatements
from ivm_core.operators.folds_on_driver import folded, in_order
from ivm_core.operators.sql import column_scalar, relation, scalar_of, select, text_of
from ivm_core.operators.top import IS_LAST
from ivm_core.plan.nodes import Aggregate, AggregateCall, Scan
from ivm_core.plan.partitioned import Top
from tests.operators.driver_rows import OF, SCAN, SCHEMA, TYPES, WEIGHTED, drawn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
LONG = Decimal("1000000000000.000000")
"""One digit more than a BIGINT is certain to hold of them."""


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
    return rows.rename_columns([*SCAN.columns, WEIGHT])


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


EXTREMES = {
    "mk": ("MIN", "k"),
    "mi": ("MAX", "i"),
    "mb": ("MIN", "b"),
    "mp": ("MAX", "p"),
    "mv": ("MIN", "v"),
    "md": ("MAX", "d"),
    "n": ("COUNT_STAR", None),
    "s": ("SUM", "b"),
}


@pytest.mark.parametrize("keys", [("d", "i"), ("p",), ()])
@pytest.mark.parametrize("count", [0, 300])
def test_extremes_of_what_came_and_of_what_went(
    spark: SparkSession, keys: tuple[str, ...], count: int
) -> None:
    """Rows that cancel out are among neither."""
    draw = random.Random(f"{keys} {count}")
    rows = drawn(draw, count, [1, -1, 3])
    gone = rows.slice(0, count // 3)
    opposite = pa.array([-each for each in gone[WEIGHT].to_pylist()], pa.int64())
    rows = pa.concat_tables([rows, gone.set_column(len(TYPES), WEIGHT, opposite)])
    of = statements(keys, EXTREMES)
    spark.createDataFrame(of_scan(rows)).createOrReplaceTempView("driver_rows")
    asked = of.fold_of(select([exp.Star()], relation("driver_rows")), OF)
    wanted = spark.sql(text_of(asked)).toArrow()
    found = folded(of, of_scan(rows))
    assert bag(found) == bag(wanted.select(found.column_names))


def bag(table: pa.Table) -> list[str]:
    return sorted(repr(list(row.values())) for row in table.to_pylist())


@pytest.mark.parametrize(
    ("keys", "calls", "weight"),
    [
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
        f"SELECT {listed}, 0 AS {IS_LAST} FROM ({known}) "
        "LATERAL VIEW explode(sequence(1, times)) g AS copy"
    )
    last = (
        f"SELECT {listed}, 1 AS {IS_LAST} FROM (SELECT *, row_number() OVER (ORDER BY {total}) AS n "
        f"FROM driver_before) ORDER BY n DESC LIMIT 1"
    )
    asked = f"SELECT * FROM (({copies}) UNION ALL ({last})) ORDER BY {total}, {IS_LAST}"
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
