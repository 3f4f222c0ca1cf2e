"""Files that are lost, cut off or changed: found, named, and made again where a replay can."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import parquet

from ivm_core import CorruptStore, HistoryLost, IncrementalFlow
from ivm_core.cli.main import main
from ivm_core.store.location import Location
from ivm_core.store.owned_table import OwnedTable
from ivm_core.store.trace_files import parse_name
from tests.faults import story
from tests.faults.long_story import compact_often
from tests.faults.story import told

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> tuple[Path, Any]:
    """A flow with everything in it, and all that is to be seen of it."""
    place = tmp_path_factory.mktemp("whole") / "flow"
    with pytest.MonkeyPatch.context() as patch, IncrementalFlow.open(place, spark) as flow:
        compact_often(patch)
        story.finish(flow)
        return place, told(flow)


def newest(folder: Path) -> Path:
    """The last data file of a trace that its table still has."""
    live: dict[str, None] = {}
    for commit in sorted((folder / "_delta_log").glob("*.json")):
        for action in map(json.loads, commit.read_text().splitlines()):
            if "add" in action:
                live[action["add"]["path"]] = None
            if "remove" in action:
                live.pop(action["remove"]["path"], None)
    return folder / list(live)[-1]


def lose(file: Path) -> None:
    file.unlink()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


def spoil(file: Path) -> None:
    """One bit of the first column's values."""
    column = parquet.read_metadata(file).row_group(0).column(0)
    content = bytearray(file.read_bytes())
    content[column.data_page_offset + column.total_compressed_size - 1] ^= 4
    file.write_bytes(content)


