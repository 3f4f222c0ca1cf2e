"""Old ticks are folded: no digest changes, and what someone needs stays."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from ivm_core import DeltaBatch, IncrementalFlow, OutOfRange, UserError
from ivm_core.cli.main import main
from ivm_core.engine import retention
from ivm_core.engine.retention import fold_line
from ivm_core.store import leases
from tests.flow.shop import VIEWS, declare_shop, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TOTALS = "SELECT customer, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY customer"


def sell(flow: IncrementalFlow, count: int) -> None:
    for _ in range(count):
        tick = flow.current_tick + 1
        gone = DeltaBatch.delete_keys([tick - 2]) if tick > 3 else DeltaBatch.of([])
        flow.tick(
            {"orders": gone + DeltaBatch.inserts([(tick, "ann" if tick % 2 else "bob", tick)])}
        )


def line(flow: IncrementalFlow, now: datetime | None = None) -> int:
    return fold_line(flow._engine.layout, flow._engine.history, now)


def test_ticks_below_the_line_are_folded(place: Path, spark: SparkSession) -> None:
    with IncrementalFlow.open(place, spark) as flow:
        declare_shop(flow)
        flow.register_view("same", f"SELECT t.customer, t.total, t.n FROM ({TOTALS}) t WHERE n > 0")
        assert flow._engine.history.shared
        flow.tick("customers", [("ann", "Rome"), ("bob", "Oslo")])
        sell(flow, 5)
        assert flow.retention == (None, None)
        assert flow.compact() == ()
        before = {(v, at): rows(flow.snapshot(v, at)) for v in ("orders", *VIEWS) for at in (4, 6)}
        states = {name: state.digest for name, state in flow._engine.history.states.items()}
        flow.set_retention(ticks=2)
        said = flow.compact()
        assert "source orders folded up to tick 4" in said
        assert "totals folded up to tick 4" in said
        assert flow.compact() == ()
        after = {(v, at): rows(flow.snapshot(v, at)) for v, at in before}
        assert after == before
        with pytest.raises(OutOfRange, match="the oldest tick that is kept is 4"):
            flow.snapshot("totals", at=3)
        with pytest.raises(OutOfRange, match="the oldest tick to go on from is 4"):
            flow.changes("totals", since=2)
        assert [tick for tick, _ in flow.watch_output("totals", since=4)] == [5, 6]
        found = flow.replay()
        assert found.equal
        assert found.hydrated_at == 4
        assert {each.tick for each in found.deltas} == {4, 5, 6}
        assert {name: s.digest for name, s in flow._engine.history.states.items()} == states
        assert flow.verify() == ()
        sell(flow, 1)
        assert_exact(flow)
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.retention == (2, None)
        sell(flow, 1)
        assert_exact(flow)
    assert main(["compact", str(place), "--keep-ticks", "1", "--quiet"]) == 0
    with IncrementalFlow.open(place, spark) as flow:
        assert flow.retention == (1, None)
        assert flow.replay().hydrated_at == 7


def assert_exact(flow: IncrementalFlow) -> None:
    assert all(flow.check(view).equal for view in flow.views)


def test_what_a_reader_began_with_stays(
    place: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEWED_AFTER", 0.1)
    monkeypatch.setattr(leases, "_renewals", leases._Renewals())
    with IncrementalFlow.open(place, spark) as flow:
        declare_shop(flow)
        sell(flow, 4)
        watch = flow.watch_output("totals", since=1)
        flow.set_retention(ticks=1)
        assert flow.compact()
        assert line(flow) == 1
        assert [tick for tick, _ in watch] == [2, 3, 4]
        del watch
        said: list[tuple[str, ...]] = []
        assert flow.replay(progress=lambda tick, last: said.append(flow.compact())).equal
        into = tmp_path / "filled"
        assert flow.backfill(
            "totals", into=into, progress=lambda tick, last: said.append(flow.compact())
        ).equal
        kept = "ticks after 0 stay apart for a watch, a replay or a pinned reader"
        assert said == [(kept,)] * len(said)
        with flow.pin(2):
            (file,) = (place / "readers").glob("*.json")
            os.utime(file, (0, 0))  # as it is days later
            for _ in range(100):
                if file.stat().st_mtime:
                    break
                time.sleep(0.1)
            assert line(flow) == 2
        assert line(flow) == 3
        assert flow.compact()


def test_what_someone_needs_stays(
    place: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "PAYS_FROM", 2)
    with IncrementalFlow.open(place, spark) as flow:
        declare_shop(flow)
        for wrong in ({"ticks": 0}, {"ticks": 1.5}, {"days": 0}, {"days": "x"}):
            with pytest.raises(UserError, match=f"{next(iter(wrong))}="):
                flow.set_retention(**wrong)  # type: ignore[arg-type]
        flow.set_retention(ticks=1)
        sell(flow, 2)
        watch = flow.watch_output("totals", since=1)
        sell(flow, 2)
        assert line(flow) == 1
        assert [tick for tick, _ in watch] == [2, 3, 4]
        assert line(flow) == 3
        del watch
        with flow.pin(at=2) as pinned, flow.pin():
            assert (pinned, line(flow)) == (2, 2)
        assert line(flow) == 3
        flow.tick("orders", [(90, "eve", 1)], views=["large"])
        flow.tick("orders", [(91, "eve", 1)], views=["large"])
        assert line(flow) == 4  # totals has yet to read tick 5
        flow.tick()
        assert line(flow) == 4  # a replay can't begin with ticks 5 and 6
        assert (
            flow._engine.layout.source_rows(
                "orders", flow._engine.history.sources["orders"].schema
            ).base_tick
            == 4
        )  # folded by itself, with a tick
        assert_exact(flow)
        flow.set_retention(ticks=1, days=1)
        now = datetime.now(UTC)
        assert line(flow, now) == 0
        assert line(flow, now + timedelta(days=2)) == 4
        flow.set_retention(days=1)
        assert line(flow, now + timedelta(days=2)) == 7
