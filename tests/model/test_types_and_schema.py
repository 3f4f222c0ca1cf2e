"""Types, schemas and names: what is read, what is refused and how it is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivm_core.model.errors import (
    DuplicateName,
    InvalidName,
    SqlError,
    UnknownName,
    Unsupported,
    UserError,
)
from ivm_core.model.names import check_relation_name, quote
from ivm_core.model.schema import Field, Schema, parse_schema, parse_type
from ivm_core.model.types import BIGINT, INT, STRING, Array, DataType, Decimal, Map, Scalar, Struct


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("bigint", "BIGINT"),
        ("long", "BIGINT"),
        ("Integer", "INT"),
        ("byte", "TINYINT"),
        ("real", "FLOAT"),
        ("decimal", "DECIMAL(10,0)"),
        ("numeric( 12 , 2 )", "DECIMAL(12,2)"),
        ("dec(5)", "DECIMAL(5,0)"),
        ("timestamp_ltz", "TIMESTAMP"),
        ("timestamp_ntz", "TIMESTAMP_NTZ"),
        ("array<array<int>>", "ARRAY<ARRAY<INT>>"),
        ("struct<a:int, `b c`x array<date>>", None),
        ("map<string,map<int , array<date>>>", "MAP<STRING, MAP<INT, ARRAY<DATE>>>"),
        ("map<string>", None),
        ("struct<a int, B: array<date>>", "STRUCT<`a`: INT, `B`: ARRAY<DATE>>"),
    ],
)
def test_types_are_read_as_spark_reads_them(written: str, canonical: str | None) -> None:
    if canonical is None:
        with pytest.raises(SqlError):
            parse_type(written)
    else:
        assert parse_type(written).ddl == canonical
        assert parse_type(canonical) == parse_type(written)


TYPES: st.SearchStrategy[DataType] = st.recursive(
    st.sampled_from(["BOOLEAN", "INT", "STRING", "DOUBLE", "TIMESTAMP_NTZ", "BINARY"]).map(Scalar)
    | st.integers(1, 38).flatmap(lambda p: st.builds(Decimal, st.just(p), st.integers(0, p))),
    lambda inner: (
        st.builds(Array, inner)
        | st.builds(Map, st.sampled_from([Scalar("INT"), Array(Scalar("STRING"))]), inner)
        | st.lists(inner, min_size=1, max_size=3).map(
            lambda types: Struct(tuple((f"f{i}", each) for i, each in enumerate(types)))
        )
    ),
    max_leaves=6,
)


@given(st.lists(st.tuples(TYPES, st.booleans()), min_size=1, max_size=5))
def test_canonical_ddl_reads_back(columns: list[tuple[DataType, bool]]) -> None:
    schema = Schema(tuple(Field(f"c{i}", *column) for i, column in enumerate(columns)))
    assert parse_schema(schema.ddl) == schema


@pytest.mark.parametrize(
    ("word", "way_out"),
    [
        ("VARIANT", "to_json"),
        ("INTERVAL DAY TO SECOND", "BIGINT"),
        ("CHAR(3)", "use STRING"),
        ("VARCHAR(3)", "use STRING"),
        ("TIME", "microseconds since midnight"),
        ("VOID", "CAST(NULL AS"),
        ("MAP<STRING, VARIANT>", "to_json"),
        ("STRING COLLATE UTF8_LCASE", "lower("),
        ("STRUCT<a: INT NOT NULL>", "leave NOT NULL out"),
    ],
)
def test_types_without_identity_are_refused_with_a_way_around(word: str, way_out: str) -> None:
    with pytest.raises(Unsupported) as refusal:
        parse_schema(f"id INT,\n  c {word}", "source s")
    assert way_out in refusal.value.rewrite
    assert refusal.value.position.startswith("line 2, column ")
    assert "of source s" in str(refusal.value)


@pytest.mark.parametrize(
    ("ddl", "line", "column"),
    [
        ("", 1, 1),
        ("id", 1, 3),
        ("id INT name STRING", 1, 8),
        ("id INT,\nname STRNG", 2, 6),
        ("id INT,", 1, 8),
        ("d DECIMAL(x)", 1, 11),
        ("a ARRAY<INT", 1, 12),
        ("id INT COMMENT 'x'", 1, 8),
        ("id INT NOT", 1, 11),
    ],
)
def test_ddl_that_does_not_parse_names_line_and_column(ddl: str, line: int, column: int) -> None:
    with pytest.raises(SqlError) as refusal:
        parse_schema(ddl)
    assert (refusal.value.line, refusal.value.column) == (line, column)
    assert f"line {line}, column {column}" in str(refusal.value)


@pytest.mark.parametrize("ddl", ["d DECIMAL(39,0)", "d DECIMAL(5,6)", "d DECIMAL(0,0)"])
def test_decimals_that_do_not_exist(ddl: str) -> None:
    with pytest.raises(UserError, match="precision 1 to 38"):
        parse_schema(ddl)


@pytest.mark.parametrize(
    "name",
    [
        *("_weight", "_TICK", "_tv_x", "_change_type", "_commit_version", "_commit_timestamp"),
        *("a b", "a,b", "a;b", "a{", "a}", "a(", "a)", "a\nb", "a\tb", "a=b", "a`b", ".a", "[0]"),
    ],
)
def test_column_names_that_are_reserved_or_cannot_be_stored(name: str) -> None:
    with pytest.raises(InvalidName):
        parse_schema(f"{quote(name)} INT")


def test_columns_are_found_whatever_their_case_and_come_once() -> None:
    schema = parse_schema("Id BIGINT NOT NULL, name STRING")
    assert schema.field("ID") == Field("Id", BIGINT, nullable=False)
    assert schema.names == ("Id", "name")
    assert "NAME" in schema
    assert "x" not in schema
    assert schema.select(["NAME"]).fields == (Field("name", STRING),)
    with pytest.raises(UnknownName, match="one of Id, name"):
        schema.field("x")
    with pytest.raises(DuplicateName, match="differs only in case"):
        parse_schema("a INT, A INT")
    with pytest.raises(UserError, match="without columns"):
        Schema(())


def test_traces_may_have_reserved_columns() -> None:
    assert Schema((Field("_tv_count", INT),), internal=True).names == ("_tv_count",)


@pytest.mark.parametrize("name", ["a", "_a", "Orders2", "x" * 128])
def test_names_that_relations_may_have(name: str) -> None:
    assert check_relation_name(name, "view") == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "1a",
        "a b",
        "a.b",
        "..",
        "a/b",
        "a\\b",
        "a'b",
        'a"b',
        "a`b",
        "__a",
        "é",
        "x" * 129,
        "a\n",
    ],
)
def test_names_that_relations_may_not_have(name: str) -> None:
    with pytest.raises(InvalidName) as refusal:
        check_relation_name(name, "view")
    assert "ASCII letters, digits and underscores" in refusal.value.fix


def test_a_better_name_is_suggested() -> None:
    with pytest.raises(InvalidName, match="for example v_2nd_order"):
        check_relation_name("2nd order..", "view")
    with pytest.raises(InvalidName, match="text, not int"):
        check_relation_name(3, "view")  # type: ignore[arg-type]


def test_quoting_doubles_backticks() -> None:
    assert quote("a`b") == "`a``b`"
