"""Killed anywhere in a change of definitions, the next start finishes it or nothing has happened."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import IncrementalFlow
from tests.faults import story
from tests.faults.story import killed_at, live

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

LARGE = "SELECT id, k, x FROM facts WHERE x > 10"
REACH = "SELECT id, x FROM facts UNION SELECT r.id, f.x FROM reach r JOIN facts f ON r.x = f.id"
FAR = (
    "WITH RECURSIVE p AS (SELECT id, x, 1 AS n FROM facts UNION ALL "
    "SELECT p.id, f.x, p.n + 1 FROM p JOIN facts f ON p.x = f.id WHERE p.n < 4) "
    "SELECT id, COUNT(*) AS n FROM p GROUP BY id"
)


def alter(flow: IncrementalFlow) -> None:
    if "> 10" not in flow.explain("large").normalised:
        flow.alter_view("large", LARGE)


def alter_columns(flow: IncrementalFlow) -> None:
    if "m2" not in flow.snapshot("top").columns:
        flow.alter_view("top", story.VIEWS["top"].replace("AS m", "AS m2"))


def begin_recursion(flow: IncrementalFlow) -> None:
    flow.register_source("facts", "id INT, k STRING, x INT")
    flow.register_views(
        {"reach": REACH, "far": FAR, "seen": "SELECT id, MAX(x) AS x FROM reach GROUP BY id"}
    )
    flow.tick("facts", [(1, "a", 2), (2, "b", 3), (5, "c", 1)])
    flow.tick("facts", [(3, "a", 4)])


def alter_recursion(flow: IncrementalFlow) -> None:
    if "> 0" not in flow.view_sql("reach"):
        flow.alter_view(
            "reach",
            REACH.replace("FROM facts UNION", "FROM facts WHERE x > 0 AND id < 3 UNION"),
            also={"far": FAR.replace("< 4", "< 3")},
        )


def rename(flow: IncrementalFlow) -> None:
    if "top" in flow.views:
        flow.rename_view("top", "first")


def drop(flow: IncrementalFlow) -> None:
    if "named" in flow.views:
        flow.drop_view("named")


def seen(flow: IncrementalFlow) -> dict[str, Any]:
    digests = {
        (tick, name): each["state_digest"]
        for tick, body in flow._engine.history.commits.items()
        for name, each in body["views"].items()
    }
    rows = {
        name: sorted(map(repr, flow.snapshot(name).collect()))
        for name in (*flow.sources, *flow.views)
    }
    return {"digests": digests, "rows": rows}


@pytest.mark.parametrize(
    ("change", "count"),
    [
        (alter, 3),
        (alter_recursion, 2),
        (alter_columns, 1),
        (rename, 1),
        *(
            pytest.param(each, None, marks=pytest.mark.nightly)
            for each in (alter, alter_columns, alter_recursion, rename, drop)
        ),
    ],
)
def test_a_killed_change_is_finished_or_never_was(
    change: Callable[[IncrementalFlow], None],
    count: int | None,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    start = tmp_path / "start"

    def begin(flow: IncrementalFlow) -> None:
        if change is alter_recursion:
            begin_recursion(flow)
            return
        story.declare(flow)
        story.tick(flow, 1)
        story.tick(flow, 2)

    def go_on(flow: IncrementalFlow) -> None:
        change(flow)
        flow.tick("facts", [(9, "a", 90), (10, "b", 2)], batch_id="more")

    live(start, spark, begin)
    whole = tmp_path / "whole"
    shutil.copytree(start, whole)
    points: list[str] = []
    with killed_at(None, points):
        live(whole, spark, change)
    with IncrementalFlow.open(whole, spark) as flow:
        states = [seen(flow)]
        go_on(flow)
        expected = seen(flow)
    with IncrementalFlow.open(start, spark) as flow:
        states = [seen(flow), *states]
    every = range(len(points))
    chosen = every if count is None else [(i + 1) * len(every) // (count + 1) for i in range(count)]
    for number in chosen:
        place = tmp_path / str(number)
        shutil.copytree(start, place)
        with killed_at(number):
            live(place, spark, change)
        with IncrementalFlow.open(place, spark) as flow:
            found = seen(flow)
            assert found in states, points[number]
            if found == states[0] or number == chosen[-1]:
                go_on(flow)
                assert seen(flow) == expected, points[number]
            if number == chosen[-1]:
                assert flow.replay().equal, points[number]
        shutil.rmtree(place)
