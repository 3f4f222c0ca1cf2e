"""Every table that a flow writes is read by other Delta readers after every tick.

`deltalake` reads it with Arrow; Polars takes the list of files from `deltalake` and reads them with
its own Parquet reader. (DuckDB's reader is an extension that has to be downloaded.)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars
import pytest
from deltalake import DeltaTable

from ivm_core import IncrementalFlow, TickFailed
from ivm_core.api.stored_rows import StoredRows
from tests.faults.long_story import POISON, LongStory, compact_often, declare

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession


def tables(place: Path) -> list[Path]:
    return sorted(each.parent for each in place.rglob("_delta_log"))


def bag(rows: Iterable[dict[str, Any]]) -> Counter[str]:
    return Counter(repr(sorted(row.items())) for row in rows)


def net(rows: Iterable[dict[str, Any]]) -> Counter[str]:
    """Rows of a trace as a reader who knows of weights sees them."""
    found: Counter[str] = Counter()
    for row in rows:
        row.pop("_tick")
        weight = row.pop("_weight")
        found[repr(sorted(row.items()))] += weight
    return +found


def test_other_readers_read_every_table_after_every_tick(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    compact_often(monkeypatch)
    place = tmp_path / "flow"
    story = LongStory(7, 4)
    with IncrementalFlow.open(place, spark) as flow:
        declare(flow)
        for step in story.steps.values():
            replace(step, is_poisoned=False).run(flow)
            stored = StoredRows(place)
            for table in tables(place):
                by_arrow = bag(DeltaTable(table).to_pyarrow_table().to_pylist())
                by_polars = bag(polars.read_delta(str(table)).to_dicts())
                assert by_arrow == by_polars, table
            for kind, names in (("sources", flow.sources), ("views", flow.views)):
                for name in names:
                    rows = polars.read_delta(str(place / kind / name / "rows")).to_dicts()
                    _, expected = stored.snapshot(name)
                    assert net(rows) == bag(expected.to_pylist()), name
        with pytest.raises(TickFailed):
            flow.tick("facts", [POISON])
        for table in tables(place):  # with what the failed tick has left there
            assert len(polars.read_delta(str(table))) == len(DeltaTable(table).to_pyarrow_table())
