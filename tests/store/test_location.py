"""Places: local and not, and nothing outside of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from ivm_core.model.errors import UserError
from ivm_core.store.location import Location
from ivm_core.store.trace import Trace
from tests.store.places import AsObjectStore

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=[Location, AsObjectStore])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    kind: type[Location] = request.param
    (tmp_path / "a place").mkdir()
    return kind(tmp_path / "a place")


def test_writes_reads_lists_and_deletes(place: Location) -> None:
    with place.open_output("x/y.bin") as stream:
        stream.write(b"one")
    with place.open_output("z.bin") as stream:
        stream.write(b"three")
    assert place.read_bytes("x/y.bin") == b"one"
    assert place.open_input("x/y.bin").read() == b"one"
    assert place.size("z.bin") == 5
    found = [entry.path for entry in place.list(recursive=True) if not entry.is_dir]
    assert found == ["x/y.bin", "z.bin"]
    assert place.exists("x/y.bin")
    assert place.child("x").exists("y.bin")
    assert place.delete("x/y.bin")
    assert not place.delete("x/y.bin")
    assert not place.exists("x/y.bin")


def test_nothing_is_nothing(place: Location) -> None:
    assert place.list("nowhere") == []
    assert not place.child("nowhere").exists()
    with pytest.raises(FileNotFoundError):
        place.read_bytes("nothing")
    with pytest.raises(FileNotFoundError):
        place.size("nothing")


@pytest.mark.parametrize("path", ["..", "a/../..", "/etc", "", "a//b", ".", "a\\b", "a\0b"])
def test_paths_cannot_leave(place: Location, path: str) -> None:
    with pytest.raises(UserError, match="is not a path below"):
        place.resolve(path)
    with pytest.raises(UserError):
        place.child(path)


def test_a_part_is_one_name(place: Location) -> None:
    with pytest.raises(UserError, match="has a slash within a name"):
        place.child("a/b")


@pytest.mark.parametrize("target", ["", "  ", "a\0b"])
def test_what_is_no_place(target: str) -> None:
    with pytest.raises(UserError, match="is not a path or URI"):
        Location(target)


def test_file_uris_are_local(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    assert Location(f"file://{tmp_path}/a%20b") == Location(tmp_path / "a b")
    assert hash(Location(f"file:{tmp_path}")) == hash(Location(tmp_path))
    with pytest.raises(UserError, match="names another host"):
        Location("file://elsewhere/x")


def test_other_uris_are_kept_and_secrets_are_not_shown() -> None:
    place = Location("s3://bucket/flow/", {"AWS_SECRET_ACCESS_KEY": "hidden"})
    assert place.child("ticks").uri == "s3://bucket/flow/ticks"
    assert place.child("ticks").storage_options == {"AWS_SECRET_ACCESS_KEY": "hidden"}
    assert "hidden" not in repr(place)
    with pytest.raises(UserError, match="is not a local directory"):
        _ = place.path


def test_what_is_written_is_synced_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    sync = os.fsync

    def noting(number: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{number}").removeprefix(f"{tmp_path}/"))
        sync(number)

    monkeypatch.setattr(os, "fsync", noting)
    schema = pa.schema([("id", pa.int64()), ("_weight", pa.int64())])
    row = pa.table({"id": [1], "_weight": [1]})
    trace = Trace.open(Location(tmp_path / "trace"), schema)
    trace.append(row, 1, 1)
    assert synced == []
    monkeypatch.setenv("TIDEVIEW_FSYNC", "1")
    trace.append(row, 2, 1)
    file, folder, draft, log = synced
    assert file.startswith("trace/t000000000002-e000001-")
    assert draft.startswith("trace/_delta_log/.")
    assert (folder, log) == ("trace", "trace/_delta_log")
