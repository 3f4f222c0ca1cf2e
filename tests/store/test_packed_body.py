"""Bodies of log entries say the same however they are held."""

from __future__ import annotations

import pytest

from ivm_core.store.packed_body import PackedBody, pack_together


def test_bodies_packed_together_are_what_they_were() -> None:
    bodies = [
        {"tick": at, "text": "\x1e \\ \u2028 é", "more": {"a": [at, None]}} for at in range(100)
    ]
    held = [PackedBody.of(body) for body in bodies]
    alone = [each.text for each in held]
    pack_together(held[:64])
    pack_together(held[64:])
    assert [each.text for each in held] == alone
    assert [each.body for each in reversed(held)] == bodies[::-1]


def test_a_body_that_was_packed_with_others_can_be_packed_with_others_again() -> None:
    held = [PackedBody.of({"n": at}) for at in range(4)]
    pack_together(held[:3])
    pack_together(held[1:])
    assert [each.body["n"] for each in held] == [0, 1, 2, 3]


def test_what_json_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        PackedBody.of({"x": float("nan")})


def test_bodies_that_are_packed_together_are_not_packed_again() -> None:
    held = [PackedBody.of({"n": at}) for at in range(4)]
    pack_together(held)
    first = held[0].pack
    pack_together(held)
    assert first is not None
    assert all(each.pack is first for each in held)
