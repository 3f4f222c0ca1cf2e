"""Views that read themselves and each other: declared together, ticked to their fixpoint."""

from __future__ import annotations

import random
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from ivm_core import (
    DeltaBatch,
    IncrementalFlow,
    RecursionLimit,
    TickFailed,
    Unsupported,
    UserError,
)
from ivm_core.engine.recursion import component
from tests.faults.story import killed_at

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


def test_all_rows_by_spark(flow: IncrementalFlow, monkeypatch: pytest.MonkeyPatch) -> None:
    for most in ("HYDRATED_LOCALLY", "DRIVER_ROWS"):
        monkeypatch.setattr(component, most, -1)
    views = {name: VIEWS[name] for name in ("tc", "even", "odd", "label")}
    views["hops"] = (
        "SELECT x, y, 1 AS n FROM edge WHERE x < y "
        "UNION ALL SELECT h.x, e.y, h.n + 1 FROM hops h JOIN edge e ON h.y = e.x WHERE e.x < e.y"
    )
    flow.register_source("edge", "x BIGINT, y BIGINT")
    flow.register_views(views)
    edges = {(1, 2), (2, 3), (1, 3), (3, 4), (4, 2), (6, 7)}
    first = flow.tick("edge", DeltaBatch.inserts(sorted(edges)))
    assert "hydrated, high gear" in first.views["tc"].ways["tc"]
    flow.force_diff_based()
    edges = (edges | {(4, 5), (7, 7)}) - {(2, 3)}
    again = flow.tick("edge", DeltaBatch.of([(4, 5), (7, 7), (2, 3)], weights=[1, 1, -1]))
    assert "recomputed and compared, high gear" in again.views["label"].ways["label"]
    wanted = expected(edges)
    assert {view: rows(flow, view) for view in ("tc", "even", "odd", "label")} == {
        view: wanted[view] for view in ("tc", "even", "odd", "label")
    }
    assert flow.check("hops").equal


def test_a_killed_tick_is_finished(place: Path, spark: SparkSession) -> None:
    views = {name: VIEWS[name] for name in ("tc", "even", "odd", "reached")}
    with IncrementalFlow.open(place, spark) as flow:
        flow.register_source("edge", "x BIGINT, y BIGINT")
        flow.register_views(views)
        flow.tick("edge", DeltaBatch.inserts([(1, 2), (2, 3), (3, 4)]))
    edges = {(1, 2), (2, 3), (3, 4)}
    at, came = 0, 4
    while True:
        edge, points = (came, came + 1), list[str]()
        with killed_at(at, points):
            IncrementalFlow.open(place, spark).tick("edge", DeltaBatch.inserts([edge]))
        with IncrementalFlow.open(place, spark) as flow:
            if edge in rows(flow, "edge"):
                edges.add(edge)
                came += 1
            wanted = expected(edges)
            flow.tick()
            for view in views:
                assert rows(flow, view) == wanted[view], f"killed at point {at}, {points[-1:]}"
        if len(points) <= at:
            break
        at += 7
    assert at > 7


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


