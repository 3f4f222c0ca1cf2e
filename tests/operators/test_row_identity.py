"""The row encoding: Python against Spark against a reference that shares no code with either."""

from __future__ import annotations

import math
import random
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from ivm_core.model.digest import Digest
from ivm_core.model.schema import Schema, parse_schema, parse_type
from ivm_core.operators.arrow_types import arrow_schema, to_arrow, to_spark
from ivm_core.operators.row_identity import (
    digest_aggregates,
    digest_from_limbs,
    digest_of,
    encode_row,
    encoded_column,
    encoded_row,
    encoded_rows,
    hash_row,
    row_hashes,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ivm_core.model.types import DataType

EPOCH = datetime(1970, 1, 1)


def reference(value: Any, of: DataType) -> bytes:
    """The module docstring of row_identity, read off word by word."""
    if value is None:
        return b"~"
    kind = of.kind
    if kind == "BOOLEAN":
        return b"t" if value else b"f"
    if kind in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        return b"%d;" % value
    if kind == "DATE":
        return b"%d;" % (value - EPOCH.date()).days
    if kind in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return b"%d;" % ((value.replace(tzinfo=None) - EPOCH) // timedelta(microseconds=1))
    if kind in ("FLOAT", "DOUBLE"):
        if math.isnan(value):
            return b"%d;" % 0x7FF8000000000000
        return b"%d;" % struct.unpack(">q", struct.pack(">d", value))
    if kind == "DECIMAL":
        scaled = int(value.scaleb(of.scale, Context(prec=80)))
        digits = str(abs(scaled)).rjust(of.scale + 1, "0")
        text = digits if of.scale == 0 else f"{digits[: -of.scale]}.{digits[-of.scale :]}"
        return ("-" * (scaled < 0) + text + ";").encode()
    if kind == "STRING":
        return b"%d:" % len(value.encode()) + value.encode()
    if kind == "BINARY":
        return value.hex().upper().encode() + b";"
    if kind == "ARRAY":
        return b"%d:" % len(value) + b"".join(reference(each, of.element) for each in value)
    if kind == "MAP":
        entries = (b"(" + reference(k, of.key) + reference(v, of.value) for k, v in value)
        return b"%d:" % len(value) + b"".join(entries)
    return b"(" + b"".join(reference(value.get(name), each) for name, each in of.fields)


def float32(value: float) -> float:
    return struct.unpack(">f", struct.pack(">f", value))[0]


def nasty_doubles() -> list[float]:
    dice = random.Random(7)
    found = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 1.7976931348623157e308]
    found += [2.2250738585072014e-308, 2.225073858507201e-308, -1.7976931348623157e308, 0.1, 1 / 3]
    for exponent in (*range(-1074, 1024, 7), 1023, -1022, -1023, -1021):
        power = math.ldexp(1.0, exponent)
        found += [power, math.nextafter(power, 0), math.nextafter(power, math.inf), -power]
    for _ in range(1500):
        found += struct.unpack(">d", dice.randbytes(8))
    return found


def values_by_type() -> dict[str, list[Any]]:
    """Values of every type that are likely to go wrong, most of them in the first few places."""
    dice = random.Random(11)
    floats = [
        0.0,
        -0.0,
        math.inf,
        -math.inf,
        math.nan,
        1.401298464324817e-45,
        3.4028234663852886e38,
    ]
    floats += [float32(0.1), float32(-1e-40), 1.1754943508222875e-38]
    decimals = {}
    for precision, scale in (
        (38, 0),
        (38, 38),
        (38, 30),
        (38, 10),
        (18, 2),
        (19, 19),
        (5, 5),
        (1, 0),
    ):
        top = 10**precision - 1
        whole = [
            0,
            1,
            -1,
            top,
            -top,
            10**scale % top,
            *(dice.randint(-top, top) for _ in range(20)),
        ]
        decimals[f"DECIMAL({precision},{scale})"] = [
            Decimal((each < 0, tuple(map(int, str(abs(each)))), -scale)) for each in whole
        ]
    moments = [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), EPOCH]
    moments += [EPOCH - timedelta(microseconds=1), datetime(2024, 3, 10, 2, 30, 0, 123456)]
    moments += [datetime(1582, 10, 10, 1, 2, 3), datetime(1900, 1, 1, 0, 0, 0, 1)]
    texts = ["", "~", "a", "ab", "\0", "a\0b", "né", "😀", "1:a", ";", "x" * 300, "it's", '\\n`"\n']
    return {
        "BOOLEAN": [True, False],
        "TINYINT": [0, 127, -128],
        "SMALLINT": [0, 32767, -32768],
        "INT": [0, 2**31 - 1, -(2**31)],
        "BIGINT": [0, 1, -1, 2**63 - 1, -(2**63)],
        "FLOAT": floats,
        "DOUBLE": nasty_doubles(),
        **decimals,
        "STRING": texts,
        "BINARY": [b"", b"\0", b"\xff\x00\x80", b"~", bytes(range(256))],
        "DATE": [date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(1582, 10, 10)],
        "TIMESTAMP": [each.replace(tzinfo=UTC) for each in moments],
        "TIMESTAMP_NTZ": moments,
        "ARRAY<STRING>": [[], [None], ["a", "bc"], ["ab", "c"], ["", None, ""], texts],
        "ARRAY<ARRAY<DOUBLE>>": [[], [[]], [None, [-0.0, None, math.nan]], [[1.5], [], [2.5, 0.0]]],
        "STRUCT<a: INT, b: STRING>": [{"a": None, "b": None}, {"a": 1, "b": "x"}],
        "ARRAY<STRUCT<k: STRING, v: ARRAY<DECIMAL(5,2)>>>": [
            [{"k": "a", "v": [Decimal("1.50"), None]}, None, {"k": None, "v": None}],
            [],
        ],
        "MAP<STRING, DOUBLE>": [
            [],
            [("a", -0.0)],
            [("a", 0.0), ("b", None)],
            [("b", 1.5), ("a", 1)],
        ],
        "MAP<DATE, ARRAY<MAP<INT, STRING>>>": [
            [(date(1, 1, 1), [[(1, "x"), (2, None)], None, []])],
            [(date(1, 1, 1), None), (date(1970, 1, 1), [])],
        ],
        "STRUCT<s: STRUCT<t: TIMESTAMP_NTZ, f: FLOAT>>": [
            {"s": None},
            {"s": {"t": moments[4], "f": -0.0}},
            {"s": {"t": None, "f": math.nan}},
        ],
    }


