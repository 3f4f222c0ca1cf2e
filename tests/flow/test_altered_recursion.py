"""Recursive views get other SQL, or another name: one tick brings the difference to all readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import DefinitionConflict, DeltaBatch, IncrementalFlow, Unsupported, UserError
from tests.flow.shop import log_of, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

Row = tuple[int, ...]
CHAIN = [(1, 2), (2, 3), (3, 4), (4, 2), (5, 6)]
CLOSURE = "SELECT x, y FROM edge UNION SELECT t.x, e.y FROM tc t JOIN edge e ON t.y = e.x"
FROM_ONE = CLOSURE.replace("FROM edge UNION", "FROM edge WHERE x = 1 UNION")
COUNTED = "SELECT x, COUNT(*) AS n FROM tc GROUP BY x"
HOPS = (
    "WITH RECURSIVE p(x, y, n) AS (SELECT x, y, 1 FROM edge WHERE x = 1 UNION ALL "
    "SELECT p.x, e.y, p.n + 1 FROM p JOIN edge e ON p.y = e.x WHERE p.n < 4) "
    "SELECT y, COUNT(*) AS n FROM p GROUP BY y"
)


def closure(edges: list[Row], start: int | None = None) -> list[Row]:
    """By a loop."""
    found = {edge for edge in edges if start in (None, edge[0])}
    while new := {(a, d) for a, b in found for c, d in edges if b == c} - found:
        found |= new
    return sorted(found)


def sparks(spark: SparkSession, sql: str, edges: list[Row]) -> list[Row]:
    """What Spark's own recursive expression gives."""
    spark.createDataFrame(edges, "x BIGINT, y BIGINT").createOrReplaceTempView("edge")
    try:
        return sorted(tuple(row) for row in spark.sql(sql).collect())
    finally:
        spark.catalog.dropTempView("edge")


@pytest.fixture
def walked(flow: IncrementalFlow) -> IncrementalFlow:
    flow.register_source("edge", "x BIGINT, y BIGINT")
    return flow


def test_a_view_that_reads_itself_is_swapped(
    walked: IncrementalFlow, place: Path, spark: SparkSession
) -> None:
    walked.register_views({"tc": CLOSURE, "counted": COUNTED}, max_iterations=50)
    walked.tick("edge", DeltaBatch.inserts(CHAIN))
    whole, part = closure(CHAIN), closure(CHAIN, 1)
    other_form = CLOSURE.replace("t.", "one.").replace("tc t", "tc AS one")
    assert walked.alter_view("tc", other_form).same_meaning
    assert walked.alter_view("tc").same_meaning
    watch = walked.watch_output("tc", since=1)
    report = walked.alter_view("tc", FROM_ONE)
    assert (report.tick, report.inserted, report.deleted) == (2, 0, len(whole) - len(part))
    assert report.downstream == {"counted": len({x for x, _ in whole}) - 1}
    assert rows(walked.snapshot("tc")) == part
    assert rows(walked.snapshot("tc", at=1)) == whole
    [(tick, delta)] = list(watch)
    assert (tick, len(delta.to_arrow())) == (2, len(whole) - len(part))
    walked.tick("edge", DeltaBatch.of([(2, 5), (3, 4)], weights=[1, -1]))
    now = [edge for edge in CHAIN if edge != (3, 4)] + [(2, 5)]
    assert rows(walked.snapshot("tc")) == closure(now, 1)
    assert rows(walked.snapshot("counted")) == [(1, len(closure(now, 1)))]
    wider = FROM_ONE.replace("SELECT x, y", "SELECT x, y, x < y AS up").replace(
        "t.x, e.y", "t.x, e.y, t.up"
    )
    report = walked.alter_view("tc", wider)
    assert report.columns == "`x` BIGINT, `y` BIGINT, `up` BOOLEAN"
    assert report.downstream == {"counted": 0}
    walked.alter_view("tc", CLOSURE)
    walked.close()
    with IncrementalFlow.open(place, spark) as again:
        again.register_views({"tc": CLOSURE, "counted": COUNTED})
        assert again.explain("tc").normalised
        again.tick("edge", DeltaBatch.deletes([(1, 2)]))
        assert rows(again.snapshot("tc")) == closure([edge for edge in now if edge != (1, 2)])
        assert again.snapshot("tc", at=4).columns == ["x", "y", "up"]
        assert again.check("tc").equal
        assert again.check("counted").equal
        assert again.replay().equal


