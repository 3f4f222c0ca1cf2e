"""Traces: what counts, what a limit brings back, what other readers see."""

from __future__ import annotations

import datetime
import decimal
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet

from ivm_core.model.errors import CorruptStore, InternalError, TickConflict
from ivm_core.store import trace as trace_module
from ivm_core.store.limit import ColumnLimit, Limit
from ivm_core.store.location import Location
from ivm_core.store.trace import Trace
from ivm_core.store.trace_files import Committed
from tests.store.places import AsObjectStore

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("_weight", pa.int64())])


@pytest.fixture(params=[Location, AsObjectStore])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    kind: type[Location] = request.param
    return kind(tmp_path / "trace")


def rows(*values: tuple[Any, ...]) -> pa.Table:
    columns = list(zip(*values, strict=True)) if values else [()] * len(SCHEMA)
    return pa.table(
        [pa.array(column, f.type) for column, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def ids(table: pa.Table) -> list[int]:
    return sorted(table["id"].to_pylist())


def test_ticks_are_read_between_since_and_at(place: Location) -> None:
    trace = Trace.open(place, SCHEMA)
    committed = Committed()
    for tick in (1, 2, 3):
        trace.append(rows((tick, "x", 1), (-tick, None, 2)), tick, 1)
        committed.add(tick, 1)
    for each in (trace, Trace.open(place)):
        assert ids(each.read(committed)) == [-3, -2, -1, 1, 2, 3]
        assert ids(each.read(committed, at=2)) == [-2, -1, 1, 2]
        assert ids(each.read(committed, since=1)) == [-3, -2, 2, 3]
        assert ids(each.read(committed, at=2, since=1)) == [-2, 2]
        assert ids(each.read(committed, at=0)) == []
        assert each.read(committed, columns=["name"]).column_names == ["name"]
        assert each.rows_estimate(committed, 2) == 4
    assert trace.read(committed).schema.names == ["id", "name", "_weight", "_tick"]


def test_only_the_committed_attempt_counts(place: Location) -> None:
    trace = Trace.open(place, SCHEMA)
    trace.append(rows((1, "killed", 1)), 1, 1)
    trace.append(rows((2, "again", 1)), 1, 2)
    trace.append(rows((3, "pending", 1)), 2, 2)
    assert ids(trace.read(Committed())) == []
    assert ids(trace.read(Committed({1: 2}))) == [2]
    assert ids(Trace.open(place).read(Committed({1: 1}))) == [1]
    assert [file.first_tick for file in trace.files(Committed({1: 2, 2: 2}))] == [1, 2]


def test_no_rows_no_file(tmp_path: Path) -> None:
    trace = Trace.open(Location(tmp_path), SCHEMA)
    assert trace.append(rows(), 1, 1) == 0
    assert trace.table.version == 0
    assert trace.read(Committed({1: 1})).num_rows == 0
    assert list(tmp_path.glob("*.parquet")) == []


def test_one_attempt_writes_once(tmp_path: Path) -> None:
    trace = Trace.open(Location(tmp_path), SCHEMA)
    trace.append(rows((1, "a", 1)), 1, 1)
    with pytest.raises(InternalError, match=r"was written to .* already"):
        trace.append(rows((1, "a", 1)), 1, 1)


def test_two_writers_append_side_by_side(place: Location) -> None:
    first = Trace.open(place, SCHEMA)
    second = Trace.open(place, SCHEMA)
    first.append(rows((1, "a", 1)), 1, 1)
    second.append(rows((2, "b", 1)), 1, 2)
    first.append(rows((3, "c", 1)), 2, 1)
    assert second.refresh()
    assert ids(second.read(Committed({1: 2, 2: 1}))) == [2, 3]


def test_a_trace_that_is_always_taken_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_module, "_REBASES", 0)
    trace = Trace.open(Location(tmp_path), SCHEMA)
    with pytest.raises(TickConflict, match="keep adding"):
        trace.append(rows((1, "a", 1)), 1, 1)


def test_what_spark_wrote_is_adopted(place: Location) -> None:
    trace = Trace.open(place, SCHEMA)
    with_tick = rows((1, "a", 1), (2, None, 1)).append_column("_tick", pa.array([4, 4]))
    target = trace.spark_target(4, 2).removeprefix(place.uri + "/")
    for part in ("part-0", "part-1"):
        with place.open_output(f"{target}/{part}.snappy.parquet") as stream:
            parquet.write_table(with_tick, stream)
    with place.open_output(f"{target}/part-2.snappy.parquet") as stream:
        parquet.write_table(with_tick.slice(0, 0), stream)
    with place.open_output(f"{target}/_SUCCESS") as stream:
        stream.write(b"")
    assert trace.adopt(4, 2) == 4
    assert ids(Trace.open(place).read(Committed({4: 2}))) == [1, 1, 2, 2]
    assert ids(trace.read(Committed({4: 3}))) == []
    assert trace.adopt(5, 2) == 0


def test_adopting_other_columns_is_refused(tmp_path: Path) -> None:
    trace = Trace.open(Location(tmp_path), SCHEMA)
    (tmp_path / "t000000000001-e000001-spark").mkdir()
    parquet.write_table(
        pa.table({"id": [1]}), tmp_path / "t000000000001-e000001-spark" / "part-0.parquet"
    )
    with pytest.raises(InternalError, match="a file has columns"):
        trace.adopt(1, 1)


def test_rows_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    trace = Trace.open(Location(tmp_path), SCHEMA)
    with pytest.raises(InternalError, match="for a trace of"):
        trace.append(pa.table({"id": [1]}), 1, 1)
    with pytest.raises(InternalError, match="don't fit"):
        trace.append(
            pa.table({"id": ["x"], "name": ["y"], "_weight": [1]}).cast(
                pa.schema([("id", pa.string()), ("name", pa.string()), ("_weight", pa.int64())])
            ),
            1,
            1,
        )


def test_every_type_comes_back_bit_for_bit(place: Location) -> None:
    schema = pa.schema(
        [
            ("b", pa.bool_()),
            ("i8", pa.int8()),
            ("i16", pa.int16()),
            ("i32", pa.int32()),
            ("f", pa.float32()),
            ("d", pa.float64()),
            ("dec", pa.decimal128(38, 10)),
            ("s", pa.string()),
            ("bin", pa.binary()),
            ("day", pa.date32()),
            ("ts", pa.timestamp("us", "UTC")),
            ("ntz", pa.timestamp("us")),
            ("arr", pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())]))),
            ("st", pa.struct([("a", pa.list_(pa.float64()))])),
            ("_weight", pa.int64()),
        ]
    )
    moment = datetime.datetime(2024, 2, 29, 1, 2, 3, 4)
    full = [
        True, 1, 2, 3, -0.0, float("inf"), decimal.Decimal("-" + "9" * 28 + ".0123456789"),
        "é" * 40, b"\x00\xff", datetime.date(1, 1, 1), moment.replace(tzinfo=datetime.UTC), moment,
        [{"x": None, "y": ""}, None], {"a": [1.5, None]}, -3,
    ]  # fmt: skip
    table = pa.table(
        [pa.array([value, None], f.type) for value, f in zip(full, schema, strict=True)],
        schema=schema,
    )
    trace = Trace.open(place, schema, ["i32"])
    trace.append(table, 1, 1)
    for each in (trace, Trace.open(place, schema)):
        found = each.read(Committed({1: 1})).drop_columns("_tick")
        assert found.equals(table)
        assert str(found["f"][0]) == "-0.0"
    seen = DeltaTable(place.uri).to_pyarrow_table().drop_columns("_tick")
    assert seen.select(schema.names).cast(schema).equals(table)


