"""Changed groups in columns are the same rows as changed groups one by one."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from ivm_core.model.names import WEIGHT
from ivm_core.model.schema import Field, Schema, parse_type
from ivm_core.operators import aggregate_in_columns, aggregate_on_driver
from ivm_core.operators.accumulator import OneByOne
from ivm_core.operators.accumulators import accumulator_for
from ivm_core.operators.aggregate import ROWS, AggregateStatements
from ivm_core.operators.aggregate_in_columns import changed_rows_at_once
from ivm_core.operators.aggregate_on_driver import changed_rows
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.group_state import GroupState
from ivm_core.operators.netting import net
from ivm_core.plan.nodes import Aggregate, AggregateCall, Scan

if TYPE_CHECKING:
    from collections.abc import Iterable

CALLS = {
    "n": ("COUNT_STAR", None),
    "c": ("COUNT", "STRING"),
    "si": ("SUM", "INT"),
    "sb": ("SUM", "BIGINT"),
    "ai": ("AVG", "SMALLINT"),
    "ab": ("AVG", "BIGINT"),
    "sd": ("SUM", "DECIMAL(12,2)"),
    "sw": ("SUM", "DECIMAL(25,3)"),
    "ad": ("AVG", "DECIMAL(9,4)"),
    "aw": ("AVG", "DECIMAL(25,3)"),
    "mi": ("MIN", "INT"),
    "xs": ("MAX", "STRING"),
    "md": ("MIN", "DATE"),
    "xt": ("MAX", "TIMESTAMP"),
    "xd": ("MAX", "DECIMAL(9,2)"),
}
KEYS = (Field("k", parse_type("STRING")), Field("d", parse_type("DATE")))


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregate_in_columns, "FROM_ROWS", 0)


def statements(calls: Iterable[str] = CALLS) -> AggregateStatements:
    chosen = {name: CALLS[name] for name in calls}
    types = {name: None if of is None else parse_type(of) for name, (_, of) in chosen.items()}
    made = {
        name: accumulator_for(call, types[name], f"_tv_{name}")
        for name, (call, _) in chosen.items()
    }
    node = Aggregate(
        Scan("t", "t", ("k", "d", *chosen)),
        (("k", "t.k"), ("d", "t.d")),
        tuple(
            AggregateCall(name, call, None if of is None else f"t.{name}")
            for name, (call, of) in chosen.items()
        ),
    )
    results = tuple(Field(name, each.result_type) for name, each in made.items())
    return AggregateStatements(node, "t", KEYS, tuple(made.values()), results)


def state(of: AggregateStatements, draw: random.Random, count: int, size: int) -> pa.Table:
    schema = arrow_schema(of.state_schema)
    columns: dict[str, list[Any]] = {}
    for each in schema:
        if each.name == "k" or pa.types.is_string(each.type):
            values: list[Any] = [draw.choice(["a", "b", "", None, "é"]) for _ in range(count)]
        elif each.name == "d" or each.name.endswith(("_m", "_gone")):
            values = [draw.choice([None, 0, 7, -3]) for _ in range(count)]
        elif each.name == ROWS or each.name.endswith("_n"):
            values = [draw.randrange(-2, 4) for _ in range(count)]
        else:
            values = [draw.randrange(-size, size) for _ in range(count)]
        columns[each.name] = values
    return table(columns, schema)


def table(columns: dict[str, list[Any]], schema: pa.Schema) -> pa.Table:
    return pa.table({each.name: array(columns[each.name], each.type) for each in schema})


def array(values: list[Any], of: pa.DataType) -> pa.Array:
    if pa.types.is_decimal128(of):
        return pa.array([None if v is None else Decimal(v).scaleb(-of.scale) for v in values], of)
    if pa.types.is_date32(of):
        return pa.array(values, pa.int32()).cast(of)
    return pa.array(values, of if pa.types.is_string(of) else pa.int64()).cast(of)


def values(of: AggregateStatements, draw: random.Random, share: float) -> pa.Table:
    """MIN and MAX of some groups, as the node's own rows or as recomputed ones."""
    keys = [(k, d) for k in ("a", "b", "", None, "é") for d in (None, 0, 7, -3)]
    chosen = [key for key in keys if draw.random() < share]
    columns: dict[str, list[Any]] = {"k": [k for k, _ in chosen], "d": [d for _, d in chosen]}
    for each in of.results:
        texts = [draw.choice(["a", "é", None]) for _ in chosen]
        numbers = [draw.choice([None, 1, -9]) for _ in chosen]
        columns[each.name] = texts if each.type.kind == "STRING" else numbers
        if each.type.kind == "DOUBLE":
            columns[each.name] = [None] * len(chosen)
    return table(columns, arrow_schema(Schema((*of.keys, *of.results), internal=True)))


@pytest.mark.parametrize("seed", range(80))
def test_both_give_the_same_rows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    size = draw.choice([3, 10**4, 2**40])
    # what is kept in halves, or divided, has a smaller reach
    calls = ["n", "c", "si", "sw", "aw", "mi", "xs"] if size == 2**40 else sorted(CALLS)
    of = statements(draw.sample(calls, draw.randrange(1, len(calls) + 1)))
    change = state(of, draw, draw.randrange(1, 30), size)
    before = state(of, draw, draw.randrange(0, 60), size) if draw.random() < 0.8 else None
    known = GroupState(
        change,
        before,
        values(of, draw, 0.7) if of.is_extremal and before is not None else None,
        values(of, draw, 0.2) if of.is_extremal and draw.random() < 0.5 else None,
    )
    at_once = changed_rows_at_once(of, known)

    def refuse(*_: object) -> pa.Table:
        raise OneByOne

    monkeypatch.setattr(aggregate_on_driver, "changed_rows_at_once", refuse)
    one_by_one = changed_rows(of, known)
    schema = Schema((*of.keys, *of.results), internal=True)
    assert at_once.schema.names == one_by_one.schema.names
    assert listed(net(at_once, schema)) == listed(net(one_by_one.cast(at_once.schema), schema))


def listed(rows: pa.Table) -> list[str]:
    return sorted(repr(row) for row in rows.to_pylist() if row[WEIGHT])


@pytest.mark.parametrize(
    ("call", "value"), [("si", 2**62), ("sb", 2**62), ("sd", 2**61), ("ab", 2**55)]
)
def test_what_may_not_fit_is_left_alone(call: str, value: int) -> None:
    of = statements([call])
    schema = arrow_schema(of.state_schema)
    columns: dict[str, list[Any]] = {each.name: [value] * 3 for each in schema}
    columns |= {"k": ["a", "a", "b"], "d": [None] * 3, ROWS: [1] * 3}
    change = pa.table({name: pa.array(values) for name, values in columns.items()})
    with pytest.raises(OneByOne):
        changed_rows_at_once(of, GroupState(change.cast(schema), None))
