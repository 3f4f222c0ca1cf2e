"""Published tables: plain rows for other readers, one commit from tick to tick."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from ivm_core.model.errors import CorruptStore, TickConflict
from ivm_core.model.schema import parse_schema
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.netting import net
from ivm_core.store import published_table
from ivm_core.store.location import Location
from ivm_core.store.owned_table import OwnedTable
from ivm_core.store.published_table import Mark, PublishedTable
from tests.store.places import AsObjectStore

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = parse_schema("id BIGINT, name STRING, x DOUBLE, day DATE")
Row = tuple[Any, ...]


def delta(*rows: Row) -> pa.Table:
    """Rows with their weights in the end."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * 5
    wanted = arrow_schema(SCHEMA, weight=True)
    return pa.table(
        [pa.array(each, field.type) for each, field in zip(columns, wanted, strict=True)],
        schema=wanted,
    )


def bag(path: Path, table: pa.Table | None = None) -> Counter[str]:
    """As `deltalake` and Polars read it, which must be the same."""
    found = DeltaTable(path).to_pyarrow_table() if table is None else table
    by_arrow = Counter(repr(sorted(row.items())) for row in found.to_pylist())
    read = polars.read_delta(str(path)).to_dicts()
    assert by_arrow == Counter(repr(sorted(row.items())) for row in read)
    return by_arrow


def taken(table: PublishedTable, change: pa.Table, tick: int) -> str:
    netted = net(change, SCHEMA)
    gone = netted.filter(pa.compute.less(netted["_weight"], 0)).select(SCHEMA.names)
    touched = table.touched(gone) if gone.num_rows else []
    return table.change(netted, SCHEMA, Mark(tick, f"{tick:032x}"), touched, ["id"])


@pytest.mark.parametrize("kind", [Location, AsObjectStore])
def test_rows_come_and_go_and_other_readers_see_them(kind: type[Location], tmp_path: Path) -> None:
    path = tmp_path / "published"
    table = PublishedTable.make(kind(path), SCHEMA, "totals")
    assert taken(table, delta((1, "a", -0.0, None, 2), (2, None, math.nan, None, 1)), 1)
    assert "rows added" in taken(table, delta((3, "c", 0.0, None, 1)), 2)
    assert sum(bag(path).values()) == 4
    assert table.lost() == []
    first = next(iter(table.files)).path
    (path / first).rename(tmp_path / "elsewhere")
    assert table.lost() == [first]
    (tmp_path / "elsewhere").rename(path / first)
    assert "1 files written anew" in taken(table, delta((1, "a", -0.0, None, -1)), 4)
    with pytest.raises(CorruptStore, match="lacks rows"):
        taken(table, delta((3, "c", -0.0, None, -1)), 5)  # other bits, another row
    table.set_lag(7)
    again = PublishedTable.open(kind(path))
    assert again is not None
    assert (again.mark, again.rows, again.lag) == (Mark(4, f"{4:032x}"), 3, 7)
    said = DeltaTable(path).metadata().configuration
    assert (said["tideview.tick"], said["tideview.view"]) == ("4", "totals")
    wider = parse_schema("id BIGINT, at TIMESTAMP_NTZ")
    assert not again.has_columns(wider)
    stamps = pa.table([pa.array([1]), pa.array([None], pa.timestamp("us"))], arrow_schema(wider))
    again.replace(stamps, wider, Mark(6, "0" * 32), ["id"])
    assert bag(path) == {"[('at', None), ('id', 1)]": 1}
    assert again.has_columns(wider)
    with pytest.raises(TickConflict):
        table.move(Mark(9, "0" * 32))  # it has not seen what the other handle did


def test_a_long_life_is_that_of_a_bag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_table, "SMALL_FILES", 5)
    monkeypatch.setattr(published_table, "FILE_ROWS", 20)
    chance = random.Random(3)
    path = tmp_path / "published"
    table = PublishedTable.make(Location(path), SCHEMA, "totals")
    model: Counter[Row] = Counter()
    for tick in range(1, 25):
        change = [(tick * 10 + n, f"n{n % 3}", None, None, 1 + n % 2) for n in range(8)]
        for row in chance.sample(sorted(model), min(len(model), chance.randrange(5))):
            change.append((*row, -1))
        for *row, weight in change:
            model[tuple(row)] += weight
        model = +model
        taken(table, delta(*change), tick)
        read = DeltaTable(path).to_pyarrow_table()
        assert Counter(zip(*(each.to_pylist() for each in read.columns), strict=True)) == model
        assert DeltaTable(path).metadata().configuration["tideview.tick"] == str(tick)
    assert len(DeltaTable(path).file_uris()) < 25
    versions = DeltaTable(path).version()
    assert versions == 24  # one commit each
    swept = table.sweep(keep_seconds=-10)
    assert swept
    assert sum(bag(path).values()) == sum(model.values())


def test_an_object_store_names_its_tick_even_if_killed_between_two_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = AsObjectStore(tmp_path / "published")
    table = PublishedTable.make(place, SCHEMA, "totals")
    taken(table, delta((1, "a", 1.0, None, 1)), 1)
    with monkeypatch.context() as patch:
        patch.setattr(OwnedTable, "_set", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            taken(table, delta((2, "b", 1.0, None, 1)), 2)
    again = PublishedTable.open(place)
    assert again is not None
    assert again.mark.tick == 2  # its property still says 1
    taken(again, delta((1, "a", 1.0, None, -1)), 3)
    assert DeltaTable(tmp_path / "published").metadata().configuration["tideview.tick"] == "3"
    assert sum(bag(tmp_path / "published").values()) == 1