def wide_table() -> tuple[Schema, pa.Table]:
    """All the values side by side, each column ending in NULLs."""
    by_type = values_by_type()
    schema = parse_schema(", ".join(f"c{i} {ddl}" for i, ddl in enumerate(by_type)))
    height = max(map(len, by_type.values())) + 1
    columns = [
        pa.array(values + [None] * (height - len(values)), to_arrow(field.type))
        for values, field in zip(by_type.values(), schema, strict=True)
    ]
    weights = pa.array([(-1) ** i * (i % 5) for i in range(height)], pa.int64())
    return schema, pa.table([*columns, weights], schema=arrow_schema(schema, weight=True))


@pytest.mark.parametrize("ddl", values_by_type())
def test_python_encoding_is_the_documented_one(ddl: str) -> None:
    schema = parse_schema(f"c {ddl}")
    values = [None, *values_by_type()[ddl], None]
    table = pa.table({"c": pa.array(values, to_arrow(schema.field("c").type))})
    expected = [reference(value, parse_type(ddl)) for value in values]
    assert encoded_rows(table, schema) == expected
    assert encoded_rows(table.slice(2), schema) == expected[2:]
    different = {expected[i] for i in range(len(values))}
    assert len(different) == len({repr(value) for value in values})


def test_spark_encodes_hashes_and_sums_as_python_does(spark: SparkSession) -> None:
    schema, table = wide_table()
    frame = spark.createDataFrame(table, to_spark(schema).add("_weight", "long"))
    high, low = row_hashes(schema)
    rows = frame.select(
        *(
            F.expr(encoded_column(name, schema.field(name).type).sql("spark")).alias(name)
            for name in schema.names
        ),
        F.expr(encoded_row(schema).sql("spark")).alias("row"),
        F.expr(high.sql("spark")).alias("high"),
        F.expr(low.sql("spark")).alias("low"),
    ).toArrow()
    for name in schema.names:
        alone = schema.select([name])
        assert rows.column(name).to_pylist() == encoded_rows(table, alone), schema.field(name).ddl
    encoded = encoded_rows(table, schema)
    assert rows.column("row").to_pylist() == encoded
    hashes = [hash_row(row) for row in encoded]
    assert [each % 2**64 for each in rows.column("high").to_pylist()] == [h for h, _ in hashes]
    assert [each % 2**64 for each in rows.column("low").to_pylist()] == [h for _, h in hashes]


