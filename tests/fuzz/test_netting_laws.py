"""Netting and digests on random Z-sets: what must hold whatever the rows are."""

from __future__ import annotations

from collections import Counter
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivm_core.model.digest import Digest
from ivm_core.model.schema import Schema, parse_schema
from ivm_core.operators import netting
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.netting import net, stacked
from ivm_core.operators.row_identity import digest_of
from tests.sql.bags import identity

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "INT": st.integers(-2, 2),
    "STRING": st.sampled_from(["", "a", "~", "1:a", "é"]),
    "DOUBLE": st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")]),
    "DECIMAL(38,2)": st.sampled_from([Decimal("0.00"), Decimal("-1.50"), Decimal("9" * 36)]),
    "DATE": st.sampled_from([date(1970, 1, 1), date(1969, 12, 31)]),
    "BINARY": st.sampled_from([b"", b"\x00", b"~"]),
    "ARRAY<INT>": st.lists(st.none() | st.integers(0, 1), max_size=2),
    "STRUCT<`a`: INT,`b`: DOUBLE>": st.fixed_dictionaries(
        {"a": st.none() | st.integers(0, 1), "b": st.sampled_from([0.0, -0.0])}
    ),
}
ZSet = list[tuple[tuple[Any, ...], int]]


@st.composite
def schemas_and_zsets(draw: st.DrawFn) -> tuple[Schema, ZSet, ZSet]:
    types = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    schema = parse_schema(", ".join(f"c{i} {kind}" for i, kind in enumerate(types)))
    row = st.tuples(*(st.none() | VALUES[kind] for kind in types))
    zset = st.lists(st.tuples(row, st.integers(-3, 3)), max_size=12)
    return schema, draw(zset), draw(zset)


def table(schema: Schema, zset: ZSet) -> pa.Table:
    arrow = arrow_schema(schema, weight=True)
    columns = [[row[i] for row, _ in zset] for i in range(len(schema))]
    columns.append([weight for _, weight in zset])
    arrays = [pa.array(each, field.type) for each, field in zip(columns, arrow, strict=True)]
    return pa.table(arrays, schema=arrow)


def weights(schema: Schema, of: pa.Table) -> dict[Any, int]:
    rows = zip(*(of.column(name).to_pylist() for name in schema.names), strict=True)
    counted: Counter[Any] = Counter()
    for row, weight in zip(rows, of.column("_weight").to_pylist(), strict=True):
        counted[identity(row)] += weight
    return {row: weight for row, weight in counted.items() if weight}


@given(schemas_and_zsets())
@settings(max_examples=200, deadline=None)
def test_netting_keeps_the_weights_and_no_row_twice(drawn: tuple[Schema, ZSet, ZSet]) -> None:
    schema, one, _ = drawn
    given_table = table(schema, one)
    netted = net(given_table, schema)
    assert weights(schema, netted) == weights(schema, given_table)
    assert netted.num_rows == len(weights(schema, netted))
    assert weights(schema, net(netted, schema)) == weights(schema, netted)


@given(schemas_and_zsets())
@settings(max_examples=100, deadline=None)
def test_many_rows_are_netted_by_all_cores_as_few_by_one(drawn: tuple[Schema, ZSet, ZSet]) -> None:
    schema, one, other = drawn
    few = table(schema, one + other + one)
    wanted = net(few, schema)
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(netting, "MANY_ROWS", 1)
        assert weights(schema, net(few, schema)) == weights(schema, wanted)


def test_many_rows_keep_the_order_of_their_first_coming() -> None:
    schema = parse_schema("a INT, b STRING")
    rows = [((n * 7 % 250_000, str(n % 3)), 1) for n in range(300_000)]
    netted = net(table(schema, rows), schema)
    first = dict.fromkeys(row for row, _ in rows)
    found = zip(netted["a"].to_pylist(), netted["b"].to_pylist(), strict=True)
    assert netted.num_rows > netting.MANY_ROWS
    assert list(found) == list(first)


@given(schemas_and_zsets())
@settings(max_examples=200, deadline=None)
def test_netting_parts_first_changes_nothing(drawn: tuple[Schema, ZSet, ZSet]) -> None:
    schema, one, other = drawn
    parts = [table(schema, one), table(schema, other)]
    whole = net(pa.concat_tables(parts), schema)
    again = net(stacked(*(net(part, schema) for part in parts)), schema)
    assert weights(schema, whole) == weights(schema, again)


@given(schemas_and_zsets())
@settings(max_examples=200, deadline=None)
def test_digests_add_up(drawn: tuple[Schema, ZSet, ZSet]) -> None:
    schema, one, other = drawn
    first, second = table(schema, one), table(schema, other)
    whole = pa.concat_tables([first, second])
    assert digest_of(whole, schema) == digest_of(first, schema) + digest_of(second, schema)
    assert digest_of(net(whole, schema), schema) == digest_of(whole, schema)
    negated = table(schema, [(row, -weight) for row, weight in one])
    assert digest_of(first, schema) + digest_of(negated, schema) == Digest.zero()


@given(schemas_and_zsets())
@settings(max_examples=200, deadline=None)
def test_different_zsets_have_different_digests(drawn: tuple[Schema, ZSet, ZSet]) -> None:
    schema, one, other = drawn
    first, second = table(schema, one), table(schema, other)
    same = weights(schema, first) == weights(schema, second)
    assert (digest_of(first, schema) == digest_of(second, schema)) is same


def test_a_sum_of_weights_beyond_bigint_is_refused() -> None:
    schema = parse_schema("x INT")
    huge = table(schema, [((1,), 2**63 - 1), ((1,), 1)])
    with pytest.raises(Exception, match="more than BIGINT holds"):
        net(huge, schema)
