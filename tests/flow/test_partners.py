"""Rows that can have no partners: they are not bound, and nothing else changes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from ivm_core import DeltaBatch, TickFailed
from ivm_core.engine import fetching, reducing
from ivm_core.engine.gears import Gears, LocalRows
from tests.flow.shop import assert_exact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core import IncrementalFlow
    from ivm_core.engine.gears import Rows
    from ivm_core.model.schema import Schema

LINES = "id INT, ord BIGINT, s STRING, n INT"
VIEWS = {
    "chain": (
        "SELECT l.id, o.c, r.name FROM lines l JOIN orders o ON l.ord = o.id "
        "JOIN regions r ON o.r <=> r.id WHERE r.name = 'north' AND l.n > 1"
    ),
    "twins": "SELECT p.id, q.id AS other FROM lines p JOIN lines q ON p.ord = q.ord WHERE p.s = 'a'",
    "best": (
        "SELECT o.id, l.id AS line FROM orders o JOIN lines l ON l.ord = o.id WHERE o.c = 'x' "
        "AND l.n = (SELECT MAX(m.n) FROM lines m WHERE m.ord = o.id)"
    ),
    "both": (
        "SELECT l.id FROM lines l JOIN orders o ON l.ord = o.id WHERE o.c = 'y' "
        "UNION ALL SELECT id FROM lines WHERE s = 'b'"
    ),
    "without": (
        "SELECT o.id, COUNT(*) AS n FROM orders o JOIN regions r ON o.r = r.id "
        "WHERE NOT EXISTS (SELECT 1 FROM lines l WHERE l.ord = o.id AND l.n > o.id) GROUP BY o.id"
    ),
}


@pytest.fixture(autouse=True)
def every_row_is_one_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reducing, "MANY_ROWS", 0)


def declare(flow: IncrementalFlow) -> None:
    flow.register_source("lines", LINES)
    flow.register_source("orders", "id INT, c STRING, r BIGINT")
    flow.register_source("regions", "id BIGINT, name STRING")


def lines(*rows: tuple[Any, ...]) -> pa.Table:
    types = {"id": pa.int32(), "ord": pa.int64(), "s": pa.string(), "n": pa.int32()}
    return _table(rows, types)


def orders(*rows: tuple[Any, ...]) -> pa.Table:
    return _table(rows, {"id": pa.int32(), "c": pa.string(), "r": pa.int64()})


def regions(*rows: tuple[Any, ...]) -> pa.Table:
    return _table(rows, {"id": pa.int64(), "name": pa.string()})


def _table(rows: tuple[tuple[Any, ...], ...], types: dict[str, pa.DataType]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [() for _ in types]
    return pa.table(
        {
            name: pa.array(values, of)
            for (name, of), values in zip(types.items(), columns, strict=True)
        }
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_a_story_of_rows_with_and_without_partners(
    flow: IncrementalFlow, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "LIMIT_VALUES", 7)
    declare(flow)
    flow.register_views(VIEWS)
    draw = random.Random(seed)
    makers = {
        "lines": lambda: (
            draw.randrange(40),
            draw.choice([None, *range(9)]),
            draw.choice("abc"),
            draw.choice([None, 1, 2, 9]),
        ),
        "orders": lambda: (
            draw.choice([None, *range(9)]),
            draw.choice("xyz"),
            draw.choice([None, 0, 1, 2]),
        ),
        "regions": lambda: (draw.choice([None, 0, 1, 5]), draw.choice(["north", "south"])),
    }
    tables = {"lines": lines, "orders": orders, "regions": regions}
    held: dict[str, list[tuple[Any, ...]]] = {name: [] for name in makers}
    for tick in range(8):
        batch = {}
        for name, make in makers.items():
            if tick and draw.random() < 0.4:
                continue
            come = [make() for _ in range(draw.randrange(1, 12 if name == "lines" else 5))]
            go = draw.sample(held[name], min(len(held[name]), draw.randrange(6)))
            for row in go:
                held[name].remove(row)
            held[name] += come
            weights = pa.array([1] * len(come) + [-1] * len(go))
            batch[name] = tables[name](*come, *go).append_column("_weight", weights)
        flow.tick(batch)
        assert_exact(flow)
    assert flow.replay().equal


class Seen:
    """The rows that statements of the low gear are given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[dict[str, int]] = []
        run = Gears.rows

        def rows(gears: Gears, sql: str, relations: Mapping[str, Rows], schema: Schema) -> pa.Table:
            self.rows.append(
                {n: r.table.num_rows for n, r in relations.items() if isinstance(r, LocalRows)}
            )
            return run(gears, sql, relations, schema)

        monkeypatch.setattr(Gears, "rows", rows)