def test_a_recursive_expression_is_swapped(walked: IncrementalFlow, spark: SparkSession) -> None:
    walked.register_view("hops", HOPS)
    walked.register_view("most", "SELECT MAX(n) AS n FROM hops")
    walked.tick("edge", DeltaBatch.inserts(CHAIN))
    assert rows(walked.snapshot("hops")) == sparks(spark, HOPS, CHAIN)
    renamed = HOPS.replace("p.", "path.").replace(" p ", " path ").replace("p(", "path(")
    assert walked.alter_view("hops", renamed.replace("FROM p ", "FROM path ")).same_meaning
    longer = HOPS.replace("p.n < 4", "p.n < 9")
    report = walked.alter_view("hops", longer)
    assert rows(walked.snapshot("hops")) == sparks(spark, longer, CHAIN)
    assert report.downstream == {"most": 2}
    # the recursion stays what it is where only what reads it changes
    names = set(walked._engine.history.views)
    only_few = longer + " HAVING COUNT(*) < 3"
    walked.alter_view("hops", only_few)
    assert set(walked._engine.history.views) == names
    walked.tick("edge", DeltaBatch.of([(2, 5), (4, 2)], weights=[1, -1]))
    now = [edge for edge in CHAIN if edge != (4, 2)] + [(2, 5)]
    assert rows(walked.snapshot("hops")) == sparks(spark, only_few, now)
    plain = "SELECT y, COUNT(*) AS n FROM edge GROUP BY y"
    walked.alter_view("hops", plain)
    assert walked._engine.history.views.keys() == {"hops", "most"}
    assert rows(walked.snapshot("hops")) == sparks(spark, plain, now)
    walked.alter_view("hops", HOPS)
    assert rows(walked.snapshot("hops")) == sparks(spark, HOPS, now)
    assert walked.check("hops").equal
    assert walked.check("most").equal
    assert walked.replay().equal


EVEN = "SELECT x AS n FROM edge WHERE x = 1 UNION SELECT e.y FROM odd o JOIN edge e ON o.n = e.x"
ODD = "SELECT DISTINCT e.y AS n FROM even v JOIN edge e ON v.n = e.x"


def test_a_component_gains_and_loses_views(walked: IncrementalFlow) -> None:
    walked.register_views({"even": EVEN, "odd": ODD, "both": "SELECT n FROM even"})
    walked.tick("edge", DeltaBatch.inserts(CHAIN))
    assert rows(walked.snapshot("even")) == [(1,), (2,), (3,), (4,)]
    report = walked.alter_view("even", EVEN.replace("x = 1", "x = 5"))
    assert set(report.also) == {"odd"}
    assert (rows(walked.snapshot("even")), rows(walked.snapshot("odd"))) == ([(5,)], [(6,)])
    # no circle any more
    walked.alter_view("even", "SELECT DISTINCT x AS n FROM edge WHERE x = 1")
    assert (rows(walked.snapshot("even")), rows(walked.snapshot("odd"))) == ([(1,)], [(2,)])
    assert not walked._engine.history.views["odd"].component
    walked.tick("edge", DeltaBatch.inserts([(1, 4)]))
    assert rows(walked.snapshot("odd")) == [(2,), (4,)]
    # a larger one: views that it ties together are named
    through = EVEN.replace("FROM odd o", "FROM both o")
    with pytest.raises(UserError, match="circle") as caught:
        walked.alter_view("even", through)
    assert "also={'both': None}" in str(caught.value)
    both = "SELECT DISTINCT n FROM even UNION SELECT n FROM odd"
    before = log_of(walked)
    with pytest.raises(UserError, match="circle"):
        walked.alter_view("even", through, also={"both": both})
    assert log_of(walked) == before
    report = walked.alter_view("even", through, also={"both": both, "odd": None})
    assert walked._engine.history.views["odd"].component == ("even", "odd", "both")
    for view in walked.views:
        assert rows(walked.snapshot(view)) == [(1,), (2,), (3,), (4,)][view == "odd" :]
        assert walked.check(view).equal
    walked.tick("edge", DeltaBatch.deletes([(1, 2)]))
    for view in walked.views:
        assert walked.check(view).equal
    assert walked.replay().equal


