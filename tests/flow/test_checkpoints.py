"""Checkpoints and what is restored from them: the same ticks, digests, rows and answers."""

from __future__ import annotations

import json
import os
import resource
import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from ivm_core import (
    CheckpointError,
    DeltaBatch,
    IncrementalFlow,
    NewerFormat,
    TickConflict,
    UnknownName,
    UserError,
)
from ivm_core.engine import maintenance
from ivm_core.engine.checkpointing import checkpoint, checkpoint_full, digests_of
from ivm_core.engine.core import Engine
from ivm_core.engine.restoring import restore
from tests.flow.shop import assert_exact, declare_shop, rows
from tests.processes import in_thread
from tests.store.places import AsObjectStore

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def _merged_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of several ticks are a part of the story."""
    monkeypatch.setattr(maintenance, "SMALL_FILES", 3)


def first_half(flow: IncrementalFlow) -> None:
    declare_shop(flow)
    flow.register_view("doomed", "SELECT COUNT(*) AS n FROM orders")
    flow.tick({"orders": [(1, "ann", 20), (2, "bob", 3)], "customers": [("ann", "Rome")]})
    flow.tick("orders", DeltaBatch.upserts([(2, "ann", 7), (3, "bob", 9)]), batch_id="b2")
    flow.drop_view("doomed")
    flow.alter_source("orders", "id BIGINT, customer STRING, amount INT, note STRING")


def second_half(flow: IncrementalFlow) -> None:
    flow.register_view("notes", "SELECT note, COUNT(*) AS n FROM orders GROUP BY note")
    for number in range(4, 9):
        flow.tick("orders", [(number, "cy", number, "new")])
    flow.alter_view("totals", f"{TOTALS} WHERE amount > 3 GROUP BY customer")
    flow.rename_view("large", "big")
    flow.tick("orders", DeltaBatch.delete_keys([1, 4]), logical_time=LATER)


TOTALS = "SELECT customer, COUNT(*) AS n, SUM(amount) AS total FROM orders"
LATER = datetime(2100, 1, 1, tzinfo=UTC)


def seen(flow: IncrementalFlow) -> dict[str, Any]:
    """What can be asked of a flow."""
    history = flow._engine.history
    return {
        "ticks": [
            (tick, body["logical_time"], body["batch_id"], digests_of(body))
            for tick, body in history.commits.items()
        ],
        "views": {name: rows(flow.snapshot(name)) for name in flow.views},
        "older": rows(flow.snapshot("totals", at=2)),
        "changes": rows(flow.changes("totals", since=0)),
        "batches": dict(history.batches),
    }


@pytest.fixture(scope="module")
def told(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> tuple[Path, dict[str, Any]]:
    """A flow's two delta checkpoints and a full one, and what it was like."""
    place = tmp_path_factory.mktemp("checkpoints")
    with pytest.MonkeyPatch.context() as patch, IncrementalFlow.open(place / "flow", spark) as flow:
        patch.setattr(maintenance, "SMALL_FILES", 3)
        first_half(flow)
        first = flow.checkpoint(place / "delta")
        assert (first.number, first.tick, first.is_new) == (1, 2, True)
        assert first.rows == 6
        second_half(flow)
        second = flow.checkpoint(place / "delta")
        assert (second.number, second.tick, second.rows) == (2, 9, 7)
        again = flow.checkpoint(place / "delta")
        assert (again.number, again.is_new, again.bytes) == (2, False, 0)
        full = flow.checkpoint_full(place / "full")
        assert (full.kind, full.number, full.tick) == ("full", 1, 9)
        assert_exact(flow)
        return place, seen(flow)


