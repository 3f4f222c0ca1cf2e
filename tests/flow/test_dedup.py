"""A batch whose content was taken before is dropped whole and counted, also after a kill."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from ivm_core import ConstraintViolation, DefinitionConflict, DeltaBatch, IncrementalFlow, UserError
from ivm_core.engine import deduplicating
from ivm_core.engine.history import DedupState
from tests.faults.story import killed_at, live
from tests.flow.shop import rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def declared(flow: IncrementalFlow) -> IncrementalFlow:
    flow.register_source("t", "id INT, x STRING", primary_key=["id"], dedup=True, dedup_entries=3)
    flow.register_source("lines", "x STRING", dedup=True)
    flow.register_source("pings", "x STRING", dedup="consecutive")
    flow.register_view("counted", "SELECT x, COUNT(*) AS n FROM lines GROUP BY x")
    return flow


def taken(flow: IncrementalFlow, source: str) -> tuple[int, int, int]:
    state = flow._engine.history.dedup.get(source, DedupState())
    return state.number, state.dropped, state.evicted


def test_content_is_what_counts(flow: IncrementalFlow, place: Path, spark: SparkSession) -> None:
    declared(flow)
    assert flow.tick("lines", [("a",), ("b",), ("a",)]).dropped == ()
    again = flow.tick("lines", [("b",), ("a",), ("a",)])
    assert (again.tick, again.dropped, again.rows_in) == (2, ("lines",), 0)
    assert "the batch for lines was taken by tick 1 already: dropped" in again.notes
    # the same rows another number of times, or taken back, are other batches
    assert flow.tick("lines", [("a",), ("b",)]).dropped == ()
    assert flow.tick("lines", DeltaBatch.deletes([("a",), ("b",)])).dropped == ()
    assert flow.tick("lines", DeltaBatch.deletes([("b",), ("a",)])).dropped == ("lines",)
    # in whatever form they come
    frame = spark.createDataFrame([("a",), ("a",), ("b",)], "x STRING")
    assert flow.tick("lines", frame).dropped == ("lines",)
    # nothing is no content
    assert not flow.tick("lines", []).dropped
    assert not flow.tick("lines", []).dropped
    assert rows(flow.snapshot("counted")) == [("a", 2), ("b", 1)]
    assert taken(flow, "lines") == (3, 3, 0)
    # a batch that is refused is not remembered, nor is one for another source
    with pytest.raises(ConstraintViolation):
        flow.tick("lines", DeltaBatch.deletes([("z",)]))
    flow.tick({"pings": [("a",), ("b",), ("a",)], "lines": [("z",)]})
    assert flow.tick("lines", DeltaBatch.deletes([("z",)])).dropped == ()
    flow.close()
    with IncrementalFlow.open(place, spark) as later:
        assert later.tick({"lines": [("z",)], "pings": [("c",)]}).dropped == ("lines",)
        assert taken(later, "lines") == (5, 4, 0)
        assert later.replay().equal
        later.checkpoint(place.parent / "delta")
        later.checkpoint_full(place.parent / "full")
    for kind in ("delta", "full"):
        with IncrementalFlow.open(place.parent / f"from {kind}", spark) as restored:
            restored.restore(place.parent / kind)
            assert taken(restored, "lines") == (5, 4, 0)
            assert restored.tick("lines", [("b",), ("a",)]).dropped == ("lines",)


def test_the_first_load_by_spark_the_memory_and_its_end(
    flow: IncrementalFlow, place: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deduplicating, "FOLD_EVERY", 2)
    declared(flow)
    frame = spark.createDataFrame([(1, "a"), (2, "b")], "id INT, x STRING")
    flow.tick("t", frame)
    # a repeated insertion would break the primary key
    assert flow.tick("t", [(2, "b"), (1, "a")]).dropped == ("t",)
    assert flow.tick("t", DeltaBatch.upserts([(1, "c")])).dropped == ()
    assert flow.tick("t", DeltaBatch.upserts([(1, "c")])).dropped == ("t",)
    flow.tick("t", DeltaBatch.delete_keys([1]))
    assert flow.tick("t", DeltaBatch.delete_keys([1])).dropped == ("t",)
    assert list((place / "sources" / "t" / "dedup").iterdir())
    assert taken(flow, "t") == (3, 3, 0)
    # the fourth pushes the first out
    flow.tick("t", DeltaBatch.upserts([(5, "e")]))
    assert taken(flow, "t") == (4, 3, 1)
    with pytest.raises(ConstraintViolation):
        flow.tick("t", [(1, "a"), (2, "b")])
    assert flow.tick("t", DeltaBatch.upserts([(1, "c")])).dropped == ("t",)
    flow.close()
    with IncrementalFlow.open(place, spark) as later:
        assert later.tick("t", DeltaBatch.delete_keys([1])).dropped == ("t",)
        later.tick("t", DeltaBatch.delete_keys([2]))
        assert later.tick("t", [(1, "a"), (2, "b")]).dropped == ()
        assert taken(later, "t") == (6, 5, 3)
    # files that are lost are read from the log again
    shutil.rmtree(place / "sources" / "t" / "dedup")
    with IncrementalFlow.open(place, spark) as later:
        assert later.tick("t", [(1, "a"), (2, "b")]).dropped == ("t",)


def test_only_repeats_back_to_back(flow: IncrementalFlow, place: Path) -> None:
    declared(flow)
    batches = "aabbba"
    assert [bool(flow.tick("pings", [(each,)]).dropped) for each in batches] == [
        False,
        True,
        False,
        True,
        True,
        False,
    ]
    assert taken(flow, "pings") == (3, 3, 0)
    assert not (place / "sources" / "pings" / "dedup").exists()


def test_what_makes_no_sense_is_refused(flow: IncrementalFlow, tmp_path: Path) -> None:
    for more in (
        {"dedup": "sometimes"},
        {"dedup": True, "dedup_entries": 0},
        {"dedup_entries": 5},
        {"dedup": "consecutive", "dedup_entries": 5},
    ):
        with pytest.raises(UserError, match="dedup"):
            flow.register_source("u", "id INT", **more)
    declared(flow)
    with pytest.raises(DefinitionConflict):
        flow.register_source("lines", "x STRING")
    flow._engine.gears.spark.range(1).write.format("delta").save(str(tmp_path / "table"))
    with pytest.raises(UserError, match="versions, not batches"):
        flow.register_source("events", delta_table=tmp_path / "table", dedup=True)


def test_a_tick_killed_anywhere_leaves_the_same_memory(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deduplicating, "FOLD_EVERY", 2)
    before = tmp_path / "before"
    with IncrementalFlow.open(before, spark) as flow:
        declared(flow).tick({"lines": [("a",)], "pings": [("p",)]})

    def second(flow: IncrementalFlow) -> None:
        flow.tick({"lines": [("b",)], "t": [(1, "x")], "pings": [("p",)]})

    points: list[str] = []
    whole = shutil.copytree(before, tmp_path / "whole")
    with killed_at(None, points):
        live(whole, spark, second)
    assert "before:dedup.fold" in points
    intent = [at for at, name in enumerate(points) if name == "after:ticklog.commit"][1]
    befores = [at for at, name in enumerate(points) if name.startswith("before:")]
    for number in (*befores[::3], points.index("before:dedup.fold")):
        place = shutil.copytree(before, tmp_path / str(number))
        with killed_at(number):
            live(place, spark, second)
        with IncrementalFlow.open(place, spark) as flow:
            if number < intent:
                assert flow.current_tick == 1
                second(flow)
            assert [taken(flow, name) for name in flow.sources] == [(1, 0, 0), (2, 0, 0), (1, 1, 0)]
            flow.tick({"lines": [("b",)], "t": [(1, "x")]})
            assert taken(flow, "lines") == (2, 1, 0), points[number]
            assert taken(flow, "t") == (1, 1, 0), points[number]
        shutil.rmtree(place)


def test_a_source_drops_repeats_from_the_moment_on_when_it_is_told_to(
    flow: IncrementalFlow, place: Path, spark: SparkSession
) -> None:
    flow.register_source("t", "id INT")
    flow.register_view("n", "SELECT COUNT(*) AS n FROM t")
    flow.tick("t", [(1,)])
    assert flow.alter_source("t", dedup=True, dedup_entries=2) == ()
    assert flow.tick("t", [(1,)]).dropped == ()  # what came before is not known
    assert flow.tick("t", [(1,)]).dropped == ("t",)
    for number in (2, 3):
        flow.tick("t", [(number,)])
    assert flow.tick("t", [(1,)]).dropped == ()  # forgotten
    flow.alter_source("t", "id INT, x INT", dedup=True, dedup_entries=10)
    flow.tick("t", [(4, 4)])
    assert flow.tick("t", [(4, 4)]).dropped == ("t",)
    flow.alter_source("t", dedup=False)
    assert flow.tick("t", [(4, 4)]).dropped == ()
    for wrong in ({"dedup": "often"}, {"dedup_entries": 5}, {}):
        with pytest.raises(UserError):
            flow.alter_source("t", **wrong)  # type: ignore[arg-type]
    flow.alter_source("t", dedup=True)
    for number in (1, 4):  # known before it was let in again, and come meanwhile
        assert flow.tick("t", [(number, number)]).dropped == ()
        assert flow.tick("t", [(number, number)]).dropped == ("t",)
    flow.alter_source("t", dedup="consecutive")
    assert flow.tick("t", [(4, 4)]).dropped == ("t",)
    flow.alter_source("t", dedup=False)
    flow.alter_source("t", dedup="consecutive")
    assert flow.tick("t", [(4, 4)]).dropped == ()
    flow.alter_source("t", dedup=False)
    assert flow.replay().equal
    flow.close()
    with IncrementalFlow.open(place, spark) as again:
        again.register_source("t", "id INT, x INT")
        assert again.tick("t", [(4, 4)]).dropped == ()


def test_what_a_smaller_memory_forgets_is_counted(
    flow: IncrementalFlow, place: Path, spark: SparkSession
) -> None:
    flow.register_source("t", "id INT", dedup=True, dedup_entries=5)
    for number in range(5):
        flow.tick("t", [(number,)])
    flow.alter_source("t", dedup=True, dedup_entries=2)
    assert flow.tick("t", [(4,)]).dropped == ("t",)
    assert flow.tick("t", [(2,)]).dropped == ()
    assert taken(flow, "t") == (6, 1, 4)
    flow.alter_source("t", dedup=True, dedup_entries=3)
    assert flow.tick("t", [(3,)]).dropped == ()  # what was forgotten stays so
    assert taken(flow, "t") == (7, 1, 4)
    assert 'tideview_dedup_evicted_total{source="t"} 4' in flow.openmetrics()
    flow.close()
    with IncrementalFlow.open(place, spark) as again:
        assert again.tick("t", [(4,)]).dropped == ("t",)
        again.tick("t", [(9,)])
        assert taken(again, "t") == (8, 2, 5)
        assert again.replay().equal
