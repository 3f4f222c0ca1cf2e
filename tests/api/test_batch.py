"""DeltaBatch: what it takes, what binding makes of it, and what it refuses and how."""

from __future__ import annotations

from collections import namedtuple
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

from ivm_core.api.batch import DeltaBatch
from ivm_core.model.errors import BatchError, ConstraintViolation, UserError
from ivm_core.model.schema import parse_schema
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.frame_checks import refusal_of
from ivm_core.operators.netting import net
from ivm_core.operators.row_identity import digest_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ivm_core.operators.bound_batch import BoundBatch

ORDERS = parse_schema("id BIGINT NOT NULL, customer STRING, amount DECIMAL(12,2)")
ONE = {"id": 1, "customer": "ann", "amount": Decimal("1.50")}
TWO = (2, None, Decimal(2))


def bind(batch: Any, ddl: str | None = None, **options: Any) -> BoundBatch:
    schema = ORDERS if ddl is None else parse_schema(ddl)
    return DeltaBatch.from_any(batch).bind("orders", schema, **options)


def rows(batch: BoundBatch) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in batch.table.to_pylist()]


def test_every_way_to_say_a_change() -> None:
    batch = (
        DeltaBatch.inserts([ONE, TWO])
        + DeltaBatch.deletes([Row(customer="bob", id=3, amount=None)])
        + DeltaBatch.edits([(ONE, {**ONE, "CUSTOMER": "eve"})][:0])
        + DeltaBatch.edits([(ONE, (1, "eve", 5))])
        + DeltaBatch.of([ONE, TWO], weights=[4, 0])
        + DeltaBatch.of([{**ONE, "_weight": -7}])
    )
    bound = bind(batch)
    assert bound.table.schema == arrow_schema(ORDERS, weight=True)
    ann = (1, "ann", Decimal("1.50"))
    assert rows(bound) == [
        (*ann, 1),
        (2, None, Decimal("2.00"), 1),
        (3, "bob", None, -1),
        (*ann, -1),
        (1, "eve", Decimal("5.00"), 1),
        (*ann, 4),
        (*ann, -7),
    ]
    assert bound.upserts is None
    assert bound.delete_keys is None
    assert bound.frame is None
    assert repr(batch) == (
        "DeltaBatch(changes: 2 rows, changes: 1 rows, changes: 0 rows, "
        "changes: 2 rows, changes: 2 rows, changes: 1 rows)"
    )


def test_rows_of_named_tuples_and_names_in_any_case() -> None:
    Order = namedtuple("Order", "amount id customer")
    bound = bind([Order(1, 2, "x"), {"ID": 3, "Customer": None, "AMOUNT": None}])
    assert rows(bound) == [(2, "x", Decimal("1.00"), 1), (3, None, None, 1)]


def test_no_rows_are_a_batch_too() -> None:
    names = ORDERS.names
    untyped = pd.DataFrame({name: [] for name in names})
    for nothing in ([], DeltaBatch(), arrow_schema(ORDERS).empty_table(), iter(()), untyped):
        assert bind(nothing).table.schema == arrow_schema(ORDERS, weight=True)
        assert bind(nothing).table.num_rows == 0


def test_upserts_and_keys_by_primary_key() -> None:
    batch = DeltaBatch.upserts([ONE, TWO]) + DeltaBatch.delete_keys([7, (8,), {"id": 9}])
    bound = bind(batch, primary_key=["ID"])
    assert bound.upserts.column_names == ["id", "customer", "amount"]
    assert bound.upserts.column("id").to_pylist() == [1, 2]
    assert bound.delete_keys.to_pylist() == [{"id": 7}, {"id": 8}, {"id": 9}]
    assert bound.table.num_rows == 0
    frame = DeltaBatch.delete_keys(pa.table({"b": ["x"], "a": [1]}))
    both = bind(frame, "a BIGINT, b STRING, c INT", primary_key=["a", "b"])
    assert both.delete_keys.to_pylist() == [{"a": 1, "b": "x"}]


def test_keys_need_a_primary_key_and_come_once() -> None:
    with pytest.raises(BatchError, match="upserts need a primary key, and source orders has none"):
        bind(DeltaBatch.upserts([ONE]))
    with pytest.raises(BatchError, match="delete_keys need a primary key"):
        bind(DeltaBatch.delete_keys([1]))
    for twice in (
        DeltaBatch.upserts([ONE, {**ONE, "customer": "x"}]),
        DeltaBatch.upserts([ONE]) + DeltaBatch.delete_keys([1]),
    ):
        with pytest.raises(ConstraintViolation) as refusal:
            bind(twice, primary_key=["id"])
        assert refusal.value.keys == ((1,),)
    with pytest.raises(BatchError, match="a key column is NULL"):
        bind([(1, None, 1)], primary_key=["id", "customer"])