@pytest.mark.parametrize("kind", ["delta", "full"])
def test_what_is_restored_is_what_there_was_and_goes_on(
    kind: str, told: tuple[Path, dict[str, Any]], tmp_path: Path, spark: SparkSession
) -> None:
    place, before = told
    with IncrementalFlow.open(tmp_path / "flow", spark) as flow:
        restored = flow.restore(place / kind)
        assert (restored.tick, restored.replayed) == (9, 9 if kind == "delta" else 0)
        assert seen(flow) == before
        assert_exact(flow)
        flow.tick("orders", [(20, "di", 20, None)])
        assert flow.tick("orders", [(20, "di", 20, None)], batch_id="b2").tick == 2
        assert_exact(flow)
        if kind == "full":
            assert flow.replay().equal
        # the restored flow goes on with the checkpoints of the one that is gone
        copy = shutil.copytree(place / "delta", tmp_path / "delta")
        assert flow.checkpoint(copy).number == 3
    assert not (tmp_path / "flow" / "restoring").exists()
    with IncrementalFlow.open(tmp_path / "flow", spark) as flow:
        assert flow.current_tick == 10
        flow.tick("customers", [("di", "Oslo")])
        assert_exact(flow)
    if kind == "delta":
        return
    with IncrementalFlow.open(tmp_path / "third", spark) as flow:
        assert flow.restore(copy).tick == 10
        assert_exact(flow)


def test_a_full_checkpoint_is_plain_files_with_checksums(
    told: tuple[Path, dict[str, Any]],
) -> None:
    """Without Tideview: JSON, Parquet, and an XXH3 of 128 bits."""
    import pyarrow.parquet as pq
    import xxhash

    folder = told[0] / "full"
    manifest = json.loads((folder / "checkpoint-000001.json").read_text())
    assert manifest["tideview_checkpoint"] == 2
    assert {"sources/orders/rows", "views/notes/rows", "views/notes/node_1/state"} <= set(
        manifest["traces"]
    )
    for trace in manifest["traces"].values():
        columns = [field["name"] for field in trace["schema"]["fields"]]
        for part in trace["parts"]:
            content = (folder / part["path"]).read_bytes()
            assert (len(content), xxhash.xxh3_128(content).hexdigest()) == (
                part["bytes"],
                part["checksum"],
            )
            table = pq.read_table(folder / part["path"])
            assert table.num_rows == part["rows"]
            assert set(table.column_names) <= set(columns)


def altered(manifest: Path, **changes: Any) -> None:
    """A manifest with other values and a checksum that fits them."""
    from ivm_core.store.checkpoint_folder import _checksum

    content = json.loads(manifest.read_text()) | changes
    content["checksum"] = _checksum(content)
    manifest.write_text(json.dumps(content))


