"""Of what deltalake says, the reader gets the words and not the backtrace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import UserError
from ivm_core.store.delta_words import said
from ivm_core.store.followed import FollowedTable
from ivm_core.store.location import Location

if TYPE_CHECKING:
    from pathlib import Path


def test_a_log_that_cannot_be_read_is_told_without_a_backtrace(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{0:020d}.json").write_text("no commit")
    with pytest.raises(UserError, match="can't be read: Kernel error: Json error") as told:
        FollowedTable(Location(tmp_path)).head()
    assert len(told.value.what.splitlines()) == 1


def test_causes_stay() -> None:
    error = OSError(
        'Generic error\n   \x1b[31m↳\x1b[0m failed to parse "x"\n   0: <unknown>\n   1: a'
    )
    assert said(error) == 'Generic error\n   ↳ failed to parse "x"'
    assert said(OSError()) == "OSError"
