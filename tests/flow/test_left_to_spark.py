"""Views whose small ticks the driver can't tell as Spark does: a statement does."""

from __future__ import annotations

import logging
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from ivm_core.engine import low_gear
from tests.flow.shop import assert_exact

if TYPE_CHECKING:
    from ivm_core import IncrementalFlow
    from ivm_core.operators.delta_on_driver import DeltaOnDriver
    from ivm_core.plan.nodes import Node

Rows = list[tuple[Any, ...]]
TINY = Decimal("1E-30")
CASES: list[tuple[str, str, Rows, Rows]] = [
    (
        "i INT, p DECIMAL(38,6)",
        "SELECT l.p FROM l JOIN r ON l.i = r.i WHERE l.p = '123456789012345678'",
        [(1, Decimal(1))],
        [(1, Decimal("123456789012345678.000001")), (1, Decimal(2))],
    ),
    (
        "i INT, p DECIMAL(38,6)",
        "SELECT l.p FROM l JOIN r ON l.i = r.i WHERE CASE WHEN l.i > 5 THEN l.p > '' ELSE TRUE END",
        [(1, Decimal(1))],
        [(1, Decimal(2))],
    ),
    (
        "i INT, g BOOLEAN, h BOOLEAN",
        "SELECT l.g, l.h FROM l JOIN r ON l.i = r.i WHERE l.g = l.h BETWEEN FALSE AND TRUE",
        [(1, True, True)],
        [(1, False, False), (1, False, True), (1, True, False)],
    ),
    (
        "i INT, g BOOLEAN, k STRING",
        "SELECT l.g, l.k FROM l JOIN r ON l.i = r.i WHERE l.g = l.k LIKE 'true'",
        [(1, True, "true")],
        [(1, True, "t")],
    ),
    (
        "i INT, u DECIMAL(38,30)",
        "SELECT l.i, CASE WHEN l.u IN (0, 1) THEN 1 ELSE 0 END AS c FROM l JOIN r ON l.i = r.i",
        [(1, Decimal("0.5"))],
        [(1, TINY), (1, Decimal("0.5"))],
    ),
    (
        "i INT, u DECIMAL(38,38)",
        "SELECT l.u FROM l JOIN r ON l.i = r.i WHERE l.u = 0",
        [(1, Decimal("0.5"))],
        [(1, TINY.scaleb(-8))],
    ),
    ("i INT, a ARRAY<INT>", "SELECT l.i FROM l JOIN r ON l.a = r.a", [(1, [1])], [(2, [1])]),
    (
        "i INT, a STRUCT<x: INT>",
        "SELECT l.i FROM l JOIN r ON l.a <=> r.a",
        [(1, {"x": 1})],
        [(2, {"x": 1}), (3, None)],
    ),
]


@pytest.mark.parametrize(("columns", "sql", "first", "then"), CASES)
def test_a_small_tick_is_as_exact_as_any(
    flow: IncrementalFlow, columns: str, sql: str, first: Rows, then: Rows
) -> None:
    for name in "lr":
        flow.register_source(name, columns)
    flow.register_view("v", sql)
    flow.tick({"l": first, "r": first})
    flow.tick("l", then)
    assert_exact(flow)


@pytest.mark.parametrize("error", [pa.ArrowNotImplementedError, pa.ArrowInvalid, ZeroDivisionError])
def test_what_arrow_fails_at_is_told_by_a_statement(
    flow: IncrementalFlow,
    error: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing(low_gear.DeltaOnDriver):  # type: ignore[name-defined, misc]
        def change(self: DeltaOnDriver, node: Node) -> pa.Table:
            raise error("not this")

    for name in "lr":
        flow.register_source(name, "i INT")
    flow.register_view("v", "SELECT l.i FROM l JOIN r ON l.i = r.i")
    flow.tick({"l": [(1,)], "r": [(1,), (2,)]})
    monkeypatch.setattr(low_gear, "DeltaOnDriver", Failing)
    with caplog.at_level(logging.INFO, logger="ivm_core"):
        assert flow.tick("l", [(2,)]).statements == 1
    assert_exact(flow)
    assert "what the driver can't do" in caplog.text