def test_a_checkpoint_that_is_not_whole_or_not_ours_is_refused(
    told: tuple[Path, dict[str, Any]], tmp_path: Path, spark: SparkSession
) -> None:
    place = told[0]
    outside = tmp_path / "outside.parquet"
    outside.write_bytes(b"PAR1")

    def part_of(folder: Path) -> Path:
        return max((folder / "parts").rglob("*.parquet"), key=lambda file: file.stat().st_size)

    def changed_part(folder: Path) -> None:
        file = part_of(folder)
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(bytes(content))

    def linked_part(folder: Path) -> None:
        file = part_of(folder)
        content = file.read_bytes()
        file.unlink()
        outside.write_bytes(content)
        file.symlink_to(outside)

    def newest(folder: Path) -> Path:
        return max(folder.glob("checkpoint-*.json"))

    def one_part(folder: Path, **changes: Any) -> dict[str, Any]:
        content = json.loads(newest(folder).read_text())
        return {"log": content["log"] | changes}

    def trace_at(folder: Path, path: str, **part: Any) -> None:
        content = json.loads(newest(folder).read_text())
        traces = dict(content["traces"])
        trace = traces.pop("sources/orders/rows", {"parts": [], "schema": {}, "cluster_by": ""})
        trace["parts"] = [each | part for each in trace["parts"]]
        altered(newest(folder), traces={**traces, path: trace})

    damages: dict[str, tuple[Any, type[Exception], str]] = {
        "no part": (lambda f: part_of(f).unlink(), CheckpointError, "can't be read"),
        "changed": (changed_part, CheckpointError, "was altered"),
        "link": (linked_part, CheckpointError, "link to elsewhere"),
        "text": (
            lambda f: newest(f).write_text(newest(f).read_text().replace('"tick": 9', '"tick": 8')),
            CheckpointError,
            "was altered",
        ),
        "cut": (lambda f: newest(f).write_text("{"), CheckpointError, "was altered"),
        "list": (lambda f: newest(f).write_text("[]"), CheckpointError, "was altered"),
        "newer": (lambda f: altered(newest(f), tideview_checkpoint=3), NewerFormat, "format 3"),
        "newer flow": (lambda f: altered(newest(f), flow_format=99), NewerFormat, "format 99"),
        "way out": (
            lambda f: altered(newest(f), **one_part(f, path="parts/../../outside.parquet")),
            CheckpointError,
            "can't be used",
        ),
        "entries": (lambda f: altered(newest(f), entries=3), CheckpointError, "can't be used"),
        "empty": (lambda f: [shutil.rmtree(f), f.mkdir()], CheckpointError, "no checkpoint"),
    }
    full = {
        "trace outside": (
            lambda f: trace_at(f, "../sources/orders/rows"),
            CheckpointError,
            "can't be one",
        ),
        "no trace": (lambda f: trace_at(f, "ticks/_delta_log"), CheckpointError, "can't be one"),
        "file outside": (
            lambda f: trace_at(f, "sources/orders/rows", name="../../../evil.parquet"),
            CheckpointError,
            "can't be one",
        ),
    }
    delta = {
        "first is gone": (
            lambda f: (f / "checkpoint-000001.json").unlink(),
            CheckpointError,
            "numbered 2",
        ),
    }
    with IncrementalFlow.open(tmp_path / "flow", spark) as flow:
        for kind, more in (("full", full), ("delta", delta)):
            for name, (damage, error, text) in (damages | more).items():
                folder = shutil.copytree(place / kind, tmp_path / kind / name)
                damage(folder)
                with pytest.raises(error, match=text):
                    flow.restore(folder)
                assert flow._engine.log.entries == [], name
                assert {each.name for each in (tmp_path / "flow").iterdir()} <= {
                    "ticks",
                    "writer.lock",
                }, name
        assert not (tmp_path / "evil.parquet").exists()
        # a part that is wrong and says so nowhere comes out at the tick that differs
        folder = shutil.copytree(place / "delta", tmp_path / "forged")
        manifest = folder / "checkpoint-000001.json"
        content = json.loads(manifest.read_text())
        parts = content["sources"]["orders"]
        altered(manifest, sources={**content["sources"], "orders": parts[:1]})
        first = json.loads(manifest.read_text())["checksum"]
        altered(folder / "checkpoint-000002.json", previous=first)
        with pytest.raises(CheckpointError, match="tick 2 comes out differently"):
            flow.restore(folder)
        assert not flow.views
        assert not (tmp_path / "flow" / "sources").exists()
        assert flow.restore(place / "full").tick == 9
        with pytest.raises(CheckpointError, match="not empty"):
            flow.restore(place / "full")
        assert flow.current_tick == 9


def test_a_checkpoint_is_put_only_where_it_belongs(
    told: tuple[Path, dict[str, Any]], tmp_path: Path, spark: SparkSession
) -> None:
    place = tmp_path / "flow"
    with IncrementalFlow.open(place, spark) as flow:
        flow.register_source("t", "id INT")
        assert flow.checkpoint(tmp_path / "mine").rows == 0
        copy = shutil.copytree(told[0] / "delta", tmp_path / "delta")
        with pytest.raises(CheckpointError, match="another flow"):
            flow.checkpoint(copy)
        with pytest.raises(CheckpointError, match="has delta checkpoints"):
            flow.checkpoint_full(tmp_path / "mine")
        (tmp_path.parent / f"{tmp_path.name}-link").symlink_to(place)
        for path in (
            place,
            place / "checkpoints",
            tmp_path,
            tmp_path.parent / f"{tmp_path.name}-link" / "x",
        ):
            with pytest.raises(UserError, match="inside of each other"):
                flow.checkpoint(path)
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "letter.txt").write_text("")
        with pytest.raises(UserError, match=r"something else: letter\.txt"):
            flow.checkpoint(tmp_path / "other")
        flow.tick("t", [(1,)])
        before = sorted(path.name for path in (tmp_path / "mine").rglob("*"))
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # as if the disk were full
        try:
            with pytest.raises(CheckpointError, match="can't be written"):
                flow.checkpoint(tmp_path / "mine")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert sorted(path.name for path in (tmp_path / "mine").rglob("*")) == before

        def elsewhere() -> None:
            with IncrementalFlow.open(place, read_only=True) as reader:
                assert reader.checkpoint(tmp_path / "mine").number == 2
            with IncrementalFlow.open(place) as second, pytest.raises(TickConflict):
                second.checkpoint_full(tmp_path / "yours")

        in_thread(elsewhere)
    with IncrementalFlow.open(tmp_path / "again", spark) as flow:
        flow.restore(tmp_path / "mine")
        assert rows(flow.snapshot("t")) == [(1,)]


