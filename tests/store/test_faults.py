"""Fault points: known by name, and deadly when asked."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import parquet

from ivm_core.model.errors import InternalError, UserError
from ivm_core.store import faults, owned_table, ticklog
from ivm_core.store.compaction import compact, sweep
from ivm_core.store.location import Location
from ivm_core.store.ticklog import TickLog
from ivm_core.store.trace import Trace
from ivm_core.store.trace_files import Committed

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema([("id", pa.int64()), ("_weight", pa.int64())])
ROW = pa.table({"id": [1], "_weight": [1]})


def test_every_point_is_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the folders of views, of which the store knows nothing."""
    passed: set[str] = set()
    monkeypatch.setattr(faults, "on_fault_point", passed.add)
    monkeypatch.setattr(ticklog, "FOLD_EVERY", 4)
    monkeypatch.setattr(owned_table, "CHECKPOINT_EVERY", 3)
    log = TickLog.create(Location(tmp_path / "log"), 1, {})
    for tick in range(2 * ticklog.FOLD_EVERY):
        log.append("commit", tick, 1, {})
    trace, committed = Trace.open(Location(tmp_path / "trace"), SCHEMA), Committed({1: 1, 2: 1})
    trace.append(ROW, 1, 1)
    spark = tmp_path / "trace" / "t000000000002-e000001-spark"
    spark.mkdir()
    parquet.write_table(ROW.append_column("_tick", pa.array([2])), spark / "part-0.parquet")
    trace.adopt(2, 1)
    compact(trace, committed, 2, 1)
    sweep(trace, keep_seconds=-10)
    wider = pa.schema([("id", pa.int64()), ("more", pa.int32()), ("_weight", pa.int64())])
    trace = Trace.open(Location(tmp_path / "trace"), wider, widens=True)
    trace.append(pa.table({"id": [2], "more": [3], "_weight": [1]}, schema=wider), 3, 1)
    elsewhere = {
        name
        for name in faults.FAULT_POINTS
        if re.search(":(checkpoint|dedup|publish|restore|views.leftovers)", name)
    }
    assert passed == set(faults.FAULT_POINTS) - elsewhere


def test_unknown_points_are_bugs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "on_fault_point", lambda name: None)
    with pytest.raises(InternalError, match="is not a fault point"):
        faults.fault_point("before:breakfast")


@pytest.mark.parametrize(
    "setting", ["nonsense", "before:nothing", "before:trace.commit:x", "any:x"]
)
def test_settings_that_name_no_point(setting: str) -> None:
    with pytest.raises(UserError, match="names no fault point"):
        faults.KillAt(setting)


_WRITER = """
import sys
from ivm_core.store.location import Location
from ivm_core.store.ticklog import TickLog
log = TickLog.open(Location(sys.argv[1]))
log.append("intent", 1, 1, {})
log.append("commit", 1, 1, {})
"""


@pytest.mark.parametrize(
    ("point", "left"),
    [
        ("before:ticklog.commit", []),
        ("after:ticklog.commit", ["intent"]),
        ("before:ticklog.commit:2", ["intent"]),
        ("after:ticklog.commit:2", ["intent", "commit"]),
        ("any:5", []),  # the commit's draft is written
    ],
)
def test_a_killed_writer_leaves_whole_entries(tmp_path: Path, point: str, left: list[str]) -> None:
    TickLog.create(Location(tmp_path), 1, {})
    ended = subprocess.run(
        [sys.executable, "-c", _WRITER, str(tmp_path)],
        env={**os.environ, faults.KILL_AT: point},
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    log = TickLog.open(Location(tmp_path))
    assert [entry.kind for entry in log.entries] == left
    log.append("epoch", 1, 2, {})