def test_a_trace_is_a_plain_delta_table_past_checkpoints(tmp_path: Path) -> None:
    trace = Trace.open(Location(tmp_path), SCHEMA)
    for tick in range(1, 121):
        trace.append(rows((tick, "x", 1)), tick, 1)
    table = DeltaTable(str(tmp_path))
    assert table.version() == 120
    assert (tmp_path / "_delta_log" / "00000000000000000112.checkpoint.parquet").exists()
    assert sorted(table.to_pyarrow_table()["_tick"].to_pylist()) == list(range(1, 121))
    properties = table.metadata().configuration
    assert properties["delta.logRetentionDuration"] == "interval 36500 days"
    assert properties["delta.enableExpiredLogCleanup"] == "false"
    again = Trace.open(Location(tmp_path))
    assert len(again.table.files) == 120
    assert set(again.table.files) == set(trace.table.files)


def test_traces_that_are_something_else(tmp_path: Path) -> None:
    with pytest.raises(CorruptStore, match="is missing"):
        Trace.open(Location(tmp_path))
    Trace.open(Location(tmp_path), SCHEMA)
    with pytest.raises(CorruptStore, match="instead of"):
        Trace.open(Location(tmp_path), pa.schema([("id", pa.int64())]))
    write_deltalake(
        str(tmp_path), rows((1, "a", 1)).append_column("_tick", pa.array([1])), mode="append"
    )
    with pytest.raises(CorruptStore, match="is not one that a trace writes"):
        Trace.open(Location(tmp_path)).read(Committed({1: 1}))