def test_flows_that_are_declared_alike_do_not_share_a_folder(
    tmp_path: Path, spark: SparkSession
) -> None:
    def declare(name: str, row: int) -> IncrementalFlow:
        flow = IncrementalFlow.open(tmp_path / name, spark)
        flow.register_source("t", "id INT")
        flow.tick("t", [(row,)])
        flow.register_view("v", "SELECT id FROM t")
        return flow

    with declare("one", 1) as one, declare("two", 2) as two:
        assert one.checkpoint(tmp_path / "kept").is_new
        with pytest.raises(CheckpointError, match="another flow"):
            two.checkpoint(tmp_path / "kept")
        two.tick()
        with pytest.raises(CheckpointError, match="another flow"):
            two.checkpoint(tmp_path / "kept")
        one.tick("t", [(3,)])
        assert one.checkpoint(tmp_path / "kept").number == 2
        with IncrementalFlow.open(tmp_path / "again", spark) as again:
            again.restore(tmp_path / "kept")
            assert rows(again.snapshot("v")) == [(1,), (3,)]
        shutil.rmtree(next((tmp_path / "kept" / "parts").glob("000001-*")))
        one.tick("t", [(4,)])
        with pytest.raises(CheckpointError, match=r"parts/000001-.* is missing"):
            one.checkpoint(tmp_path / "kept")


def test_functions_in_python_have_to_be_registered_again(
    tmp_path: Path, spark: SparkSession
) -> None:
    def double(x: int) -> int:
        return x * 2

    with IncrementalFlow.open(tmp_path / "flow", spark) as flow:
        flow.register_function("double_of", double, "INT", deterministic=True)
        flow.register_source("t", "id INT")
        flow.register_function("half", "x / 2", "DOUBLE", parameters="x INT")
        flow.register_view("doubles", "SELECT double_of(id) AS d FROM t")
        flow.register_view("halves", "SELECT half(id) AS h FROM t")
        flow.tick("t", [(1,)])
        assert flow.checkpoint(tmp_path / "delta").functions == ("double_of",)
        flow.checkpoint_full(tmp_path / "full")
    with IncrementalFlow.open(tmp_path / "again", spark) as flow:
        with pytest.raises(UnknownName, match="double_of"):
            flow.restore(tmp_path / "delta")
        flow.register_function("double_of", double, "INT", deterministic=True)
        assert flow.restore(tmp_path / "delta").functions == ("double_of",)
        assert rows(flow.snapshot("doubles")) == [(2,)]
        flow.tick("t", [(3,)])
        assert rows(flow.snapshot("halves")) == [(0.5,), (1.5,)]
    with IncrementalFlow.open(tmp_path / "third", spark) as flow:
        assert "register again to tick: double_of" in str(flow.restore(tmp_path / "full"))
        assert rows(flow.snapshot("doubles")) == [(2,)]
        with pytest.raises(UnknownName, match="double_of"):
            flow.tick("t", [(2,)])


