"""Files of keys are searched where they lie, folded, and left out when they are damaged."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from ivm_core.store import key_files
from ivm_core.store.key_files import KeyFiles
from ivm_core.store.location import Location

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def key(number: int) -> bytes:
    return random.Random(number).randbytes(16)


def test_every_key_is_found_whatever_was_folded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_files, "FOLD_EVERY", 8)
    monkeypatch.setattr(key_files, "MERGE", 4)
    files = KeyFiles(Location(tmp_path))
    for start in range(1, 801, 8):
        files.add([(key(each), each, each + 5) for each in range(start, start + 8)], 1)
    assert len(list(tmp_path.iterdir())) < 40
    for opened in (files, KeyFiles(Location(tmp_path))):
        assert (opened.last, opened.first_missing(1)) == (800, 801)
        for number in range(1, 801):
            assert opened.find(key(number), 1) == (number, number + 5)
            assert opened.find(key(number), number + 1) is None
        assert opened.find(key(801), 1) is None
        assert opened.find(bytes(16), 1) is None
        assert opened.find(b"\xff" * 16, 1) is None
    # a key that came again is found by its newest number; what is too old goes
    files.add([(key(5), 801, 900)], 1)
    assert files.find(key(5), 1) == (801, 900)
    files.add([(key(9), 802, 901)], 801)
    assert files.first_missing(801) == 803
    assert files.find(key(5), 1) == (801, 900)
    assert files.find(key(400), 1) is None


def test_a_damaged_file_is_left_out(tmp_path: Path) -> None:
    files = KeyFiles(Location(tmp_path))
    files.add([(key(each), each, each) for each in range(1, 11)], 1)
    files.add([(key(each), each, each) for each in range(11, 21)], 1)
    first, _ = sorted(tmp_path.iterdir())
    first.write_bytes(first.read_bytes()[:-1])
    (tmp_path / "letter.txt").write_text("")
    opened = KeyFiles(Location(tmp_path))
    assert opened.first_missing(1) == 1
    assert opened.find(key(3), 1) is None
    assert opened.find(key(12), 1) == (12, 12)