def test_a_lost_file_is_named(tmp_path: Path) -> None:
    trace = Trace.open(Location(tmp_path), SCHEMA)
    trace.append(rows((1, "a", 1)), 1, 1)
    next(tmp_path.glob("t*.parquet")).unlink()
    with pytest.raises(CorruptStore, match="is lost or damaged"):
        Trace.open(Location(tmp_path)).read(Committed({1: 1}))


def _random_value(kind: pa.DataType, dice: random.Random) -> Any:
    if dice.random() < 0.1:
        return None
    number = dice.randrange(-500, 500)
    if pa.types.is_string(kind):
        return dice.choice(["", "é", f"k{number}", "z" * 70 + str(number % 7)])
    if pa.types.is_binary(kind):
        return bytes([number % 256, 7])
    if pa.types.is_boolean(kind):
        return number > 0
    if pa.types.is_decimal(kind):
        return decimal.Decimal(number) / 4
    if pa.types.is_date32(kind):
        return datetime.date(2000, 1, 1) + datetime.timedelta(days=number)
    if pa.types.is_timestamp(kind):
        moment = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC if kind.tz else None)
        return moment + datetime.timedelta(microseconds=number)
    return float(number) if pa.types.is_floating(kind) else number


KINDS = [
    pa.int64(), pa.int32(), pa.int8(), pa.string(), pa.binary(), pa.bool_(), pa.decimal128(12, 2),
    pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.float64(),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("clustered", [True, False])
def test_limits_bring_exactly_what_is_asked(
    tmp_path: Path, kind: pa.DataType, clustered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For types that limit; others bring everything."""
    monkeypatch.setattr("ivm_core.store.trace_writing.ROW_GROUP_ROWS", 64)
    monkeypatch.setattr("ivm_core.store.trace._SMALL_ROWS", 10)
    monkeypatch.setattr("ivm_core.store.parquet_scan._ROWS_AT_A_TIME", 200)
    dice = random.Random(f"{kind}{clustered}")
    schema = pa.schema([("n", pa.int64()), ("k", kind), ("j", pa.int64()), ("_weight", pa.int64())])
    if pa.types.is_int8(kind):
        values = [
            max(-128, min(127, v)) if (v := _random_value(kind, dice)) is not None else None
            for _ in range(2000)
        ]
    else:
        values = [_random_value(kind, dice) for _ in range(2000)]
    table = pa.table(
        [range(2000), pa.array(values, kind), [n % 37 for n in range(2000)], [1] * 2000],
        schema=schema,
    )
    trace = Trace.open(Location(tmp_path), schema, ["k"] if clustered else [])
    committed = Committed({1: 1, 2: 1})
    trace.append(table.slice(0, 1995), 1, 1)
    trace.append(table.slice(1995), 2, 1)
    for count in (0, 1, 3, 40):
        for with_null in (False, True):
            keys = pa.array(dice.sample(values, count), kind)
            some = ColumnLimit("k", keys, with_null)
            other = ColumnLimit("j", pa.array([3, 5], pa.int64()))
            limit = Limit(((some,), (some, other), (other,)))
            asked = set(keys.drop_null().to_pylist())
            expected = [
                n
                for n, value in enumerate(values)
                if value in asked or (value is None and with_null) or n % 37 in (3, 5)
            ]
            if pa.types.is_floating(kind):
                expected = list(range(2000))
            found = trace.read(committed, columns=["n"], where=limit)
            assert sorted(found["n"].to_pylist()) == expected
            whole = trace.read(committed, where=Limit.of("j", pa.array([n % 37 for n in [40]])))
            assert sorted(whole["n"].to_pylist()) == [n for n in range(2000) if n % 37 == 3]
            assert (
                whole.sort_by("n")
                .select(["n", "k"])
                .equals(
                    table.filter(pa.array([n % 37 == 3 for n in range(2000)])).select(["n", "k"])
                )
            )


def test_a_limit_without_conjunctions_asks_for_nothing(tmp_path: Path) -> None:
    trace = Trace.open(Location(tmp_path), SCHEMA)
    trace.append(rows((1, "a", 1)), 1, 1)
    assert trace.read(Committed({1: 1}), where=Limit(())).num_rows == 0


def test_a_limit_on_another_tables_column(tmp_path: Path) -> None:
    trace = Trace.open(Location(tmp_path), SCHEMA)
    with pytest.raises(InternalError, match="a limit on 'nope'"):
        trace.read(Committed({1: 1}), where=Limit.of("nope", pa.array([1])))


def test_a_trace_is_given_columns_with_its_next_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that were written without them have NULL, whatever a read is limited by."""
    narrow = pa.schema([("id", pa.int64()), ("_weight", pa.int64())])
    wide = pa.schema([("more", pa.string()), *narrow])
    old = Trace.open(Location(tmp_path / "t"), narrow)
    old.append(pa.table({"id": [1, 2], "_weight": [1, 1]}), 1, 1)
    trace = Trace.open(Location(tmp_path / "t"), wide, widens=True)
    committed = Committed({1: 1, 2: 1})
    assert trace.read(committed, columns=["more", "id"]).to_pylist() == [
        {"more": None, "id": 1},
        {"more": None, "id": 2},
    ]
    assert Trace.open(Location(tmp_path / "t")).schema.names == ["id", "_weight", "_tick"]
    row = pa.table({"more": ["x"], "id": [3], "_weight": [1]}, schema=wide)
    trace.append(row, 2, 1)
    assert set(Trace.open(Location(tmp_path / "t")).schema.names) == {*wide.names, "_tick"}
    for open_again in (False, True):
        if open_again:
            monkeypatch.setattr(trace_module, "_SMALL_ROWS", -1)
            trace = Trace.open(Location(tmp_path / "t"), wide, widens=True)
        for values, with_null, expected in (
            (["x"], False, [3]),
            (["y"], False, []),
            (["y"], True, [1, 2]),
            (["x"], True, [1, 2, 3]),
        ):
            limit = Limit(((ColumnLimit("more", pa.array(values), with_null),),))
            found = trace.read(committed, columns=["id"], where=limit)
            assert sorted(found["id"].to_pylist()) == expected
    narrower = Trace.open(Location(tmp_path / "t"), narrow, widens=True)
    assert narrower.read(committed, columns=["id"])["id"].to_pylist() == [1, 2, 3]
    with pytest.raises(CorruptStore):
        Trace.open(Location(tmp_path / "t"), narrow)


def test_a_column_with_a_dot_is_not_the_field_of_a_struct(place: Location) -> None:
    schema = pa.schema(
        [("a", pa.struct([("b", pa.int64())])), ("a.b", pa.int64()), ("_weight", pa.int64())]
    )
    count = 20_000
    columns = [[{"b": 0}] * count, list(range(count)), [1] * count]
    table = pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )
    trace, committed = Trace.open(place, schema), Committed()
    trace.append(table, 1, 1)
    committed.add(1, 1)
    limit = Limit.all_of((ColumnLimit("a.b", pa.array([5000])),))
    found = trace.read(committed, where=limit)
    assert found["a.b"].to_pylist() == [5000]
    assert found["a"].to_pylist() == [{"b": 0}]
    assert trace.read(committed, columns=["a"]).column_names == ["a"]


@pytest.mark.parametrize("small", [2, 8192])
def test_a_limit_that_rules_nothing_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(trace_module, "_SMALL_ROWS", small)
    trace = Trace.open(Location(tmp_path / "trace"), SCHEMA)
    committed = Committed()
    trace.append(rows((1, "x", 1), (2, "y", 1), (4, "z", 1)), 1, 1)
    committed.add(1, 1)

    def is_within(*values: int | None, column: str = "id", with_null: bool = False) -> bool:
        limit = ColumnLimit(column, pa.array(values, pa.int64()), with_null)
        return trace.is_within(committed, limit)

    assert is_within(1, 2, 3, 4)
    assert is_within(4, 3, 2, 1, 0, 1)
    assert not is_within(1, 2, 4)  # as a range it has a gap, though no row is in it
    assert not is_within(2, 3, 4)
    assert not is_within(1, 2, 3)
    assert not is_within()
    names = ColumnLimit("name", pa.array(["x", "y", "z"]))
    assert not trace.is_within(committed, names)
    trace.append(rows((None, "x", 1), (2, "y", 1), (3, "z", 1)), 2, 1)
    committed.add(2, 1)
    assert not is_within(1, 2, 3, 4)
    assert is_within(1, 2, 3, 4, with_null=True)