def test_a_followed_table_is_named_and_not_copied(tmp_path: Path, spark: SparkSession) -> None:
    table = tmp_path / "table"
    spark.range(3).write.format("delta").save(str(table))
    with IncrementalFlow.open(tmp_path / "flow", spark) as flow:
        flow.register_source("events", delta_table=table)
        flow.register_view("many", "SELECT COUNT(*) AS n FROM events")
        flow.tick()
        spark.range(3, 5).write.format("delta").mode("append").save(str(table))
        flow.tick()
        assert flow.checkpoint(tmp_path / "delta").rows == 0
    with IncrementalFlow.open(tmp_path / "again", spark) as flow:
        flow.restore(tmp_path / "delta")
        assert rows(flow.snapshot("many")) == [(5,)]
        assert rows(flow.snapshot("many", at=1)) == [(3,)]
    shutil.rmtree(table)
    with IncrementalFlow.open(tmp_path / "third", spark) as flow:
        with pytest.raises(UserError):
            flow.restore(tmp_path / "delta")
        assert flow.current_tick == 0
        assert not flow.views


def test_object_stores_will_do(tmp_path: Path, spark: SparkSession) -> None:
    """The checkpoint, the flow, the nodes that its views share, what it remembers of batches."""
    places = {name: AsObjectStore(tmp_path / name) for name in ("flow", "delta", "full")}
    with IncrementalFlow(Engine(places["flow"], spark)) as flow:
        flow.register_source("t", "id INT", dedup=True)
        many = "SELECT id, COUNT(*) AS n FROM t GROUP BY id"
        flow.register_views({"many": many, "most": f"SELECT MAX(n) AS n FROM ({many})"})
        assert flow._engine.history.shared
        flow.tick("t", [(1,)])
        assert checkpoint(flow._engine, places["delta"]).number == 1
        flow.tick("t", [(2,)])
        assert checkpoint(flow._engine, places["delta"]).rows == 1
        assert checkpoint_full(flow._engine, places["full"]).tick == 2
    for kind in ("delta", "full"):
        again = AsObjectStore(tmp_path / f"from {kind}")
        with IncrementalFlow(Engine(again, spark)) as flow:
            assert restore(flow._engine, places[kind]).tick == 2
            assert not again.exists("restoring")
            assert flow.tick("t", [(1,)]).dropped == ("t",)
            flow.tick("t", [(2,), (3,)])
            assert rows(flow.snapshot("many")) == [(1, 1), (2, 2), (3, 1)]
            assert rows(flow.snapshot("most")) == [(2,)]
            assert flow.tick("t", [(2,)]).dropped == ("t",)


def test_what_is_folded_goes_into_full_checkpoints_only(
    tmp_path: Path, spark: SparkSession
) -> None:
    with IncrementalFlow.open(tmp_path / "flow", spark) as flow:
        flow.register_source("t", "id INT")
        for number in range(1, 5):
            flow.tick("t", [(number,)])
            if number < 4:
                flow.checkpoint(tmp_path / str(number))
        flow.set_retention(ticks=1)
        # folders keep apart what their next checkpoint needs, however old they are
        for claim in (tmp_path / "flow" / "readers").iterdir():
            os.utime(claim, (1, 1))
        assert flow.compact() == (
            "source t folded up to tick 1",
            f"ticks after 1 stay apart for the next checkpoint in {tmp_path / '1'}",
        )
        assert flow.checkpoint(tmp_path / "1").rows == 3
        shutil.rmtree(tmp_path / "1")
        shutil.move(tmp_path / "2", tmp_path / "elsewhere")
        assert flow.compact() == ("source t folded up to tick 3",)
        # a folder that has the folded ticks already goes on
        assert flow.checkpoint(tmp_path / "3").rows == 1
        for folder in ("elsewhere", "none"):
            with pytest.raises(CheckpointError, match="use checkpoint_full"):
                flow.checkpoint(tmp_path / folder)
        flow.checkpoint_full(tmp_path / "full")
    for folder in ("3", "full"):
        with IncrementalFlow.open(tmp_path / f"from {folder}", spark) as flow:
            assert flow.restore(tmp_path / folder).tick == 4
            assert rows(flow.snapshot("t")) == [(1,), (2,), (3,), (4,)]