def test_frames_as_they_are() -> None:
    table = pa.table(
        {
            "amount": pa.array([1, 2, 3], pa.int32()),
            "customer": pa.array(["a", None, "a"]).dictionary_encode(),
            "id": pa.array([1, 2, 3], pa.uint8()),
            "_weight": pa.array([1, -2, 0], pa.int16()),
        }
    )
    expected = [(1, "a", Decimal("1.00"), 1), (2, None, Decimal("2.00"), -2)]
    assert rows(bind(table)) == expected
    assert rows(bind(table.to_batches()[0])) == expected
    frame = table.to_pandas()
    frame["amount"] = [Decimal(1), Decimal("2.0"), 3]
    assert rows(bind(frame)) == expected
    assert rows(bind(DeltaBatch.inserts(table.drop(["_weight"]))))[0] == (*expected[0][:3], 1)
    assert rows(bind(DeltaBatch.of(table.drop(["_weight"]), [5, 5, 5])))[1][-1] == 5


def test_pandas_missing_values_are_null() -> None:
    frame = pd.DataFrame(
        {
            "a": [1.5, float("nan")],
            "b": pd.array([1, None], "Int64"),
            "c": ["x", float("nan")],
            "d": pd.to_datetime(["2024-01-01T00:00:00Z", None]),
            "e": [pd.NA, date(2024, 1, 1)],
            "f": [np.array([1, 2]), None],
        }
    )
    bound = bind(frame, "a DOUBLE, b INT, c STRING, d TIMESTAMP, e DATE, f ARRAY<INT>")
    assert rows(bound) == [
        (1.5, 1, "x", datetime(2024, 1, 1, tzinfo=UTC), None, [1, 2], 1),
        (None, None, None, None, date(2024, 1, 1), None, 1),
    ]


@pytest.mark.parametrize("in_slices", [False, True])
def test_maps_come_as_dicts_as_pairs_and_as_arrow(in_slices: bool) -> None:
    ddl = "m MAP<STRING, INT>, n MAP<DATE, ARRAY<MAP<INT, STRING>>>"
    day = date(2024, 1, 1)
    given: list[tuple[Any, Any]] = [
        ({"b": 1, "a": None}, {day: [{1: "x"}, None]}),
        ([("a", 1)], [(day, None)]),
        ({}, None),
        (None, {}),
    ]
    expected = [
        ([("b", 1), ("a", None)], [(day, [[(1, "x")], None])], 1),
        ([("a", 1)], [(day, None)], 1),
        ([], None, 1),
        (None, [], 1),
    ]
    assert rows(bind(given, ddl)) == expected
    wide = pa.map_(pa.large_string(), pa.int64())
    inner = pa.map_(pa.date32(), pa.large_list(pa.map_(pa.int8(), pa.large_string())))
    columns = zip(*[row[:2] for row in expected], strict=True)
    arrays = [pa.array(each, of) for each, of in zip(columns, (wide, inner), strict=True)]
    table = pa.table(arrays, names=["m", "n"])
    assert rows(bind(table.slice(1) if in_slices else table, ddl)) == expected[int(in_slices) :]


def test_values_that_fit_without_loss() -> None:
    ddl = (
        "a DOUBLE, b FLOAT, c DECIMAL(38,10), d TIMESTAMP, e TIMESTAMP_NTZ, f BINARY, "
        "g ARRAY<STRUCT<x: TINYINT, y: ARRAY<STRING>>>, h BOOLEAN, i SMALLINT"
    )
    moment = datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    row = (
        *(2**60, 3, Decimal("0E+20"), moment, datetime(2024, 1, 1), bytearray(b"x")),
        *([{"x": 1, "y": ("a", None)}, None, (None, None)], np.bool_(True), np.int64(7)),
    )
    bound = bind([row, (None,) * 9, (1.5, np.float32(0.1), 5, *[None] * 6)], ddl)
    assert rows(bound)[0] == (
        *(float(2**60), 3.0, Decimal(0), datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1)),
        *(b"x", [{"x": 1, "y": ["a", None]}, None, {"x": None, "y": None}], True, 7, 1),
    )
    assert rows(bound)[2][:3] == (1.5, float(np.float32(0.1)), Decimal(5))


