from __future__ import annotations

import datetime as dt
import math
import struct
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import ConstraintViolation, DeltaBatch, Unsupported, UserError
from tests.flow.shop import assert_exact

if TYPE_CHECKING:
    import pyarrow as pa

    from ivm_core import IncrementalFlow

UTC = dt.UTC
VALUES: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [-128, 127],
    "SMALLINT": [-(2**15), 2**15 - 1],
    "INT": [-(2**31), 2**31 - 1],
    "BIGINT": [-(2**63), 2**63 - 1],
    "FLOAT": [0.5, -0.0, 0.0, math.inf, math.nan],
    "DOUBLE": [5e-324, -0.0, 0.0, -math.inf, math.nan],
    "DECIMAL(38,0)": [Decimal(10**38 - 1), Decimal(-1)],
    "DECIMAL(38,38)": [Decimal("0." + "9" * 38), Decimal(0)],
    "DECIMAL(9,2)": [Decimal("-0.01"), Decimal("1234567.89")],
    "STRING": ["", "ü😀", "a\0b", " "],
    "BINARY": [b"", b"\x00\xff"],
    "DATE": [dt.date(1, 1, 1), dt.date(1582, 10, 10), dt.date(9999, 12, 31)],
    "TIMESTAMP": [
        dt.datetime(1900, 1, 1, tzinfo=UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        dt.datetime(9999, 12, 31, tzinfo=UTC),
    ],
    "TIMESTAMP_NTZ": [dt.datetime(1, 1, 1), dt.datetime(2024, 3, 31, 2, 30, 0, 1)],
    "ARRAY<INT>": [[], [1, None], [None]],
    "ARRAY<ARRAY<STRING>>": [[[], ["a", None], None]],
    "STRUCT<a: INT, b: STRUCT<c: DOUBLE>>": [
        {"a": None, "b": None},
        {"a": 1, "b": {"c": None}},
        {"a": 1, "b": {"c": -0.0}},
    ],
    "ARRAY<STRUCT<k: STRING, v: DECIMAL(20,10)>>": [[{"k": None, "v": Decimal("1.5")}, None]],
}


def identity(value: Any) -> Any:
    """The value such that it equals only itself: −0.0 is not 0.0, NaN is NaN."""
    if isinstance(value, float):
        return struct.pack(">d", math.nan if math.isnan(value) else value)
    if isinstance(value, list):
        return tuple(identity(each) for each in value)
    if isinstance(value, dict):
        return tuple(identity(each) for each in value.values())
    return value


def rows_of(table: pa.Table) -> Counter[Any]:
    return Counter(tuple(map(identity, row.values())) for row in table.to_pylist())


def test_values_of_every_type_come_back_as_they_went_in(flow: IncrementalFlow) -> None:
    """One source with a column of every type; each row has one value and NULL elsewhere."""
    columns = [f"c{number}" for number in range(len(VALUES))]
    schema = ", ".join(f"{name} {kind}" for name, kind in zip(columns, VALUES, strict=True))
    flow.register_source("s", f"id INT, {schema}")
    flow.register_view("same", f"SELECT {', '.join(columns)}, id FROM s WHERE id >= 0")
    flow.register_view("once", "SELECT DISTINCT * FROM same")
    given = [
        {"id": number, **dict.fromkeys(columns), column: value}
        for column, values in zip(columns, VALUES.values(), strict=True)
        for number, value in enumerate(values)
    ]
    nulls = {"id": 0, **dict.fromkeys(columns)}
    order = [*columns, "id"]
    expected = Counter(tuple(identity(row[name]) for name in order) for row in [*given, nulls])
    flow.tick("s", [*given, nulls])
    assert rows_of(flow.snapshot("same").toArrow()) == expected
    assert rows_of(flow.changes("same").drop("_weight", "_tick").toArrow()) == expected
    assert flow.snapshot("once").count() == len(expected)
    ((tick, batch),) = flow.watch_output("same", since=0)
    assert tick == 1
    assert rows_of(batch.to_arrow().drop_columns(["_weight"])) == expected
    assert_exact(flow)
    summary = flow.tick("s", DeltaBatch.deletes(given))
    assert summary.rows_in == len(given)
    assert flow.snapshot("once").count() == 1
    assert_exact(flow)
    assert flow.replay().equal


