"""Views that read themselves and each other: declared together, ticked to their fixpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core import DeltaBatch

if TYPE_CHECKING:
    from ivm_core import IncrementalFlow

CLOSURE = "SELECT x, y FROM edge UNION SELECT t.x, e.y FROM tc t JOIN edge e ON t.y = e.x"


def rows(flow: IncrementalFlow, view: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in flow.snapshot(view).collect())


def delta(flow: IncrementalFlow, view: str) -> list[tuple[object, ...]]:
    """The rows of the newest tick, each with its weight."""
    found = flow.changes(view, since=flow.current_tick - 1).drop("_tick").collect()
    return sorted(tuple(row) for row in found)


def edges(*pairs: tuple[int, int]) -> DeltaBatch:
    return DeltaBatch.inserts([*pairs])


def test_a_closure_follows_edges_that_come_and_go(flow: IncrementalFlow) -> None:
    flow.register_source("edge", "x BIGINT, y BIGINT")
    flow.register_views({"tc": CLOSURE}, schemas={"tc": "x BIGINT, y BIGINT"})
    flow.tick("edge", edges((1, 2), (2, 3)))
    assert rows(flow, "tc") == [(1, 2), (1, 3), (2, 3)]
    flow.tick("edge", edges((3, 4)))
    assert delta(flow, "tc") == [(1, 4, 1), (2, 4, 1), (3, 4, 1)]
    flow.tick("edge", DeltaBatch.deletes([(2, 3)]))
    assert delta(flow, "tc") == [(1, 3, -1), (1, 4, -1), (2, 3, -1), (2, 4, -1)]
    assert flow.check("tc").equal
