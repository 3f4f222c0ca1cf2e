"""Compaction: the same rows for whoever may still ask, in fewer files."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyarrow import parquet

from ivm_core.model.errors import InternalError, OutOfRange, TickConflict
from ivm_core.store import compaction as compaction_module
from ivm_core.store.compaction import Compaction, compact, merge_small, netted, sweep
from ivm_core.store.location import Location
from ivm_core.store.trace import Trace
from ivm_core.store.trace_files import Committed

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("_weight", pa.int64())])


def bag(table: pa.Table) -> Counter[tuple[int, str]]:
    counted: Counter[tuple[int, str]] = Counter()
    for row in table.to_pylist():
        counted[row["id"], str(row["x"])] += row["_weight"]
    return Counter({row: weight for row, weight in counted.items() if weight})


def filled(path: Path, ticks: int) -> tuple[Trace, Committed]:
    dice = random.Random(7)
    trace, committed = Trace.open(Location(path), SCHEMA, ["id"]), Committed()
    for tick in range(1, ticks + 1):
        count = dice.randrange(1, 20)
        trace.append(
            pa.table(
                [
                    [dice.randrange(10) for _ in range(count)],
                    [dice.choice([0.0, -0.0, None, 1.5]) for _ in range(count)],
                    [dice.choice([-1, 1, 2]) for _ in range(count)],
                ],
                schema=SCHEMA,
            ),
            tick,
            1,
        )
        committed.add(tick, 1)
    return trace, committed


def test_reads_from_the_base_on_are_the_same(tmp_path: Path) -> None:
    trace, committed = filled(tmp_path, 12)
    at = {tick: bag(trace.read(committed, at=tick)) for tick in range(13)}
    since = {tick: bag(trace.read(committed, since=tick)) for tick in range(13)}
    between = bag(trace.read(committed, at=10, since=8))
    compact(trace, committed, 5, epoch=1)
    compact(trace, committed, 7, epoch=1)
    for each in (trace, Trace.open(Location(tmp_path))):
        for tick in range(7, 13):
            assert bag(each.read(committed, at=tick)) == at[tick]
            assert bag(each.read(committed, since=tick)) == since[tick]
        assert bag(each.read(committed, at=10, since=8)) == between
        assert [file.is_base for file in each.files(committed)] == [True, False]
        with pytest.raises(OutOfRange, match="oldest tick that is kept is 7"):
            each.read(committed, at=6)
        with pytest.raises(OutOfRange, match="oldest tick to go on from is 7"):
            each.read(committed, since=6)
        assert each.base_tick == 7
    base = parquet.read_table(trace.files(committed)[0].uri)
    assert set(base["_tick"].to_pylist()) == {7}
    assert base["id"].to_pylist() == sorted(base["id"].to_pylist())
    assert 0 not in base["_weight"].to_pylist()


def test_ticks_go_on_after_compaction(tmp_path: Path) -> None:
    trace, committed = filled(tmp_path, 4)
    other = Trace.open(Location(tmp_path))
    compact(trace, committed, 4, epoch=1)
    trace.append(pa.table([[77], [1.0], [1]], schema=SCHEMA), 5, 1)
    committed.add(5, 1)
    other.append(pa.table([[78], [1.0], [1]], schema=SCHEMA), 6, 1)
    committed.add(6, 1)
    assert bag(other.read(committed, since=4)) == Counter({(77, "1.0"): 1, (78, "1.0"): 1})


def test_what_cancels_out_leaves_an_empty_base(tmp_path: Path) -> None:
    trace, committed = Trace.open(Location(tmp_path), SCHEMA), Committed({1: 1, 2: 1})
    trace.append(pa.table([[1], [1.0], [1]], schema=SCHEMA), 1, 1)
    trace.append(pa.table([[1], [1.0], [-1]], schema=SCHEMA), 2, 1)
    assert compact(trace, committed, 2, epoch=1) == 0
    assert trace.base_tick == 2
    assert trace.read(committed).num_rows == 0
    with pytest.raises(OutOfRange):
        trace.read(committed, at=1)


def test_dead_attempts_go_and_pending_ones_stay(tmp_path: Path) -> None:
    trace, committed = filled(tmp_path, 3)
    row = pa.table([[5], [5.0], [1]], schema=SCHEMA)
    trace.append(row, 3, 9)
    trace.append(row, 4, 1)
    expected = bag(trace.read(committed))
    compact(trace, committed, 2, epoch=1)
    assert bag(trace.read(committed)) == expected
    assert not any("e000009" in path for path in trace.table.files)
    committed.add(4, 1)
    assert bag(trace.read(committed, since=3)) == Counter({(5, "5.0"): 1})


def test_a_trace_that_moved_on_refuses(tmp_path: Path) -> None:
    trace, committed = filled(tmp_path, 3)
    begun = Compaction(trace, committed, 3, epoch=1)
    expected = bag(trace.read(committed))
    Trace.open(Location(tmp_path)).append(pa.table([[1], [1.0], [1]], schema=SCHEMA), 4, 1)
    with pytest.raises(TickConflict, match="during compaction"):
        begun.finish(begun.rows())
    trace.refresh()
    assert bag(trace.read(committed)) == expected
    assert trace.base_tick == 0


def test_small_files_fold_into_one_that_folds_again(tmp_path: Path) -> None:
    trace, committed = filled(tmp_path, 6)
    expected = bag(trace.read(committed))
    assert len(merge_small(trace, committed, netted)) == 6
    trace.append(pa.table([[99], [1.0], [1]], schema=SCHEMA), 7, 1)
    committed.add(7, 1)
    assert len(merge_small(trace, committed, netted)) == 2
    stored = Trace.open(Location(tmp_path)).read(committed)
    assert bag(stored) == Counter({**expected, (99, "1.0"): 1})
    assert stored.num_rows == len(bag(stored))
    assert set(stored["_tick"].to_pylist()) == {7}


def test_small_files_that_cancel_out_leave_one_without_rows(tmp_path: Path) -> None:
    trace, committed = Trace.open(Location(tmp_path), SCHEMA), Committed({1: 1, 2: 1})
    trace.append(pa.table([[1], [1.0], [1]], schema=SCHEMA), 1, 1)
    trace.append(pa.table([[1], [1.0], [-1]], schema=SCHEMA), 2, 1)
    assert len(merge_small(trace, committed, netted)) == 2
    assert [(file.rows, file.last_tick) for file in trace.files(committed)] == [(0, 2)]
    for each in (trace, Trace.open(Location(tmp_path))):
        assert each.read(committed).num_rows == 0
        assert each.newest_tick == 2


def test_accumulators_fold_as_they_are_told(tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.int64()), ("total", pa.int64())])
    trace, committed = Trace.open(Location(tmp_path), schema, ["k"]), Committed({1: 1, 2: 1})
    trace.append(pa.table({"k": [1, 2], "total": [10, 20]}), 1, 1)
    trace.append(pa.table({"k": [1], "total": [5]}), 2, 1)
    with pytest.raises(InternalError, match="can't be folded by weight"):
        compact(trace, committed, 2, epoch=1)

    def summed(rows: pa.Table) -> pa.Table:
        return rows.group_by("k").aggregate([("total", "sum")]).rename_columns(["k", "total"])

    compact(trace, committed, 2, epoch=1, fold=summed)
    assert trace.read(committed).sort_by("k").to_pydict() == {
        "k": [1, 2], "total": [15, 20], "_tick": [2, 2],
    }  # fmt: skip


def test_large_bases_are_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction_module, "BASE_FILE_ROWS", 10)
    trace, committed = filled(tmp_path, 9)
    expected = bag(trace.read(committed))
    compact(trace, committed, 9, epoch=1)
    assert len(trace.files(committed)) > 1
    assert bag(trace.read(committed)) == expected


def test_other_delta_readers_see_the_same_sums(tmp_path: Path) -> None:
    trace, committed = filled(tmp_path, 9)
    before = pc.sum(DeltaTable(str(tmp_path)).to_pyarrow_table()["_weight"]).as_py()
    compact(trace, committed, 6, epoch=1)
    assert pc.sum(DeltaTable(str(tmp_path)).to_pyarrow_table()["_weight"]).as_py() == before


@pytest.mark.parametrize("tick", [0, 1, 99])
def test_ticks_that_cannot_be_folded(tmp_path: Path, tick: int) -> None:
    trace, committed = filled(tmp_path, 4)
    compact(trace, committed, 2, epoch=1)
    with pytest.raises(OutOfRange, match="a tick from 2 to 4"):
        compact(trace, committed, tick, epoch=1)


def test_files_are_swept_only_when_nobody_can_need_them(tmp_path: Path) -> None:
    trace, committed = filled(tmp_path, 5)
    pinned = [file.uri for file in trace.files(committed)]
    compact(trace, committed, 5, epoch=1)
    assert sweep(trace) == []
    assert sum(parquet.read_table(uri).num_rows for uri in pinned) > 0
    (tmp_path / "t000000000009-e000001-left.parquet").write_bytes(b"killed")
    (tmp_path / "_delta_log" / ".abc.draft").write_bytes(b"killed")
    (tmp_path / "someone's.txt").write_bytes(b"not ours")
    expected = bag(trace.read(committed))
    swept = sweep(trace, keep_seconds=-10)
    assert "t000000000009-e000001-left.parquet" in swept
    assert "_delta_log/.abc.draft" in swept
    assert len(swept) == len(pinned) + 2
    assert (tmp_path / "someone's.txt").exists()
    assert bag(Trace.open(Location(tmp_path)).read(committed)) == expected
    DeltaTable(str(tmp_path)).to_pyarrow_table()