def test_maps_come_back_as_they_went_in_and_go_by_their_bits(flow: IncrementalFlow) -> None:
    flow.register_source("s", "id INT, m MAP<STRING, DOUBLE>, n ARRAY<MAP<INT, STRING>>")
    flow.register_view("same", "SELECT m, n FROM s WHERE id >= 0")
    ab, ba = [("a", 0.0), ("b", None)], [("b", None), ("a", 0.0)]
    flow.tick("s", [(1, dict(ab), [{1: "x"}]), (1, ba, None), (1, {"a": -0.0, "b": None}, [])])
    assert sorted(map(str, flow.snapshot("same").toArrow()["m"].to_pylist())) == sorted(
        map(str, [ab, ba, [("a", -0.0), ("b", None)]])
    )
    with pytest.raises(ConstraintViolation):
        flow.tick("s", DeltaBatch.deletes([(1, ab, None)]))
    flow.tick("s", DeltaBatch.deletes([(1, ba, None)]))
    assert flow.snapshot("same").toArrow()["m"].to_pylist().count(ba) == 0
    assert flow.snapshot("s").count() == 2
    assert_exact(flow)
    assert flow.replay().equal


def test_a_map_is_no_primary_key(flow: IncrementalFlow) -> None:
    with pytest.raises(UserError, match="m, which is a MAP"):
        flow.register_source("s", "id INT, m MAP<STRING, INT>", primary_key=["id", "m"])
    assert flow.sources == ()


def test_rows_are_told_apart_by_their_bits(flow: IncrementalFlow) -> None:
    flow.register_source("s", "x DOUBLE")
    flow.register_view("n", "SELECT x, COUNT(*) AS n FROM s GROUP BY x")
    flow.tick("s", [(0.0,), (-0.0,), (math.nan,)])
    with pytest.raises(ConstraintViolation):
        flow.tick("s", DeltaBatch.deletes([(-0.0,), (-0.0,)]))
    flow.tick("s", DeltaBatch.deletes([(-0.0,)]))
    left = rows_of(flow.snapshot("s").toArrow())
    assert left == Counter([(identity(0.0),), (identity(math.nan),)])
    assert sorted(row["n"] for row in flow.snapshot("n").collect()) == [1, 1]
    assert_exact(flow)


@pytest.mark.parametrize(
    "kind",
    [
        "INTERVAL DAY TO SECOND",
        "MAP<STRING, VARIANT>",
        "INTERVAL YEAR TO MONTH",
        "VARIANT",
        "VOID",
        "CHAR(3)",
        "VARCHAR(3)",
    ],
)
def test_types_that_no_row_can_have_are_refused_with_a_way_around(
    kind: str, flow: IncrementalFlow
) -> None:
    with pytest.raises(Unsupported) as caught:
        flow.register_source("s", f"id INT, x {kind}")
    assert caught.value.rewrite
    assert caught.value.reason
    assert "source s" in caught.value.position
    assert flow.sources == ()


@pytest.mark.parametrize(
    "expression",
    ["MAP(x, ts - ts)", "ts - ts", "PARSE_JSON(t)", "NULL", "INTERVAL '1' DAY"],
)
def test_views_have_no_columns_of_such_types(expression: str, flow: IncrementalFlow) -> None:
    flow.register_source("s", "x INT, t STRING, ts TIMESTAMP")
    with pytest.raises(Unsupported) as caught:
        flow.register_view("v", f"SELECT {expression} AS y FROM s")
    assert caught.value.rewrite
    assert flow.views == ()


def test_such_types_may_be_used_on_the_way(flow: IncrementalFlow) -> None:
    flow.register_source("s", "x INT, ts TIMESTAMP")
    flow.register_view(
        "v", "SELECT x, MAP(x, 'a')[x] AS a, ts + INTERVAL '1' DAY AS tomorrow FROM s"
    )
    flow.tick("s", [(1, dt.datetime(2024, 2, 28, tzinfo=UTC))])
    assert [tuple(row.values())[:2] for row in flow.snapshot("v").toArrow().to_pylist()] == [
        (1, "a")
    ]
    assert_exact(flow)
