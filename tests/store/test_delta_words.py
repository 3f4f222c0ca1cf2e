"""Of what deltalake says, the reader gets the words and not the backtrace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from deltalake.exceptions import DeltaError

from ivm_core import UserError
from ivm_core.store.delta_words import cause, said
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
    assert len(str(told.value.__cause__).splitlines()) == 1


def test_causes_stay() -> None:
    error = OSError(
        'Generic error\n   \x1b[31m↳\x1b[0m failed to parse "x"\n   0: <unknown>\n   1: a'
    )
    assert said(error) == 'Generic error\n   ↳ failed to parse "x"'
    assert said(OSError()) == "OSError"


def test_a_cause_is_told_in_the_same_words() -> None:
    error = DeltaError("Generic error\n   \x1b[31m↳\x1b[0m no such key\n   0: <unknown>")
    assert cause(error) is error
    assert str(error) == "Generic error\n   ↳ no such key"
    lost = FileNotFoundError(2, "No such file", "x")
    assert str(cause(lost)) == "[Errno 2] No such file: 'x'"