def test_only_rows_with_partners_are_bound(
    flow: IncrementalFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(flow)
    flow.register_view("chain", VIEWS["chain"].replace("o.c,", "upper(o.c) AS c,"))
    flow.tick(
        {
            "orders": orders(*((i, "x", i % 5) for i in range(20))),
            "regions": regions((0, "north"), (1, "south")),
            "lines": lines((0, 0, "a", 2)),
        }
    )
    seen = Seen(monkeypatch)
    flow.tick("lines", lines(*((i, i, "a", 2 - i % 2) for i in range(40))))
    # of every second line one order in five has a region in the north
    assert seen.rows == [{"lines@delta": 2, "orders@old": 2, "regions@old": 1}]
    assert_exact(flow)
    seen.rows.clear()
    flow.tick("lines", lines(*((i, 1 + i % 4, "a", 2) for i in range(40))))
    assert seen.rows == []
    assert_exact(flow)


def test_a_row_that_fails_has_no_need_of_partners(flow: IncrementalFlow) -> None:
    declare(flow)
    flow.register_view(
        "v",
        "SELECT q.id FROM (SELECT * FROM lines WHERE 10 / n > 1) q JOIN orders o ON q.ord = o.id",
    )
    flow.tick({"orders": orders((1, "x", 1)), "lines": lines((1, 1, "a", 2))})
    with pytest.raises(TickFailed, match=r"(?i)divi"):
        flow.tick("lines", lines((2, 7, "a", 0), (3, 1, "a", 5)))
    flow.tick("lines", DeltaBatch.inserts(lines((3, 1, "a", 5))))
    assert_exact(flow)


def test_groups_that_nobody_asks_for_are_not_kept(flow: IncrementalFlow) -> None:
    declare(flow)
    flow.register_view("best", VIEWS["best"])
    flow.tick(
        {
            "orders": orders(*((i, "x" if i == 3 else "y", None) for i in range(10))),
            "lines": lines(*((i, i % 10, "a", i) for i in range(50))),
        }
    )
    assert_exact(flow)
    assert flow.snapshot("best").count() == 1
    flow.tick("orders", orders((4, "x", None)))  # its lines were there before
    assert flow.snapshot("best").count() == 2
    flow.tick("orders", DeltaBatch.deletes(orders((3, "x", None))))
    assert_exact(flow)
    assert flow.replay().equal


def test_rows_without_partners_stay_where_they_count(flow: IncrementalFlow) -> None:
    """One scan may stand in a join and outside of it: outer and anti joins, queries read twice."""
    declare(flow)
    flow.register_views(
        {
            "outer_rows": "SELECT l.id, o.c FROM lines l LEFT JOIN orders o ON l.ord = o.id",
            "alone": (
                "SELECT l.id FROM lines l "
                "WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.id = l.ord)"
            ),
            "twice": (
                "WITH q AS (SELECT id, ord FROM lines) SELECT q.id FROM q "
                "JOIN orders o ON q.ord = o.id UNION ALL SELECT id FROM q"
            ),
            "listed": "SELECT collect_list(l.n) AS ns FROM lines l JOIN orders o ON l.ord = o.id",
        }
    )
    flow.tick("lines", lines((1, 7, "a", 1)))
    assert_exact(flow)
    flow.tick("orders", orders((1, "x", 1)))
    flow.tick("lines", lines(*((i, i, "a", i) for i in range(30))))
    assert_exact(flow)
    assert flow.snapshot("outer_rows").count() == 31
    flow.tick("orders", DeltaBatch.deletes(orders((1, "x", 1))))
    assert_exact(flow)


def test_values_that_are_equal_only_when_they_are_cast(flow: IncrementalFlow) -> None:
    flow.register_source("t1", "k INT, n BIGINT")
    flow.register_source("t2", "d DOUBLE")
    flow.register_source("t3", "n BIGINT")
    flow.register_source("m", "k STRING, s STRING")
    flow.register_views(
        {
            "by_double": "SELECT t1.k FROM t1 JOIN t2 ON t1.n = t2.d JOIN t3 ON t2.d = t3.n",
            "by_text": (
                "SELECT m.k, g.c FROM m JOIN (SELECT n, COUNT(*) AS c FROM t1 GROUP BY n) g "
                "ON g.n = m.k WHERE m.s = 'q'"
            ),
            "wide": "SELECT t1.n FROM t1 JOIN t3 ON t1.k = t3.n",
        }
    )
    flow.tick({"t2": [(9007199254740992.0,)], "m": [("1", "q"), ("01", "q"), ("2", "r")]})
    flow.tick({"t1": [(1, 9007199254740993), (2, 1)], "t3": [(9007199254740992,), (2,)]})
    assert_exact(flow)
    assert flow.snapshot("by_double").count() == 1
    flow.tick("t1", [(3, 1), (2, 5)])
    assert_exact(flow)