def test_damage_is_named_and_repaired(
    whole: tuple[Path, Any],
    tmp_path: Path,
    spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place, expected = tmp_path / "flow", whole[1]
    shutil.copytree(whole[0], place)
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.verify() == ()
        assert flow.repair().traces == ()
    assert main(["repair", str(place), "--check", "--quiet"]) == 0
    traces = ("views/large/rows", "views/top/node_1/state", "views/named/rows")
    lost, cut_off = newest(place / traces[0]), newest(place / traces[1])
    lose(lost)
    cut(cut_off)
    shutil.rmtree(place / traces[2])
    assert main(["repair", str(place), "--check", "--json"]) == 1
    said = json.loads(capsys.readouterr().out.partition("\n")[2])["damages"]
    found = {each["trace"]: each for each in said}
    assert set(found) == set(traces)
    assert found[traces[0]]["file"] == lost.name
    assert found[traces[0]]["problem"] == "the file is gone"
    assert found[traces[1]]["file"] == cut_off.name
    assert "bytes instead of" in found[traces[1]]["problem"]
    assert "missing" in found[traces[2]]["problem"]
    with IncrementalFlow.open(place, spark) as flow:
        with pytest.raises(CorruptStore, match=lost.name):
            flow._engine.layout.stage_rows("large", flow._engine.catalog.schemas()["large"]).read(
                flow._engine.history.committed
            )
        with pytest.raises(CorruptStore, match=r"views/(named|top|large)/"):
            flow.tick("facts", [(40, "b", 99)])
        assert flow.current_tick == story.LAST
        steps: list[tuple[int, int]] = []
        done = flow.repair(progress=lambda tick, last: steps.append((tick, last)))
        assert set(done.traces) == set(traces)
        assert steps == [(tick, story.LAST) for tick in range(1, story.LAST + 1)]
        assert flow.verify() == ()
        assert told(flow) == expected
        flow.tick("facts", [(30, "b", 3)])
        assert all(flow.check(view).equal for view in flow.views)


@pytest.mark.parametrize("harm", [lose, cut])
def test_a_reader_names_the_file_that_is_lost(
    harm: Callable[[Path], None], whole: tuple[Path, Any], tmp_path: Path, spark: SparkSession
) -> None:
    place = tmp_path / "flow"
    shutil.copytree(whole[0], place)
    file = newest(place / "views/large/rows")
    harm(file)
    with IncrementalFlow.open(place, spark) as flow:
        readers: list[Callable[[], Any]] = [
            lambda: flow.snapshot("large"),
            lambda: flow.changes("large"),
            lambda: flow.tick_change("large"),
            lambda: flow.check("large"),
            lambda: list(flow.watch_output("large", 0)),
        ]
        for read in readers:
            with pytest.raises(CorruptStore, match=rf"{file.name}[\s\S]*flow\.repair\(\)"):
                read()
        flow.repair()
        assert flow.snapshot("large").count()


def forget_last_tick(folder: Path) -> None:
    """As if the newest commits of a table's log had never reached the disk."""
    while newest_tick(folder) == story.LAST:
        max((folder / "_delta_log").glob("*.json")).unlink()


def newest_tick(folder: Path) -> int:
    return max(parse_name(path).last_tick for path in OwnedTable.open(Location(folder)).files)


@pytest.mark.parametrize("harm", [shutil.rmtree, forget_last_tick])
def test_a_node_that_is_lost_is_never_begun_anew(
    harm: Callable[[Path], None], whole: tuple[Path, Any], tmp_path: Path, spark: SparkSession
) -> None:
    """Its accumulators would count from nothing, and the view would be wrong from then on."""
    place, state = tmp_path / "flow", "views/top/node_1/state"
    shutil.copytree(whole[0], place)
    harm(place / state)
    with IncrementalFlow.open(place, spark) as flow:
        with pytest.raises(CorruptStore, match=rf"{state} (is missing|ends with tick)"):
            flow.tick("facts", [(40, "b", 99)])
        (damage,) = flow.verify()
        assert damage.trace == state
        assert flow.repair().traces == (state,)
        flow.tick("facts", [(40, "b", 99)])
        assert all(flow.check(view).equal for view in flow.views)


@pytest.mark.parametrize("harm", [lose, cut])
def test_a_lost_commit_of_a_trace_is_listed_and_repaired(
    harm: Callable[[Path], None], whole: tuple[Path, Any], tmp_path: Path, spark: SparkSession
) -> None:
    place, expected = tmp_path / "flow", whole[1]
    shutil.copytree(whole[0], place)
    traces = ("views/large/rows", "views/top/node_1/state")
    for name in traces:
        harm(place / name / "_delta_log" / f"{1:020d}.json")
    with IncrementalFlow.open(place, spark) as flow:
        found = flow.verify()
        assert tuple(each.trace for each in found) == traces
        assert all("can't be read" in each.problem for each in found)
        assert flow.repair().traces == traces
        assert flow.verify() == ()
        assert told(flow) == expected
        flow.tick("facts", [(40, "b", 99)])
        assert all(flow.check(view).equal for view in flow.views)
    harm(place / "sources/facts/rows/_delta_log" / f"{1:020d}.json")
    with IncrementalFlow.open(place, spark) as flow:
        assert [each.trace for each in flow.verify()] == ["sources/facts/rows"]
        with pytest.raises(HistoryLost, match="recorded nowhere else"):
            flow.repair()


def test_an_empty_commit_of_accumulators_is_listed_and_repaired(
    whole: tuple[Path, Any], tmp_path: Path, spark: SparkSession
) -> None:
    place, trace = tmp_path / "flow", "views/top/node_1/state"
    shutil.copytree(whole[0], place)
    commit = place / trace / "_delta_log" / f"{2:020d}.json"
    commit.write_bytes(b"")
    with IncrementalFlow.open(place, spark) as flow:
        (damage,) = flow.verify()
        assert (damage.trace, damage.file) == (trace, f"_delta_log/{commit.name}")
        assert flow.repair().traces == (trace,)
        assert flow.verify() == ()
        flow.tick("facts", [(40, "b", 99)])
        assert all(flow.check(view).equal for view in flow.views)


@pytest.mark.parametrize("harm", [lose, cut, spoil])
def test_a_source_that_is_lost_is_named_and_nothing_changes(
    harm: Callable[[Path], None], whole: tuple[Path, Any], tmp_path: Path, spark: SparkSession
) -> None:
    place = tmp_path / "flow"
    shutil.copytree(whole[0], place)
    file = newest(place / "sources/facts/rows")
    harm(file)
    with IncrementalFlow.open(place, spark) as flow:
        (damage,) = flow.verify()
        assert (damage.trace, damage.file) == ("sources/facts/rows", file.name)
        assert damage.last_tick == story.LAST
        with pytest.raises(HistoryLost, match="recorded nowhere else"):
            flow.repair()
        with pytest.raises(CorruptStore, match=file.name):
            flow.tick("facts", [(1, "a", 3)])
        assert flow.current_tick == story.LAST
