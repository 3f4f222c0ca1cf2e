"""Accumulators against an exact reference that shares no code with them."""

from __future__ import annotations

import decimal
import math
import random
import struct
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from ivm_core.model.errors import InternalError, Unsupported
from ivm_core.model.schema import parse_type
from ivm_core.operators.accumulator import OneByOne, OnlySpark
from ivm_core.operators.accumulators import accumulator_for
from ivm_core.operators.arrow_types import from_spark_type, to_arrow
from ivm_core.operators.extremes import Extreme
from ivm_core.operators.formula import formula, side_by_side
from ivm_core.operators.sql import column, named, relation, select, text_of, union_all
from tests import exact_reference as exact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from sqlglot import exp

    from ivm_core.operators.accumulator import Accumulator
    from ivm_core.operators.formula import Level

Rows = dict[str, list[tuple[Any, int]]]
LARGEST = 1.7976931348623157e308
SMALLEST = 5e-324


@pytest.fixture(scope="module")
def high(spark: SparkSession) -> SparkSession:
    return spark.newSession()


@pytest.fixture(scope="module")
def low(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return session


def stacked(query: exp.Query, levels: Sequence[Level]) -> exp.Query:
    for level in levels:
        query = select([formula("*"), *(named(tree, name) for name, tree in level)], query)
    return query


def grouped(query: exp.Query, keys: Sequence[str], aggregates: Level) -> exp.Query:
    chosen = [*map(column, keys), *(named(tree, name) for name, tree in aggregates)]
    return select(chosen, query).group_by(*map(column, keys))


def folded(name: str, calls: Sequence[tuple[str, Accumulator, str]]) -> exp.Query:
    """The fold of one change."""
    accumulators = {one.columns[0].name: one for _, one, _ in calls}.values()
    arguments = {one.columns[0].name: argument for _, one, argument in calls}
    binned = [one.name for acc in accumulators for one in acc.bins]
    levels = side_by_side(
        [one.prepare(column(arguments[one.columns[0].name])) for one in accumulators]
    )
    return grouped(
        stacked(select([formula("*")], relation(name)), levels),
        ["g", *binned],
        tuple(fold for one in accumulators for fold in one.fold),
    )


def statement(source: Sequence[str], calls: Sequence[tuple[str, Accumulator, str]]) -> exp.Query:
    """What an aggregate does with its accumulators: a fold per change, totals, then values."""
    accumulators = {one.columns[0].name: one for _, one, _ in calls}.values()
    binned = [one.name for acc in accumulators for one in acc.bins]
    folds = [folded(name, calls) for name in source]
    state: exp.Query = folds[0]
    if len(folds) > 1:
        columns = [one.name for acc in accumulators for one in acc.columns]
        totals = tuple((name, formula("SUM(:x)", x=column(name))) for name in columns)
        state = grouped(union_all(folds).subquery("t"), ["g", *binned], totals)
    if binned:
        collapsed = tuple(one for acc in accumulators for one in acc.collapse)
        state = grouped(state, ["g"], collapsed)
    finals = [(name, acc.finalise(column, f"_{name}")) for name, acc, _ in calls]
    tops = side_by_side([final.levels for _, final in finals])
    return select(
        [column("g"), *(named(final.value, name) for name, final in finals)], stacked(state, tops)
    )


def frame(spark: SparkSession, name: str, rows: Rows, kind: str) -> None:
    flat = [(group, value, weight) for group, values in rows.items() for value, weight in values]
    random.Random(len(flat)).shuffle(flat)
    table = pa.table(
        {
            "g": pa.array([group for group, _, _ in flat], pa.string()),
            "x": pa.array([value for _, value, _ in flat], to_arrow(parse_type(kind))),
            "_weight": pa.array([weight for _, _, weight in flat], pa.int64()),
        }
    )
    spark.createDataFrame(table).createOrReplaceTempView(name)


def values_of(
    spark: SparkSession,
    rows: Rows,
    kind: str,
    functions: Sequence[str] = ("SUM", "AVG"),
    *,
    ticks: int = 1,
    partitions: int | None = None,
) -> dict[str, tuple[Any, ...]]:
    names = []
    for tick in range(ticks):
        names.append(f"rows_{tick}")
        part = {group: values[tick::ticks] for group, values in rows.items()}
        frame(spark, names[-1], part, kind)
        if partitions is not None:
            spark.table(names[-1]).repartition(partitions).createOrReplaceTempView(names[-1])
    of = parse_type(kind)
    calls = [(call, accumulator_for(call, of, "_tv_a"), "x") for call in functions]
    found = spark.sql(text_of(statement(names, calls)))
    for field, (_, acc, _) in zip(found.schema.fields[1:], calls, strict=True):
        assert from_spark_type(field.dataType) == acc.result_type
    values = {row[0]: tuple(row)[1:] for row in found.collect()}
    assert_driver_agrees(spark, names, calls, values)
    return values


def assert_driver_agrees(
    spark: SparkSession,
    source: Sequence[str],
    calls: Sequence[tuple[str, Accumulator, str]],
    values: dict[str, tuple[Any, ...]],
) -> None:
    """The driver makes the same values of the folded state as the statement does."""
    folds = [text_of(folded(name, calls)) for name in source]
    state = spark.sql(" UNION ALL ".join(folds)).toArrow()
    columns = {name: state.column(name).to_pylist() for name in state.column_names}
    for group, expected in values.items():
        rows = [row for row, each in enumerate(columns["g"]) if each == group]
        for (_, accumulator, _), value in zip(calls, expected, strict=True):
            if isinstance(accumulator, Extreme):
                continue  # needs the node's own rows: the SQL cases show it
            found = accumulator.value_of(columns.__getitem__, rows)
            assert type(found) is type(value)
            assert bits(found) == bits(value) if isinstance(found, float) else found == value
            assert_told_at_once(accumulator, state.take(pa.array(rows, pa.int64())), found)


def assert_told_at_once(accumulator: Accumulator, state: pa.Table, value: Any) -> None:
    """Where an accumulator makes columns of totals, they have the values that it tells one by one.

    `value` is that of the group whose state is given; a second group has the same state.
    """

    def total(name: str) -> pa.Array:
        added = sum(state.column(name).to_pylist())
        return pa.array([added, added], state.schema.field(name).type)

    try:
        found = accumulator.values_of(total).cast(to_arrow(accumulator.result_type)).to_pylist()
    except (OneByOne, pa.ArrowInvalid, OverflowError):
        return
    assert [repr(each) for each in found] == [repr(value)] * 2


def bits(value: float | None) -> bytes | None:
    return None if value is None else struct.pack(">d", value)


def weighted(*values: Any) -> list[tuple[Any, int]]:
    return [(value, 1) for value in values]


def some_double(source: random.Random, lowest: int, highest: int) -> float:
    return math.ldexp(
        source.choice((-1, 1)) * source.getrandbits(53), source.randint(lowest, highest)
    )


def doubles() -> Rows:
    source = random.Random(20)
    rows: Rows = {
        "cancellation": weighted(1e308, -1e308, 1e-308),
        "cancellation to nothing": weighted(1e308, 1.0, -1e308, -1.0),
        "past the largest and back": weighted(LARGEST, LARGEST, -LARGEST),
        "past the largest": weighted(LARGEST, LARGEST),
        "past the smallest": weighted(-LARGEST, -LARGEST, 1.0),
        "half an ulp past the largest": weighted(LARGEST, 2.0**969),
        "exactly half past the largest": weighted(LARGEST, 2.0**970),
        "subnormals": weighted(SMALLEST, SMALLEST, SMALLEST, -1e-320),
        "half of the smallest": weighted(SMALLEST, 0.0),
        "three quarters of the smallest": weighted(SMALLEST, SMALLEST, SMALLEST, 0.0),
        "between subnormal and normal": weighted(2.2250738585072014e-308, -SMALLEST, SMALLEST * 3),
        "half way to even": weighted(2.0**53, 1.0),
        "half way to odd": weighted(2.0**53 + 2, 1.0),
        "just above half way": weighted(2.0**53, 1.0, SMALLEST),
        "just below half way": weighted(2.0**53, 1.0, -SMALLEST),
        "just above half way below zero": weighted(-(2.0**53), -1.0, SMALLEST),
        "thirds": weighted(1.0, 1.0, 2.0),
        "tenths": weighted(*[0.1] * 10),
        "minus zero": weighted(-0.0, -0.0),
        "nulls only": weighted(None, None),
        "a null": weighted(None, 3.5),
        "nan": weighted(1.0, math.nan, math.inf),
        "infinity": weighted(1.0, math.inf, -LARGEST, -LARGEST),
        "minus infinity": weighted(-math.inf, 1e300),
        "both infinities": weighted(math.inf, 7.0, -math.inf),
        "retracted nan": [(math.nan, 1), (2.5, 1), (math.nan, -1)],
        "retracted infinity": [(math.inf, 2), (0.1, 3), (math.inf, -2)],
        "retracted huge": [(1e308, 1), (0.1, 1), (0.2, 1), (1e308, -1)],
        "retracted tiny": [(1e-320, 1), (0.1, 1), (0.2, 1), (1e-320, -1)],
        "retracted all": [(0.1, 1), (0.1, -1)],
        "multiplicity": [(0.1, 2**31 - 1), (-0.3, 12345)],
        "just inside a power of two": [(-5.7220458984375e-06, 2), (4.235164736271502e-22, 1)],
        "just inside minus one": weighted(-1.0, math.ulp(0.5) / 2, SMALLEST),
        "edges of bins": weighted(*(2.0 ** (64 * b - 24) for b in range(-16, 17))),
        "below edges of bins": weighted(
            *(math.nextafter(2.0 ** (64 * b - 24), 0.0) for b in range(-16, 17))
        ),
        "powers": weighted(*(math.ldexp(1.0, e) for e in range(-1074, 1024, 7))),
    }
    for number in range(60):
        span = source.choice((1, 20, 60, 200, 2000))
        start = source.randint(-1074, 970 - min(span, 970))
        values = [
            some_double(source, start, min(start + span, 970)) for _ in range(source.randint(1, 40))
        ]
        values += [-value for value in values if source.random() < 0.5]
        rows[f"random {number}"] = [(value, source.randint(1, 5)) for value in values]
    for number in range(40):
        rows[f"money {number}"] = weighted(
            *(round(source.uniform(-1000, 1000), 2) for _ in range(source.randint(1, 30)))
        )
    for number in range(80):
        values = [
            math.copysign(2 ** source.uniform(-24, source.choice((-20, 0, 39))), source.gauss(0, 1))
            for _ in range(source.randint(1, 9))
        ]
        nearly = [-value if source.random() < 0.9 else value / 2 for value in values]
        nearly[0] = math.nextafter(nearly[0], source.choice((0.0, math.inf)))
        rows[f"ordinary {number}"] = weighted(*values, *(nearly if number % 2 else []), 0.0)
    for number in range(40):
        shift = source.randint(-1074, -1000)
        rows[f"tiny {number}"] = weighted(
            *(math.ldexp(source.getrandbits(30), shift) for _ in range(source.randint(2, 9)))
        )
    for number in range(40):
        value = some_double(source, -30, 30)
        half = math.ulp(value) / 2
        rows[f"near half way {number}"] = weighted(
            value, half, source.choice((0.0, SMALLEST, -SMALLEST, half / 2**60, -half / 2**40))
        )
    return rows


def test_sums_of_doubles_are_exact_in_both_gears(high: SparkSession, low: SparkSession) -> None:
    rows = doubles()
    expected = {
        group: tuple(bits(exact.double_sum(values, average=avg)) for avg in (False, True))
        for group, values in rows.items()
    }
    runs = [
        values_of(high, rows, "DOUBLE", ticks=2, partitions=3),
        values_of(low, rows, "DOUBLE"),
    ]
    for run in runs:
        found = {group: tuple(map(bits, values)) for group, values in run.items()}
        assert found == expected


def test_sums_of_floats_are_those_of_their_doubles(low: SparkSession) -> None:
    source = random.Random(21)
    rows: Rows = {
        f"random {number}": [
            (struct.unpack(">f", struct.pack(">f", source.gauss(0, 10**size)))[0], 1)
            for size in source.choices(range(-30, 30), k=9)
        ]
        for number in range(20)
    }
    rows["special"] = weighted(math.inf, 1.5, None)
    found = values_of(low, rows, "FLOAT")
    for group, values in rows.items():
        expected = [exact.double_sum(values, average=average) for average in (False, True)]
        assert list(map(bits, found[group])) == list(map(bits, expected)), group


def test_the_reference_agrees_with_fsum_and_spark_is_within_its_rounding_bound(
    high: SparkSession,
) -> None:
    rows = {
        group: values
        for group, values in doubles().items()
        if group.startswith(("money", "random")) and all(weight == 1 for _, weight in values)
    }
    frame(high, "plain", rows, "DOUBLE")
    query = "SELECT g, SUM(x), AVG(x), SUM(ABS(x)), COUNT(x) FROM plain GROUP BY g"
    for group, total, average, size, count in high.sql(query).collect():
        assert exact.double_sum(rows[group]) == math.fsum(value for value, _ in rows[group])
        bound = 2 * count * 2.0**-53 * size
        assert abs(total - exact.double_sum(rows[group])) <= bound
        assert abs(average - exact.double_sum(rows[group], average=True)) <= bound


def integers(bits_: int) -> Rows:
    source = random.Random(bits_)
    least, most = -(2 ** (bits_ - 1)), 2 ** (bits_ - 1) - 1
    rows: Rows = {
        "limits": weighted(least, most, least, most),
        "nulls": weighted(None),
        "one": weighted(least),
        "retracted": [(most, 3), (least, 1), (most, -2), (7, 1)],
        "to zero": [(most, 1), (most, -1), (0, 1)],
        "emptied": [(most, 1), (most, -1)],
        "thirds": weighted(1, 1, 2),
        "large thirds": weighted(most, most - 1, -most, -5),
        "middle too large": weighted(*[most] * 9, *[least] * 9),
        "multiplicity": [(3, 2**31 - 10), (-1, 9), (None, 5)],
    }
    for number in range(30):
        size = source.randint(1, bits_ - 1)
        values = [source.randrange(-(2**size), 2**size) for _ in range(source.randint(1, 25))]
        rows[f"random {number}"] = weighted(*values, *(-value - 1 for value in values))
        rows[f"near {number}"] = weighted(
            *(most - source.randrange(99) for _ in range(3)), -most, -most
        )
    return rows


@pytest.mark.parametrize("kind", ["TINYINT", "SMALLINT", "INT", "BIGINT"])
def test_sums_and_averages_of_integers_are_exact(
    high: SparkSession, low: SparkSession, kind: str
) -> None:
    rows = integers({"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}[kind])
    expected = {
        group: (exact.integer_sum(values), bits(exact.integer_average(values)))
        for group, values in rows.items()
    }
    for run in (
        values_of(high if kind == "BIGINT" else low, rows, kind, ticks=2),
        values_of(low, rows, kind),
    ):
        assert {group: (total, bits(avg)) for group, (total, avg) in run.items()} == expected


def test_average_of_integers_is_exact_past_bigint(low: SparkSession) -> None:
    rows = {"past": [(2**63 - 1, 2**31 - 1), (-1, 1)], "below": [(-(2**63), 2**30), (1, 3)]}
    found = values_of(low, rows, "BIGINT", ["AVG"])
    assert found == {group: (exact.integer_average(values),) for group, values in rows.items()}


def decimals(precision: int, scale: int) -> Rows:
    source = random.Random(precision * 100 + scale)

    def made(unscaled: int) -> decimal.Decimal:
        digits = tuple(map(int, str(abs(unscaled))))
        return decimal.Decimal((int(unscaled < 0), digits, -scale))

    most = 10**precision - 1
    rows: Rows = {
        "limits": weighted(made(most), made(-most), made(most)),
        "lower limit": weighted(made(-most), made(-most), made(most)),
        "nulls": weighted(None, None),
        "one ninth": weighted(made(1), *[made(0)] * 8),
        "five elevenths": weighted(made(5), *[made(0)] * 10),
        "half": [(made(1), 1), (made(0), 19999)],
        "half below zero": [(made(-1), 1), (made(0), 19999)],
        "just less than half": [(made(1), 1), (made(0), 20000)],
        "middle too large": weighted(*[made(most)] * 5, *[made(-most)] * 5, made(-1)),
        "retracted": [(made(most), 2), (made(-7), 1), (made(most), -2)],
        "emptied": [(made(most), 2), (made(most), -2)],
    }
    for number in range(30):
        size = source.randint(1, precision)
        values = [source.randrange(-(10**size) + 1, 10**size) for _ in range(source.randint(1, 12))]
        rows[f"random {number}"] = weighted(*map(made, values), *(made(-v // 2) for v in values))
    return rows


@pytest.mark.parametrize(
    "of",
    [
        *[(1, 0), (5, 5), (9, 2), (12, 2), (15, 15), (16, 3), (18, 0), (18, 18), (19, 4), (28, 10)],
        *[(36, 18), (38, 0), (38, 6), (38, 20), (38, 36), (38, 38)],
    ],
    ids=lambda of: f"DECIMAL({of[0]},{of[1]})",
)
def test_sums_and_averages_of_decimals_are_exact(low: SparkSession, of: tuple[int, int]) -> None:
    rows = decimals(*of)
    kind = f"DECIMAL({of[0]},{of[1]})"
    sums = (min(38, of[0] + 10), of[1])
    averages = (min(38, of[0] + 4), min(38, of[1] + 4))
    expected = {}
    for group, values in list(rows.items()):
        try:
            expected[group] = (
                exact.decimal_result(values, *sums, average=False),
                exact.decimal_result(values, *averages, average=True),
            )
        except OverflowError:
            del rows[group]
    assert values_of(low, rows, kind, ticks=2) == expected
    frame(low, "plain", {g: v for g, v in rows.items() if all(w == 1 for _, w in v)}, kind)
    query = "SELECT g, SUM(x), AVG(x) FROM plain WHERE g <> 'middle too large' GROUP BY g"
    for group, total, average in low.sql(query).collect():
        assert (total, average) == expected[group]


@pytest.mark.parametrize(
    ("kind", "values", "error"),
    [
        ("BIGINT", [2**63 - 1, 1], "CAST_OVERFLOW"),
        ("BIGINT", [-(2**63), -1], "CAST_OVERFLOW"),
        ("DECIMAL(38,0)", [decimal.Decimal(10**38 - 1), decimal.Decimal(1)], "OUT_OF_RANGE"),
        ("DECIMAL(38,38)", [decimal.Decimal("-0.6"), decimal.Decimal("-0.4")], "OUT_OF_RANGE"),
    ],
    ids=["above BIGINT", "below BIGINT", "above DECIMAL(38,0)", "below DECIMAL(38,38)"],
)
def test_a_sum_raises_where_its_final_value_does_not_fit(
    low: SparkSession, kind: str, values: list[Any], error: str
) -> None:
    with pytest.raises(Exception, match=error):
        values_of(low, {"too much": weighted(*values)}, kind, ["SUM"])
    calls = [("SUM", accumulator_for("SUM", parse_type(kind), "_tv_a"), "x")]
    state = low.sql(text_of(folded("rows_0", calls))).toArrow()
    with pytest.raises(OnlySpark):
        calls[0][1].value_of(lambda name: state.column(name).to_pylist(), [0])


def test_several_aggregates_share_a_node(low: SparkSession) -> None:
    low.sql(
        "SELECT g, x, CAST(y AS DOUBLE) AS y, z, CAST(w AS BIGINT) AS _weight FROM VALUES "
        "('a', 1e300D, 0.5D, 3, 1), ('a', 0.1D, 1e-300D, NULL, 1), ('a', 0.2D, 7D, 4, 2),"
        "('a', 1e300D, 0.5D, 3, -1), ('b', NULL, NULL, NULL, 1) AS t(g, x, y, z, w)"
    ).createOrReplaceTempView("mixed")
    calls = [
        ("rows", accumulator_for("COUNT_STAR", None, "_tv_rows"), "g"),
        ("zs", accumulator_for("COUNT", parse_type("INT"), "_tv_z"), "z"),
        ("x", accumulator_for("SUM", parse_type("DOUBLE"), "_tv_x"), "x"),
        ("y", accumulator_for("AVG", parse_type("DOUBLE"), "_tv_y"), "y"),
        ("z", accumulator_for("AVG", parse_type("INT"), "_tv_z"), "z"),
    ]
    found = {
        row[0]: tuple(row)[1:] for row in low.sql(text_of(statement(["mixed"], calls))).collect()
    }
    assert found == {
        "a": (
            3,
            2,
            exact.double_sum([(0.1, 1), (0.2, 2)]),
            exact.double_sum([(1e-300, 1), (7.0, 2)], average=True),
            4.0,
        ),
        "b": (1, 0, None, None, None),
    }


EXTREMES = [
    ("INT", [3, None, -5], [-5, 3]),
    ("DECIMAL(38,2)", [decimal.Decimal("1.50"), decimal.Decimal("-0.01")], None),
    ("STRING", ["b", "", None, "ä"], ["", "ä"]),
    ("BOOLEAN", [True, False], [False, True]),
    ("DOUBLE", [math.nan, 1.0, -math.inf], [-math.inf, math.nan]),
    ("DOUBLE", [-0.0, -0.0], [0.0, 0.0]),
    ("FLOAT", [-0.0, 0.5], [0.0, 0.5]),
    ("INT", [None], [None, None]),
    ("ARRAY<DOUBLE>", [[-0.0, None], [1.0]], [[0.0, None], [1.0]]),
    ("STRUCT<a: FLOAT, b: INT>", [{"a": -0.0, "b": 1}, None], None),
]


def test_min_and_max_have_one_zero_and_one_nan(low: SparkSession) -> None:
    for kind, values, expected in EXTREMES:
        found = values_of(low, {"g": weighted(*values)}, kind, ["MIN"])["g"]
        found += values_of(low, {"g": weighted(*values)}, kind, ["MAX"])["g"]
        if expected is None:
            present = [value for value in values if value is not None]
            plain = [one if isinstance(one, decimal.Decimal) else one.asDict() for one in found]
            key = None if kind.startswith("DECIMAL") else str
            assert plain == [min(present, key=key), max(present, key=key)]
        else:
            assert repr(list(found)) == repr(expected), kind
    assert "-0.0" not in repr(values_of(low, {"g": weighted({"a": -0.0, "b": 1})}, kind, ["MIN"]))


def test_min_and_max_tell_when_a_deletion_reaches_them(low: SparkSession) -> None:
    rows: Rows = {
        "untouched": [(5, 1), (9, -1)],
        "reached": [(5, 1), (2, -1)],
        "insertions": [(1, 1)],
        "nulls": [(None, 1), (None, -1)],
    }
    frame(low, "changes", rows, "INT")
    acc = Extreme("_tv_m", "MIN", parse_type("INT"))
    prepared = stacked(select([formula("*")], relation("changes")), acc.prepare(column("x")))
    changed = grouped(prepared, ["g"], (*acc.fold, *acc.deleted))
    old, new, gone = formula("CAST(3 AS INT)"), column("_tv_m_m"), column("_tv_m_gone")
    result = select(
        [column("g"), named(acc.is_reached(old, gone), "r"), named(acc.merge(old, new), "m")],
        changed,
    )
    assert {row[0]: (row[1], row[2]) for row in low.sql(text_of(result)).collect()} == {
        "untouched": (False, 3),
        "reached": (True, 3),
        "insertions": (False, 1),
        "nulls": (False, 3),
    }
    largest = Extreme("_tv_m", "MAX", parse_type("INT"))
    assert text_of(largest.merge(old, new)).startswith("GREATEST(")
    assert ">=" in text_of(largest.is_reached(old, gone))


def test_what_can_not_be_added_is_refused() -> None:
    with pytest.raises(Unsupported, match="SUM of STRING"):
        accumulator_for("SUM", parse_type("STRING"), "_tv_a")
    with pytest.raises(InternalError, match="MEDIAN"):
        accumulator_for("MEDIAN", parse_type("INT"), "_tv_a")
    with pytest.raises(InternalError, match="without the type"):
        accumulator_for("COUNT", None, "_tv_a")
    with pytest.raises(InternalError, match="without an argument"):
        accumulator_for("COUNT", parse_type("INT"), "_tv_a").prepare(None)
