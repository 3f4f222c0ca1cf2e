"""Digests are a group, and read back from their text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivm_core.model.digest import Digest
from ivm_core.model.errors import CorruptStore

DIGESTS = st.integers(-(2**130), 2**130).map(Digest)


@given(DIGESTS, DIGESTS)
def test_sums_can_be_undone(one: Digest, other: Digest) -> None:
    assert one + other == other + one
    assert one + other - other == one
    assert one + -one == Digest.zero()
    assert Digest.parse(one.hex) == one
    assert len(one.hex) == 32


@pytest.mark.parametrize("text", ["", "0" * 31, "0" * 33, "A" * 32, " " + "0" * 31])
def test_text_that_is_no_digest(text: str) -> None:
    with pytest.raises(CorruptStore):
        Digest.parse(text)