_MAP = pa.map_(pa.string(), pa.int64())
NAIVE = datetime(2024, 1, 1)
AWARE = NAIVE.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("ddl", "good", "bad", "way_out"),
    [
        ("BIGINT", 1, 1.0, ""),
        ("BIGINT", 1, True, ""),
        ("BIGINT", 1, "1", ""),
        ("BIGINT", 1, 2**63, "it holds -9223372036854775808"),
        ("TINYINT", 1, -129, "it holds -128 to 127"),
        ("BOOLEAN", True, 1, ""),
        ("DOUBLE", 1, 2**53 + 1, "exactly"),
        ("DOUBLE", 1.0, Decimal(1), ""),
        ("DOUBLE", 1.0, True, ""),
        ("FLOAT", 1.0, 1e39, "FLOAT holds up to"),
        ("FLOAT", 1.0, 2**24 + 1, "exactly"),
        ("DECIMAL(5,2)", Decimal(1), Decimal("1.234"), "round the value yourself"),
        ("DECIMAL(5,2)", Decimal(1), Decimal(1000), "3 digits before the point"),
        ("DECIMAL(5,2)", 1, 1000, "3 digits before the point"),
        ("DECIMAL(5,2)", 1, Decimal("1E+300"), "3 digits before the point"),
        ("DECIMAL(5,2)", 1, Decimal("NaN"), "no NaN"),
        ("DECIMAL(5,2)", 1, 1.5, "a float isn't a decimal fraction"),
        ("STRING", "a", b"a", ""),
        ("STRING", "a", "\ud800", "surrogate"),
        ("BINARY", b"a", "a", ""),
        ("DATE", date(2024, 1, 1), NAIVE, ""),
        ("DATE", date(2024, 1, 1), "2024-01-01", ""),
        ("TIMESTAMP", AWARE, NAIVE, "tzinfo=timezone.utc"),
        ("TIMESTAMP", AWARE, date(2024, 1, 1), ""),
        ("TIMESTAMP", AWARE, pd.Timestamp(1, tz="UTC"), "microseconds"),
        ("TIMESTAMP_NTZ", NAIVE, AWARE, "tzinfo=None"),
        ("ARRAY<INT>", [1], 1, ""),
        ("ARRAY<INT>", [1], "ab", ""),
        ("ARRAY<INT>", [1], [1, "x"], ""),
        ("STRUCT<a: INT>", {"a": 1}, {"b": 1}, "give exactly a"),
        ("STRUCT<a: INT>", {"a": 1}, {"a": 1.5}, ""),
        ("MAP<STRING, INT>", {"a": 1}, [1], "a dict, or pairs"),
        ("MAP<STRING, INT>", {"a": 1}, 5, "a dict, or pairs"),
        ("MAP<STRING, INT>", {"a": 1}, {1: 1}, ""),
        ("MAP<STRING, INT>", {"a": 1}, {"a": "x"}, ""),
        ("MAP<STRING, INT>", [("a", 1)], {None: 1}, "never NULL"),
        ("MAP<DOUBLE, INT>", {0.5: 1}, [(0.5, 1), (1.5, 2), (0.5, 3)], "comes once"),
        ("ARRAY<MAP<INT, INT>>", [{}], [[(1, 1), (1, 2)]], "comes once"),
    ],
)
def test_values_of_the_wrong_type(ddl: str, good: Any, bad: Any, way_out: str) -> None:
    with pytest.raises(BatchError) as refusal:
        bind([(good,), (None,), (bad,), (bad,)], f"c {ddl}")
    error = refusal.value
    assert error.column.startswith("c")
    assert error.row == 2
    assert error.got
    if error.column == "c":
        assert error.expected == parse_schema(f"c {ddl}").field("c").type.ddl
    assert way_out in error.fix
    assert error.where == "batch for source orders"