def test_what_can_not_be_altered_changes_nothing(walked: IncrementalFlow) -> None:
    walked.register_views({"tc": CLOSURE, "counted": COUNTED, "hops": HOPS})
    walked.tick("edge", DeltaBatch.inserts(CHAIN))
    before = log_of(walked)
    with pytest.raises(Unsupported, match="swap=False"):
        walked.alter_view("tc", FROM_ONE, swap=False)
    with pytest.raises(Unsupported, match="swap=False"):
        walked.alter_view("hops", HOPS.replace("< 4", "< 5"), swap=False)
    with pytest.raises(UserError, match="a recursion inside of view hops"):
        walked.alter_view("hops.p", "SELECT 1 AS x")
    with pytest.raises(Unsupported, match="known only when it is complete"):
        walked.alter_view(
            "tc",
            "SELECT x, y FROM edge UNION SELECT e.x, e.y FROM edge e WHERE NOT EXISTS "
            "(SELECT 1 FROM tc WHERE tc.x = e.y)",
        )
    other = CLOSURE.replace("SELECT x, y", "SELECT x AS a, y AS b")
    with pytest.raises(DefinitionConflict, match="counted"):
        walked.alter_view("tc", other.replace("t.x", "t.a").replace("t.y", "t.b"))
    with pytest.raises(UserError, match="no view of this call"):
        walked.alter_view("tc", FROM_ONE, schemas={"other": "x INT"})
    assert log_of(walked) == before


def test_recursive_views_and_what_they_read_are_renamed(
    walked: IncrementalFlow, place: Path, spark: SparkSession
) -> None:
    walked.register_views({"even": EVEN, "odd": ODD, "both": "SELECT n FROM even"})
    walked.register_view("ways", "SELECT x, y FROM edge WHERE x < y")
    over = HOPS.replace("FROM edge", "FROM ways").replace("JOIN edge", "JOIN ways")
    walked.register_view("hops", over)
    walked.tick("edge", DeltaBatch.inserts(CHAIN))
    walked.rename_view("even", "straight")
    walked.rename_view("ways", "paths")
    walked.rename_view("hops", "counted")
    assert set(walked.views) == {"straight", "odd", "both", "paths", "counted"}
    assert "paths" in walked.view_sql("counted")
    walked.tick("edge", DeltaBatch.of([(4, 5), (1, 2)], weights=[1, -1]))
    walked.close()
    with IncrementalFlow.open(place, spark) as again:
        again.tick("edge", DeltaBatch.inserts([(1, 3)]))
        now = [edge for edge in CHAIN if edge != (1, 2)] + [(4, 5), (1, 3)]
        up = [(x, y) for x, y in now if x < y]
        assert rows(again.snapshot("counted")) == sparks(spark, HOPS, up)
        for view in again.views:
            assert again.check(view).equal, view
        again.alter_view("straight", again.view_sql("straight").replace("x = 1", "x = 5"))
        assert rows(again.snapshot("odd")) == [(6,)]
        again.alter_view("counted")
        assert again.replay().equal


def test_altered_recursions_are_checkpointed_restored_and_backfilled(
    walked: IncrementalFlow, tmp_path: Path, spark: SparkSession
) -> None:
    walked.register_views({"even": EVEN, "odd": ODD}, max_iterations=70)
    walked.register_view("hops", HOPS)
    walked.tick("edge", DeltaBatch.inserts(CHAIN))
    walked.checkpoint(tmp_path / "deltas")
    walked.alter_view(
        "even", EVEN.replace("x = 1", "x = 5"), also={"hops": HOPS.replace("< 4", "< 3")}
    )
    walked.tick("edge", DeltaBatch.of([(6, 1), (3, 4)], weights=[1, -1]))
    walked.checkpoint(tmp_path / "deltas")
    walked.checkpoint_full(tmp_path / "full")
    wanted = {view: rows(walked.snapshot(view)) for view in walked.views}
    for kind in ("deltas", "full"):
        with IncrementalFlow.open(tmp_path / f"from {kind}", spark) as other:
            other.restore(tmp_path / kind)
            assert {view: rows(other.snapshot(view)) for view in other.views} == wanted
            assert other._engine.history.views["odd"].limits[0] == 70
            other.tick("edge", DeltaBatch.inserts([(6, 7), (1, 5)]))
            for view in other.views:
                assert other.check(view).equal, (kind, view)
    for view in ("odd", "hops"):
        assert walked.backfill(view, into=tmp_path / f"backfill of {view}").equal
