"""Views that read themselves and each other: declared together, ticked to their fixpoint."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from ivm_core import DeltaBatch, IncrementalFlow, RecursionLimit, Unsupported, UserError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ivm_core import StepSummary

Row = tuple[int, ...]
CLOSURE = "SELECT x, y FROM edge UNION SELECT t.x, e.y FROM tc t JOIN edge e ON t.y = e.x"
VIEWS = {
    # the same with two reads of itself in one branch
    "squared": "SELECT x, y FROM edge UNION "
    "SELECT a.x, b.y FROM squared a JOIN squared b ON a.y = b.x",
    "tc": CLOSURE,
    "looped": "SELECT DISTINCT x FROM edge WHERE x = y",
    # negation of what is below, and a query over all of it
    "clear": "SELECT x, y FROM edge UNION SELECT c.x, e.y FROM clear c JOIN edge e ON c.y = e.x "
    "WHERE NOT EXISTS (SELECT 1 FROM looped l WHERE l.x = e.x) "
    "AND e.y < (SELECT MAX(y) FROM edge)",
    "even": "SELECT x AS n FROM edge WHERE x = 1 "
    "UNION SELECT e.y FROM odd o JOIN edge e ON o.n = e.x",
    "odd": "SELECT DISTINCT e.y AS n FROM even v JOIN edge e ON v.n = e.x",
    "same": "SELECT a.x AS x, b.x AS y FROM edge a JOIN edge b ON a.y = b.y WHERE a.x <> b.x UNION "
    "SELECT a.x, b.x FROM edge a JOIN same s ON a.y = s.x JOIN edge b ON s.y = b.y",
    "label": "SELECT n, MIN(l) AS l FROM (SELECT x AS n, x AS l FROM edge "
    "UNION ALL SELECT y, y FROM edge UNION ALL SELECT e.y, c.l FROM label c JOIN edge e "
    "ON c.n = e.x UNION ALL SELECT e.x, c.l FROM label c JOIN edge e ON c.n = e.y) GROUP BY n",
    "far": "SELECT n, MIN(d) AS d FROM (SELECT 1 AS n, 0 AS d UNION ALL "
    "SELECT e.y, f.d + e.y FROM far f JOIN edge e ON f.n = e.x WHERE f.d < 100) GROUP BY n",
    "wide": "SELECT n, MAX(w) AS w FROM (SELECT 1 AS n, 9 AS w UNION ALL "
    "SELECT e.y, LEAST(f.w, e.y) FROM wide f JOIN edge e ON f.n = e.x) GROUP BY n",
    "reached": "SELECT x, COUNT(*) AS n FROM tc GROUP BY x",
}
TYPES = {"far": "n BIGINT, d BIGINT", "wide": "n BIGINT, w BIGINT"}


def rows(flow: IncrementalFlow, view: str) -> list[Row]:
    return sorted(tuple(row) for row in flow.snapshot(view).collect())


def delta(flow: IncrementalFlow, view: str) -> list[Row]:
    """The rows of the newest tick, each with its weight."""
    found = flow.changes(view, since=flow.current_tick - 1).drop("_tick").collect()
    return sorted(tuple(row) for row in found)


def expected(edges: set[Row]) -> dict[str, list[Row]]:
    """What the views mean, by a few loops."""
    nodes = {n for edge in edges for n in edge}
    tc = set(edges)
    while new := {(a, d) for a, b in tc for c, d in edges if b == c} - tc:
        tc |= new
    looped = {x for x, y in edges if x == y}
    top = max((y for _, y in edges), default=0)
    clear = set(edges)
    allowed = {(x, y) for x, y in edges if x not in looped and y < top}
    while new := {(a, d) for a, b in clear for c, d in allowed if b == c} - clear:
        clear |= new
    even: set[int] = {x for x, _ in edges if x == 1}
    odd: set[int] = set()
    while True:
        after = (
            even | {y for x, y in edges if x in odd},
            odd | {y for x, y in edges if x in even},
        )
        if after == (even, odd):
            break
        even, odd = after
    same = {(a, b) for a, y in edges for b, z in edges if y == z and a != b}
    while new := {(a, b) for a, y in edges for b, z in edges if (y, z) in same} - same:
        same |= new
    label = {n: n for n in nodes}
    far, wide = {1: 0}, {1: 9}
    for _ in range(len(nodes) + 1):
        for x, y in edges:
            label[x] = label[y] = min(label[x], label[y])
            if x in far and far[x] < 100:
                far[y] = min(far.get(y, far[x] + y), far[x] + y)
            if x in wide:
                wide[y] = max(wide.get(y, 0), min(wide[x], y))
    counts = {x: sum(a == x for a, _ in tc) for x, _ in tc}
    return {
        "squared": sorted(tc),
        "tc": sorted(tc),
        "clear": sorted(clear),
        "even": sorted((n,) for n in even),
        "odd": sorted((n,) for n in odd),
        "same": sorted(same),
        "label": sorted(label.items()),
        "far": sorted(far.items()),
        "wide": sorted(wide.items()),
        "reached": sorted(counts.items()),
    }


def change(edges: set[Row], source: random.Random) -> tuple[list[Row], list[Row]]:
    """Edges that come and edges that go, in one tick."""
    every = [(x, y) for x in range(1, 8) for y in range(1, 8)]
    come = source.sample(sorted(set(every) - edges), source.randint(0, 3))
    go = source.sample(sorted(edges), min(len(edges), source.randint(0, 3)))
    return come, go


def run_steps(flow: IncrementalFlow, steps: int, seed: int) -> list[StepSummary]:
    source, edges, told = random.Random(seed), set[Row](), []
    flow.register_source("edge", "x BIGINT, y BIGINT")
    flow.register_views(VIEWS, schemas=TYPES)
    held: dict[str, dict[Row, int]] = {view: {} for view in VIEWS}
    for step in range(steps):
        come, go = change(edges, source)
        edges = (edges | set(come)) - set(go)
        weights = [1] * len(come) + [-1] * len(go)
        told.append(flow.tick("edge", DeltaBatch.of([*come, *go], weights=weights)))
        for view, wanted in expected(edges).items():
            for *row, weight in delta(flow, view):
                assert abs(weight) == 1, f"{view} changes {row} by {weight}"
                held[view][tuple(row)] = held[view].get(tuple(row), 0) + weight
            there = sorted(row for row, weight in held[view].items() if weight)
            assert there == wanted, f"step {step} of seed {seed}, view {view}: +{come} −{go}"
    return told


def test_views_follow_random_changes_by_their_deltas(flow: IncrementalFlow) -> None:
    told = run_steps(flow, 7, seed=11)
    ways = {way for each in told[1:] for name, way in each.views["tc"].ways.items() if name == "tc"}
    assert all(way.startswith(("delta, low gear", "skipped")) for way in ways), ways
    assert any("overdelete" in way and "insert" in way for way in ways), ways
    for view in ("clear", "label", "even"):
        assert flow.check(view).equal
    assert flow.replay().equal


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_views_follow_many_random_changes(flow: IncrementalFlow, seed: int) -> None:
    run_steps(flow, 50, seed)
    for view in VIEWS:
        assert flow.check(view).equal
    assert flow.replay().equal


def test_a_closure_follows_edges_that_come_and_go(
    flow: IncrementalFlow, place: Path, spark: SparkSession
) -> None:
    flow.register_source("edge", "x BIGINT, y BIGINT")
    flow.register_view("tc", CLOSURE)
    flow.tick("edge", DeltaBatch.inserts([(1, 2), (2, 3)]))
    assert rows(flow, "tc") == [(1, 2), (1, 3), (2, 3)]
    flow.tick("edge", DeltaBatch.inserts([(3, 4)]))
    assert delta(flow, "tc") == [(1, 4, 1), (2, 4, 1), (3, 4, 1)]
    flow.close()
    with IncrementalFlow.open(place, spark) as again:
        again.register_view("tc", CLOSURE)
        again.tick("edge", DeltaBatch.deletes([(2, 3)]))
        assert delta(again, "tc") == [(1, 3, -1), (1, 4, -1), (2, 3, -1), (2, 4, -1)]
        again.force_diff_based()
        again.tick("edge", DeltaBatch.inserts([(4, 3), (4, 4)]))
        assert delta(again, "tc") == [(3, 3, 1), (4, 3, 1), (4, 4, 1)]
        assert again.drop_view("tc") == ("tc",)


def test_a_recursion_that_goes_too_far_fails_whole(flow: IncrementalFlow) -> None:
    flow.register_source("edge", "x BIGINT, y BIGINT")
    flow.register_views({"tc": CLOSURE}, max_iterations=5)
    flow.register_views(
        {"up": "SELECT x FROM edge WHERE x > 100 UNION SELECT x + 1 FROM up"}, max_rows=50
    )
    flow.tick("edge", DeltaBatch.inserts([(1, 2), (2, 3), (3, 4), (4, 5)]))
    before = rows(flow, "tc")
    with pytest.raises(RecursionLimit, match=r"5 iterations are not enough.*iteration 6 of tc"):
        flow.tick("edge", DeltaBatch.inserts([(5, 6), (6, 7), (7, 8), (0, 1)]))
    with pytest.raises(RecursionLimit, match=r"derives more than 50 rows.*deriving rows of up"):
        flow.tick("edge", DeltaBatch.inserts([(101, 1)]))
    assert (rows(flow, "tc"), flow.current_tick) == (before, 1)
    flow.tick("edge", DeltaBatch.deletes([(4, 5)]))
    assert rows(flow, "tc") == [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]


REFUSED = [
    (
        {
            "a": "SELECT y AS x FROM edge UNION SELECT x FROM edge WHERE x NOT IN (SELECT x FROM b)",
            "b": "SELECT DISTINCT x FROM a",
        },
        Unsupported,
        "a, b",
    ),
    (
        {
            "a": "SELECT x FROM edge UNION SELECT e.x FROM edge e WHERE NOT EXISTS "
            "(SELECT 1 FROM a WHERE a.x = e.y)"
        },
        Unsupported,
        "known only when it is complete",
    ),
    (
        {
            "a": "SELECT x, COUNT(*) AS n FROM (SELECT x, y FROM edge UNION ALL "
            "SELECT a.x, a.n FROM a) GROUP BY x"
        },
        Unsupported,
        "COUNT_STAR within recursion",
    ),
    (
        {
            "a": "SELECT x, SUM(y) AS n FROM (SELECT x, y FROM edge UNION ALL "
            "SELECT a.x, a.n FROM a) GROUP BY x"
        },
        Unsupported,
        "SUM within recursion",
    ),
    (
        {
            "a": "SELECT x, MIN(y) AS n FROM (SELECT x, y FROM edge UNION ALL "
            "SELECT a.x, -a.n FROM a) GROUP BY x"
        },
        Unsupported,
        "a better value below makes it worse",
    ),
    (
        {"a": "SELECT x, y FROM edge UNION ALL SELECT p.x, q.y FROM a p JOIN a q ON p.y = q.x"},
        Unsupported,
        "2 reads",
    ),
    (
        {"a": "SELECT x FROM edge UNION SELECT x FROM b", "b": "SELECT x FROM a"},
        Unsupported,
        "SELECT DISTINCT instead of SELECT",
    ),
    ({"a": "SELECT x FROM b", "b": "SELECT x FROM a"}, UserError, "schemas="),
]


def test_what_has_no_least_fixpoint_is_refused(flow: IncrementalFlow) -> None:
    flow.register_source("edge", "x BIGINT, y BIGINT")
    for views, kind, told in REFUSED:
        with pytest.raises(kind) as caught:
            flow.register_views(views)
        assert told in str(caught.value), str(caught.value)
    with pytest.raises(UserError, match="no view of this call"):
        flow.register_views({"tc": CLOSURE}, schemas={"other": "x INT"})
    with pytest.raises(UserError, match="max_rows=0 is no positive number"):
        flow.register_views({"tc": CLOSURE}, max_rows=0)
    assert flow.views == ()


PATHS = (
    "WITH RECURSIVE start AS (SELECT MIN(x) AS n FROM edge), "
    "path(a, b, hops) AS (SELECT n, n, 0 FROM start UNION ALL "
    "SELECT p.a, e.y, p.hops + 1 FROM path p JOIN edge e ON p.b = e.x WHERE p.hops < 4) "
    "SELECT b, COUNT(*) AS n, MAX(hops) AS most FROM path GROUP BY b"
)


def test_recursive_expressions_inside_of_a_view(flow: IncrementalFlow, spark: SparkSession) -> None:
    flow.register_source("edge", "x BIGINT, y BIGINT")
    flow.register_view("paths", PATHS)
    flow.register_view(
        "reach",
        "WITH RECURSIVE r AS (SELECT x, y FROM edge UNION SELECT r.x, e.y FROM r JOIN edge e "
        "ON r.y = e.x), back AS (SELECT y AS x FROM r WHERE x = 1 UNION SELECT r.x FROM r "
        "JOIN back b ON r.y = b.x) SELECT r.x, r.y, b.x IS NULL AS lost FROM r "
        "LEFT JOIN back b ON b.x = r.x",
    )
    assert flow.views == ("paths", "reach")
    chain = list(pairwise(range(1, 6)))
    edges: set[Row] = set()
    for come, go in [(chain, []), ([(2, 5), (5, 2)], []), ([], [(2, 3)]), ([(9, 1)], [(5, 2)])]:
        edges = (edges | set(come)) - set(go)
        weights = [1] * len(come) + [-1] * len(go)
        summary = flow.tick("edge", DeltaBatch.of([*come, *go], weights=weights))
        assert set(summary.views) == {"paths", "reach"}
        spark.createDataFrame(sorted(edges), "x BIGINT, y BIGINT").createOrReplaceTempView("edge")
        try:
            wanted = sorted(tuple(row) for row in spark.sql(PATHS).collect())
        finally:
            spark.catalog.dropTempView("edge")
        assert rows(flow, "paths") == wanted
    assert flow.check("paths").equal
    assert flow.check("reach").equal
    assert flow.replay().equal
    flow.drop_view("paths")
    flow.register_view("paths", PATHS, hydrate=True)
    assert rows(flow, "paths") == wanted