@pytest.mark.parametrize(
    ("ddl", "given", "row"),
    [
        ("TINYINT", pa.array([1, None, 200]), 2),
        ("BIGINT", pa.array([None, 1.0]), 1),
        ("BIGINT", pa.array(["1"]), 0),
        ("DOUBLE", pa.array([1, 2**53 + 1]), 1),
        ("FLOAT", pa.array([None, 0.5, 0.1]), 2),
        ("DECIMAL(5,2)", pa.array([1, 1000]), 1),
        ("DECIMAL(5,2)", pa.array([Decimal("1.25"), Decimal("1.255")]), 1),
        ("STRING", pa.array([b"x"]), 0),
        ("BINARY", pa.array(["x"]), 0),
        ("TIMESTAMP", pa.array([None, NAIVE]), 1),
        ("TIMESTAMP_NTZ", pa.array([AWARE]), 0),
        ("TIMESTAMP_NTZ", pa.array([1000, 1], pa.timestamp("ns")), 1),
        ("DATE", pa.array([NAIVE]), 0),
        ("ARRAY<TINYINT>", pa.array([[1], None, [1, 300]]), 2),
        ("STRUCT<a: TINYINT>", pa.array([{"a": 1}, {"a": 300}]), 1),
        ("STRUCT<a: TINYINT>", pa.array([{"b": 1}]), 0),
        ("STRUCT<a: TINYINT>", pa.array([1]), 0),
        ("MAP<STRING, TINYINT>", pa.array([[("a", 1)], [("a", 300)]], _MAP), 1),
        ("MAP<STRING, BIGINT>", pa.array([[("a", 1)], None, [("a", 1), ("a", 2)]], _MAP), 2),
        ("MAP<STRING, BIGINT>", pa.array([{"a": 1}]), 0),
    ],
)
def test_arrow_columns_of_the_wrong_type(ddl: str, given: pa.Array, row: int) -> None:
    with pytest.raises(BatchError) as refusal:
        bind(pa.table({"c": given}), f"c {ddl}")
    assert refusal.value.column == "c"
    assert refusal.value.row == row
    assert refusal.value.expected == parse_schema(f"c {ddl}").field("c").type.ddl
    assert str(given.type) in refusal.value.got


def test_pandas_columns_of_the_wrong_type() -> None:
    for values, row in (([1.0, None], 0), (["x", "y"], 0), ([1, "y"], 1)):
        with pytest.raises(BatchError) as refusal:
            bind(pd.DataFrame({"c": values}), "c BIGINT")
        assert (refusal.value.column, refusal.value.row) == ("c", row)


@pytest.mark.parametrize(
    ("batch", "text"),
    [
        ([{"id": 1, "customer": "a"}], "missing: amount"),
        ([ONE, {**ONE, "x": 1, "y": 2}], "extra: x, y"),
        ([ONE, {"id": 1, "customer": "a", "sum": 2}], "missing: amount; extra: sum"),
        ([TWO, (1, 2)], "2 values"),
        ([TWO, 5], "int 5"),
        (pa.table({"id": [1], "nome": ["a"]}), "missing: customer, amount; extra: nome"),
        (pd.DataFrame({"id": [1], "Amount": [1]}), "missing: customer"),
        (pa.table([[1], [2]], names=["id", "ID"]), "twice: ID, id"),
        (DeltaBatch.inserts([{**ONE, "_weight": 1}]), "extra: _weight"),
        (DeltaBatch.of([{**ONE, "_weight": 1}], [1]), "extra: _weight"),
        (
            DeltaBatch.deletes(pa.Table.from_pylist([{**ONE, "_weight": 1}])),
            "_weight goes with DeltaBatch.of only",
        ),
    ],
)
def test_columns_that_do_not_match(batch: Any, text: str) -> None:
    with pytest.raises(BatchError) as refusal:
        bind(batch)
    assert text in str(refusal.value)


@pytest.mark.parametrize(
    ("weights", "what", "row"),
    [
        ([1, None], "a weight is NULL", 1),
        ([1, float("nan")], "a weight is NULL", 1),
        ([1, 1.5], "not of its type", 1),
        ([True, 1], "not of its type", 0),
        ([1, 2**63], "not of its type", 1),
    ],
)
def test_bad_weights(weights: list[Any], what: str, row: int) -> None:
    two = [ONE, ONE]
    batches = [DeltaBatch.of(two, weights)]
    batches.append(DeltaBatch.of([{**ONE, "_weight": each} for each in weights]))
    if weights != [1, 2**63]:
        table = pa.Table.from_pylist(two)
        if weights != [True, 1]:
            batches.append(DeltaBatch.of(table.append_column("_weight", pa.array(weights))))
        batches.append(DeltaBatch.of(table.to_pandas().assign(_weight=weights)))
    for batch in batches:
        with pytest.raises(BatchError, match=what) as refusal:
            bind(batch)
        assert refusal.value.column == "_weight"
        is_typed = not isinstance(batch._parts[0].content, list)
        assert refusal.value.row == (0 if is_typed and "type" in what else row)