def test_a_recursion_inside_of_a_view_has_the_limits_of_its_call(flow: IncrementalFlow) -> None:
    flow.register_source("edge", "x BIGINT, y BIGINT")
    inside = "WITH RECURSIVE tc AS (" + CLOSURE + ") SELECT x, y{} FROM tc"
    flow.register_views({"reach": inside.format("")}, max_iterations=5)
    chain = [(1, 2), (2, 3), (3, 4), (4, 5)]
    flow.tick("edge", DeltaBatch.inserts(chain))
    more = DeltaBatch.inserts([(5, 6), (6, 7), (7, 8), (0, 1)])
    with pytest.raises(RecursionLimit, match="5 iterations are not enough"):
        flow.tick("edge", more)
    flow.alter_view(
        "reach", "WITH RECURSIVE tc AS (" + CLOSURE + " WHERE t.x >= 0) SELECT * FROM tc"
    )
    with pytest.raises(RecursionLimit, match="5 iterations are not enough"):
        flow.tick("edge", more)
    flow.alter_view("reach", inside.format(""))
    flow.register_views({"reach": inside.format("")}, max_iterations=100)
    flow.tick("edge", more)
    assert rows(flow, "reach") == [(x, y) for x in range(9) for y in range(x + 1, 9)]
    with pytest.raises(RecursionLimit, match="derives more than 3 rows"):
        flow.register_views({"up": inside.format(" + 1 AS y")}, max_rows=3, hydrate=True)


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
        {
            "a": "SELECT x, MIN(y) AS n FROM (SELECT x, y FROM edge UNION ALL "
            "SELECT e.y, GREATEST(a.n, e.x) FROM a JOIN edge e ON a.x = e.x) GROUP BY x"
        },
        Unsupported,
        "may be NULL at first",
    ),
    (
        {
            "a": "SELECT x, MAX(y) AS n FROM (SELECT x, y FROM edge UNION ALL "
            "SELECT e.y, a.n FROM a JOIN edge e ON a.x = e.x WHERE LEAST(a.n, 9) > 5) GROUP BY x"
        },
        Unsupported,
        "may be NULL at first",
    ),
    (
        {
            "a": "SELECT x, MIN(y) AS n FROM (SELECT x, y FROM edge UNION ALL SELECT e.y, "
            "TRY_CAST(a.n AS TINYINT) FROM a JOIN edge e ON a.x = e.x) GROUP BY x"
        },
        Unsupported,
        "it need not get better when the extreme does",
    ),
    (
        {
            "a": "SELECT x, MIN(y) AS n FROM (SELECT x, CAST(y AS STRING) AS y FROM edge UNION ALL "
            "SELECT e.y, a.n FROM a JOIN edge e ON a.x = e.x WHERE CAST(a.n AS INT) < 9) GROUP BY x"
        },
        Unsupported,
        "a text is in another order than the number that it spells",
    ),
    (
        {
            "a": "SELECT x, MIN(y) AS n FROM (SELECT x, CAST(y AS STRING) AS y FROM edge UNION ALL "
            "SELECT e.y, a.n FROM a JOIN edge e ON a.x = e.x WHERE a.n < 9) GROUP BY x"
        },
        Unsupported,
        "a text is in another order than the number that it spells",
    ),
    (
        {
            "a": "SELECT x, MAX(y) AS n FROM (SELECT x, CAST(y AS DOUBLE) AS y FROM edge UNION ALL "
            "SELECT e.y, a.n FROM a JOIN edge e ON a.x = e.x "
            "WHERE CAST(a.n AS DECIMAL(9, 2)) > 5) GROUP BY x"
        },
        Unsupported,
        "an infinite float is a NULL among decimals",
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
    (
        {"a": "SELECT x, n FROM a UNION SELECT x, SUM(y) FROM edge GROUP BY x"},
        UserError,
        "the first branch of a is recursive",
    ),
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


def test_a_recursive_branch_may_come_first(flow: IncrementalFlow) -> None:
    flow.register_source("edge", "x BIGINT, y BIGINT")
    flow.register_view(
        "sums", "SELECT x, n FROM sums UNION SELECT x, SUM(y) AS n FROM edge GROUP BY x"
    )
    flow.register_view(
        "inner_sums",
        "WITH RECURSIVE s(x, n) AS (SELECT x, n FROM s UNION SELECT x, SUM(y) FROM edge GROUP BY x) "
        "SELECT x, n FROM s",
    )
    flow.tick("edge", [(1, 2), (1, 3)])
    assert rows(flow, "sums") == rows(flow, "inner_sums") == [(1, 5)]


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


START = "SELECT a, b, 1 AS h FROM e WHERE a = 1"
STEPS = {
    "left": "SELECT p.a, coalesce(e.b, -1), p.h + 1 FROM p LEFT JOIN e ON p.b = e.a "
    "WHERE p.h < 4 AND p.b > 0",
    "anti": "SELECT p.a, e.b, p.h + 1 FROM p JOIN e ON p.b = e.a LEFT ANTI JOIN n ON n.x = e.b "
    "WHERE p.h < 4",
    "scalar": "SELECT p.a, e.b, p.h + coalesce((SELECT MAX(k) FROM n WHERE n.x = e.b), 1) "
    "FROM p JOIN e ON p.b = e.a WHERE p.h < 4",
    "left below": "SELECT p.a, e.b, p.h + coalesce(n.k, 1) FROM p JOIN e ON p.b = e.a "
    "LEFT JOIN n ON n.x = e.b WHERE p.h < 4",
    "full below": "SELECT p.a, q.b, p.h + 1 FROM p JOIN (SELECT coalesce(e.a, n.x) AS a, "
    "coalesce(e.b, n.k) AS b FROM e FULL JOIN n ON e.b = n.x) q ON p.b = q.a WHERE p.h < 4",
    "in": "SELECT p.a, e.b, p.h + 1 FROM p JOIN e ON p.b = e.a WHERE e.b IN (SELECT x FROM n) "
    "AND p.h < 4",
    "two": "SELECT p.a, e.b, p.h + 1 FROM p JOIN e ON p.b = e.a WHERE p.h < 4 AND NOT EXISTS "
    "(SELECT 1 FROM n WHERE n.x = e.b) AND NOT EXISTS (SELECT 1 FROM n m WHERE m.k = e.a)",
    "least": "SELECT p.a, e.b, p.h + 1 FROM p JOIN e ON p.b = e.a "
    "WHERE e.b < (SELECT MAX(x) FROM n) AND p.h < 4",
    "counted": "SELECT p.a, e.b, p.h + q.c FROM p JOIN e ON p.b = e.a JOIN (SELECT x, "
    "CAST(COUNT(DISTINCT k) AS INT) AS c FROM n GROUP BY x) q ON q.x = e.b WHERE p.h < 4",
    "union": "SELECT p.a, e.b, p.h + 1 FROM p JOIN (SELECT a, b FROM e UNION ALL "
    "SELECT x, k FROM n) e ON p.b = e.a WHERE p.h < 4",
    "first": "SELECT p.a, e.b, p.h + 1 FROM p JOIN (SELECT a, b, row_number() OVER "
    "(PARTITION BY a ORDER BY b) AS r FROM e) e ON p.b = e.a WHERE e.r = 1 AND p.h < 4",
    "except": "SELECT p.a, e.b, p.h + 1 FROM p JOIN (SELECT a, b FROM e EXCEPT SELECT x, k FROM n) e "
    "ON p.b = e.a WHERE p.h < 4",
    "generated": "SELECT p.a, x.b, p.h + 1 FROM p LATERAL VIEW explode(array(p.b + 1, p.b + 2)) x "
    "AS b WHERE p.h < 3",
}
MOVES: list[dict[str, tuple[list[Row], list[int]]]] = [
    {
        "e": ([(1, 2), (1, 3), (2, 4), (3, 4), (3, 4), (4, 5)], [1, 1, 1, 1, 1, 1]),
        "n": ([(4, 2), (5, 1)], [1, 1]),
    },
    # one of two equal rows goes, and what is missing already is missing twice
    {"e": ([(2, 5), (3, 4)], [1, -1]), "n": ([(4, 3), (5, 1)], [1, -1])},
    {"e": ([(5, 6), (4, 1), (2, 4), (3, 4)], [1, 1, -1, -1]), "n": ([(6, 1), (4, 2)], [1, -1])},
]


@pytest.mark.parametrize(
    "names",
    [("left", "anti"), pytest.param(tuple(STEPS), marks=pytest.mark.nightly)],
    ids=["few", "all"],
)
def test_what_a_recursive_branch_may_ask_of_what_is_below(
    flow: IncrementalFlow, spark: SparkSession, names: tuple[str, ...]
) -> None:
    tables = {"e": "a INT, b INT", "n": "x INT, k INT"}
    for name, columns in tables.items():
        flow.register_source(name, columns)
    for name in names:
        for kind, union in (("bag", "UNION ALL"), ("set", "UNION")):
            text = f"WITH RECURSIVE p AS ({START} {union} {STEPS[name]}) SELECT a, b, h FROM p"
            flow.register_view(f"{name}_{kind}".replace(" ", "_"), text)
    held: dict[str, list[Row]] = {name: [] for name in tables}
    for move in MOVES:
        flow.tick({name: DeltaBatch.of(changed, w) for name, (changed, w) in move.items()})
        for name, (changed, weights) in move.items():
            for row, weight in zip(changed, weights, strict=True):
                _ = held[name].append(row) if weight > 0 else held[name].remove(row)
            frame = spark.createDataFrame(held[name], tables[name])
            frame.createOrReplaceTempView(name)
        for name in names:
            text = f"WITH RECURSIVE p AS ({START} UNION ALL {STEPS[name]}) SELECT a, b, h FROM p"
            wanted = sorted(tuple(row) for row in spark.sql(text).collect())
            view = name.replace(" ", "_")
            assert rows(flow, f"{view}_bag") == wanted, f"{name}, tick {flow.current_tick}"
            assert rows(flow, f"{view}_set") == sorted(set(wanted)), f"{name}, {flow.current_tick}"
    for name in tables:
        spark.catalog.dropTempView(name)


def test_a_branch_that_recurses_in_a_part_of_a_union(flow: IncrementalFlow) -> None:
    flow.register_source("edge", "x BIGINT, y BIGINT")
    both = "(SELECT x, y FROM edge UNION ALL SELECT y AS x, x AS y FROM {}) q"
    text = "SELECT DISTINCT q.x, e.y FROM " + both + " JOIN edge e ON q.y = e.x"
    flow.register_views(
        {
            "there": text.format("there"),
            "hops": "SELECT q.x, e.y, q.n + 1 AS n FROM (SELECT x, y, 1 AS n FROM edge UNION ALL "
            "SELECT x, y, n FROM hops) q JOIN edge e ON q.y = e.x WHERE q.n < 4",
        },
        schemas={"there": "x BIGINT, y BIGINT", "hops": "x BIGINT, y BIGINT, n INT"},
    )
    for come, go in [([(1, 2), (2, 3), (3, 1)], []), ([(3, 4)], []), ([(4, 1)], [(2, 3)])]:
        weights = [1] * len(come) + [-1] * len(go)
        flow.tick("edge", DeltaBatch.of([*come, *go], weights=weights))
        assert rows(flow, "there")
        assert flow.check("there").equal
        assert flow.check("hops").equal


def test_an_extreme_that_is_null_at_first(flow: IncrementalFlow) -> None:
    """GREATEST and LEAST pass over a NULL, so they wait for a value."""
    flow.register_source("s", "n INT, d INT")
    flow.register_source("e", "a INT, b INT, w INT")
    branch = "SELECT e.b, {} FROM {view} m JOIN e ON m.n = e.a WHERE m.d IS NOT NULL"
    views = {
        "least_most": "SELECT n, MIN(d) AS d FROM (SELECT n, d FROM s UNION ALL "
        + branch.format("GREATEST(m.d, e.w)", view="least_most")
        + ") GROUP BY n",
        "most_least": "SELECT n, MAX(d) AS d FROM (SELECT n, d FROM s UNION ALL "
        + branch.format("LEAST(m.d, e.w)", view="most_least")
        + ") GROUP BY n",
        "least_least": "SELECT n, MIN(d) AS d FROM (SELECT n, d FROM s UNION ALL "
        "SELECT e.b, LEAST(m.d, e.w) FROM least_least m JOIN e ON m.n = e.a) GROUP BY n",
    }
    for name, sql in views.items():
        flow.register_views({name: sql})
    flow.tick("e", [(1, 2, 5), (2, 3, 6), (3, 1, None)])
    for change in ([(1, None)], [(1, 7)], [(1, 3)], [(2, 1)]):
        flow.tick("s", change)
        assert [name for name in views if not flow.check(name).equal] == []
    flow.tick("s", DeltaBatch.deletes([(1, 3)]))
    assert [name for name in views if not flow.check(name).equal] == []
    flow.tick("s", DeltaBatch.deletes([(1, 7), (2, 1)]))
    assert [name for name in views if not flow.check(name).equal] == []
    assert rows(flow, "least_most") == [(1, None)]
    assert rows(flow, "least_least") == [(1, 5), (2, 5), (3, 5)]


def test_zeros_of_both_signs_are_one_row(flow: IncrementalFlow) -> None:
    flow.register_source("s", "g DOUBLE, x DOUBLE")
    flow.register_views(
        {
            "both": "SELECT x FROM s UNION SELECT -x FROM both",
            "least": "SELECT g, MIN(x) AS x FROM (SELECT g, x FROM s UNION ALL "
            "SELECT -g, x FROM least) GROUP BY g",
        }
    )
    for change in ([(0.0, 0.0)], [(-0.0, -0.0)], [(1.0, -0.0)], [(-1.0, float("nan"))]):
        flow.tick("s", change)
        assert [name for name in ("both", "least") if not flow.check(name).equal] == []
    assert {str(row.x) for row in flow.snapshot("both").collect()} == {"0.0", "nan"}
    flow.tick("s", DeltaBatch.deletes([(0.0, 0.0), (1.0, -0.0)]))
    assert [name for name in ("both", "least") if not flow.check(name).equal] == []


def test_texts_are_compared_with_texts(flow: IncrementalFlow) -> None:
    flow.register_source("seed", "n INT, d STRING")
    flow.register_source("e", "x INT, y INT, w STRING")
    least = "SELECT n, MIN(d) AS d FROM (SELECT n, d FROM seed UNION ALL {}) GROUP BY n"
    step = "SELECT e.y, LEAST(a.d, e.w) FROM a JOIN e ON a.n = e.x WHERE a.d < '5' OR a.d <= e.w"
    flow.register_views({"a": least.format(step)})
    flow.tick("e", [(1, 2, "7"), (2, 3, None), (3, 1, "10")])
    for change in ([(1, "9")], [(1, "6")], [(2, "10")]):
        flow.tick("seed", change)
        assert flow.check("a").equal
    flow.tick("seed", DeltaBatch.deletes([(1, "6"), (2, "10")]))
    assert flow.check("a").equal


def test_a_sum_that_is_in_no_order_fails_the_tick(flow: IncrementalFlow) -> None:
    flow.register_source("seed", "n INT, d DOUBLE")
    flow.register_source("edge", "x INT, y INT, w DOUBLE")
    far = "SELECT n, MAX(d) AS d FROM (SELECT n, d FROM seed UNION ALL {}) GROUP BY n"
    step = "SELECT e.y, f.d - ABS(e.w) FROM far f JOIN edge e ON f.n = e.x"
    flow.register_views({"far": far.format(step)})
    endless = float("inf")
    flow.tick("edge", [(1, 2, endless), (2, 1, 1.0)])
    flow.tick("seed", [(1, 5.0)])
    with pytest.raises(TickFailed, match="adds up to NaN"):
        flow.tick("seed", [(1, endless)])
    assert rows(flow, "far") == [(1, 5.0), (2, -endless)]
    assert flow.check("far").equal


def test_declared_columns_may_be_smaller_than_the_branches(flow: IncrementalFlow) -> None:
    flow.register_source("seed", "n INT, d DECIMAL(10,3)")
    flow.register_source("e", "x INT, y INT")
    sql = (
        "SELECT n, MIN(d) AS d FROM (SELECT n, d FROM seed UNION ALL "
        "SELECT e.y, a.d + 0.001 FROM a JOIN e ON a.n = e.x) GROUP BY n"
    )
    flow.register_views({"a": sql}, schemas={"a": "n INT, d DECIMAL(10,2)"})
    flow.tick({"seed": [(1, Decimal("1.254"))], "e": [(1, 2), (2, 3)]})
    assert flow.check("a").equal