def test_spark_sums_the_digest_in_any_time_zone(spark: SparkSession) -> None:
    wide, table = wide_table()
    kinds = {"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "DOUBLE", "STRING"}
    schema = wide.select([field.name for field in wide if field.type.kind in kinds])
    frame = spark.createDataFrame(
        table.select([*schema.names, "_weight"]), to_spark(schema).add("_weight", "long")
    )
    sums = [F.expr(tree.sql("spark")).alias(alias) for alias, tree in digest_aggregates(schema)]
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        row = frame.select(*sums).collect()[0]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone or "UTC")
    assert digest_from_limbs(row.asDict()) == digest_of(table, schema)
    empty = frame.where("false").select(*sums).collect()[0]
    assert digest_from_limbs(empty.asDict()) == Digest.zero()


def test_hash_and_digest_can_be_recomputed_by_hand() -> None:
    schema = parse_schema("a STRING, b INT")
    table = pa.table({"a": ["x", "x", None], "b": pa.array([1, 2, None], pa.int32())})
    table = table.append_column("_weight", pa.array([3, -1, 2], pa.int64()))
    total = 0
    for encoded, weight in ((b"1:x1;", 3), (b"1:x2;", -1), (b"~~", 2)):
        high = xxhash.xxh64(b"\x00" + encoded, seed=42).intdigest()
        low = xxhash.xxh64(b"\x01" + encoded, seed=42).intdigest()
        assert hash_row(encoded) == (high, low)
        total += weight * (high * 2**64 + low)
    assert digest_of(table, schema).value == total % 2**128
    assert digest_of(table.slice(0, 0), schema) == Digest.zero()


@pytest.mark.parametrize(
    ("ddl", "one", "other"),
    [
        ("a STRING, b STRING", ("a", "bc"), ("ab", "c")),
        ("a STRING, b STRING", (None, ""), ("", None)),
        ("a STRING, b STRING", ("~", "x"), (None, "~x")),
        ("a STRING", ("",), (None,)),
        ("a DOUBLE", (0.0,), (-0.0,)),
        ("a ARRAY<STRING>, b ARRAY<STRING>", (["a"], []), ([], ["a"])),
        ("a ARRAY<STRING>", ([],), (None,)),
        ("a ARRAY<INT>", ([None],), ([],)),
        ("a STRUCT<x: INT>", ({"x": None},), (None,)),
        ("a BINARY, b BINARY", (b"\x01", b"\x02\x03"), (b"\x01\x02", b"\x03")),
    ],
)
def test_rows_that_differ_have_different_encodings(ddl: str, one: Any, other: Any) -> None:
    schema = parse_schema(ddl)
    assert encode_row(one, schema) != encode_row(other, schema)


MIXED = parse_schema(
    "s STRING, n BIGINT, d DOUBLE, m DECIMAL(20,6), b BINARY, "
    "l ARRAY<STRING>, t STRUCT<x: INT, y: STRING>"
)
TEXT = st.text(st.characters(codec="utf-8"), max_size=5)
MIXED_ROWS = st.tuples(
    *(
        st.none() | values
        for values in (
            TEXT,
            st.integers(-(2**63), 2**63 - 1),
            st.floats(allow_nan=True),
            st.decimals("-99999999999999", "99999999999999", places=6),
            st.binary(max_size=5),
            st.lists(st.none() | TEXT, max_size=4),
            st.fixed_dictionaries({"x": st.none() | st.integers(-9, 9), "y": st.none() | TEXT}),
        )
    )
)


@given(st.lists(MIXED_ROWS, min_size=1, max_size=20))
def test_random_rows_encode_as_documented_wherever_they_are_sliced(rows: list[Any]) -> None:
    columns = [
        pa.array([row[i] for row in rows], to_arrow(field.type)) for i, field in enumerate(MIXED)
    ]
    table = pa.table(columns, names=list(MIXED.names))
    expected = [
        b"".join(reference(value, field.type) for value, field in zip(row, MIXED, strict=True))
        for row in rows
    ]
    assert encoded_rows(table, MIXED) == expected
    middle = len(rows) // 2
    pieces = pa.concat_tables([table.slice(0, middle), table.slice(middle)])
    assert encoded_rows(pieces, MIXED) == expected


@given(st.lists(st.tuples(MIXED_ROWS, st.integers(-3, 3)), max_size=15))
def test_digests_add_up_in_any_order(changes: list[Any]) -> None:
    def digest(some: list[Any]) -> Digest:
        columns = [
            pa.array([row[i] for row, _ in some], to_arrow(field.type))
            for i, field in enumerate(MIXED)
        ]
        weights = pa.array([weight for _, weight in some], pa.int64())
        return digest_of(pa.table([*columns, weights], names=[*MIXED.names, "_weight"]), MIXED)

    middle = len(changes) // 2
    assert digest(changes) == digest(changes[middle:]) + digest(changes[:middle])
    undone = changes + [(row, -weight) for row, weight in reversed(changes)]
    assert digest(undone) == Digest.zero()