def test_other_things_that_are_no_batch() -> None:
    for odd in (None, 5, "rows", {"id": 1}, b"x"):
        with pytest.raises(BatchError, match="can't be made from this"):
            DeltaBatch.from_any(odd)
    with pytest.raises(BatchError, match="1 weights for 2 rows"):
        DeltaBatch.of([ONE, ONE], [1])
    with pytest.raises(BatchError, match="pair of the old and the new row"):
        DeltaBatch.edits([ONE])  # type: ignore[list-item]
    with pytest.raises(BatchError, match="NULL where none may be") as refusal:
        bind([ONE, {**ONE, "id": None}])
    assert (refusal.value.column, refusal.value.row) == ("id", 1)


def test_typed_batches_can_be_read() -> None:
    table = pa.table({"a": [1], "_weight": pa.array([-1], pa.int64())})
    batch = DeltaBatch.of(table) + DeltaBatch.inserts(table.select(["a"]))
    assert batch.to_arrow().to_pydict() == {"a": [1, 1], "_weight": [-1, 1]}
    with pytest.raises(UserError, match="no types of its own"):
        DeltaBatch.inserts([ONE]).to_arrow()


def test_spark_frames_stay_lazy_and_are_checked(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT CAST(id AS INT) AS ID, NULL AS customer, 1.5BD AS amount, id - 1 AS _weight "
        "FROM range(3)"
    )
    bound = bind(DeltaBatch.of(frame) + DeltaBatch.deletes(frame.drop("_weight").where("id = 0")))
    assert bound.table.num_rows == 0
    got = bound.frame.toArrow()
    assert got.schema.types == arrow_schema(ORDERS, weight=True).types
    weights = {(row["id"], row["_weight"]) for row in got.to_pylist()}
    assert weights == {(0, -1), (2, 1)}
    for name, odd in (("amount", "1.555BD"), ("customer", "1"), ("id", "1.0D"), ("_weight", "1BD")):
        with pytest.raises(BatchError) as refusal:
            bind(frame.drop(name).selectExpr("*", f"{odd} AS {name}"))
        assert refusal.value.column == name
    with pytest.raises(BatchError, match="missing: amount; extra: total"):
        bind(frame.withColumnRenamed("amount", "total"))
    for name, what in (("ID", "NULL where none may be"), ("_weight", "a weight is NULL")):
        holed = frame.selectExpr(
            *(f"nullif({c}, {c}) AS {c}" if c == name else c for c in frame.columns)
        )
        with pytest.raises(Exception, match="TIDEVIEW_NULL_IN") as failure:
            bind(holed).frame.toArrow()
        found = refusal_of(failure.value)
        assert found is not None
        assert (found.what, found.column) == (what, name.lower())
    keyed = bind(DeltaBatch.upserts(frame.drop("_weight")), primary_key=["id"])
    assert keyed.upserts.column("id").to_pylist() == [0, 1, 2]


SMALL = parse_schema("k BIGINT, s STRING")
FLOATS = parse_schema("k DOUBLE, s ARRAY<STRING>")


@given(
    st.lists(
        st.tuples(
            st.sampled_from([None, 0.0, -0.0, 1.0, float("nan")]),
            st.sampled_from([None, [], [None], ["a"]]),
            st.integers(-2, 2),
        )
    )
)
def test_netting_keeps_the_digest_and_no_row_twice(changes: list[Any]) -> None:
    plain = [
        (None if k is None or k != k else int(k), s[0] if s else None, w) for k, s, w in changes
    ]
    for schema, given_rows in ((FLOATS, changes), (SMALL, plain)):
        columns = zip(*given_rows, strict=True) if given_rows else [[], [], []]
        types = arrow_schema(schema, weight=True).types
        table = pa.table(
            [pa.array(list(c), t) for c, t in zip(columns, types, strict=True)],
            schema=arrow_schema(schema, weight=True),
        )
        netted = net(table, schema)
        assert netted.schema.types == table.schema.types
        assert digest_of(netted, schema) == digest_of(table, schema)
        assert 0 not in netted.column("_weight").to_pylist()
        distinct = {repr(tuple(row.values())[:2]) for row in netted.to_pylist()}
        assert len(distinct) == netted.num_rows
