"""The additive fingerprint of a Z-set: digest(new) = digest(old) + digest(delta), mod 2**128."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ivm_core.model.errors import CorruptStore

_MODULUS = 1 << 128
_HEX = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Digest:
    """An element of the integers mod 2**128; any integer is taken as its residue."""

    value: int

    def __post_init__(self) -> None:
        """Reduce to the residue."""
        object.__setattr__(self, "value", self.value % _MODULUS)

    @classmethod
    def zero(cls) -> Digest:
        """The digest of the empty Z-set."""
        return cls(0)

    @classmethod
    def parse(cls, text: str) -> Digest:
        """Read back `hex`; anything but 32 lower-case hex digits is a `CorruptStore`."""
        if not _HEX.fullmatch(text):
            raise CorruptStore(f"{text!r} is not a digest of 32 hex digits")
        return cls(int(text, 16))

    @property
    def hex(self) -> str:
        """32 lower-case hex digits."""
        return f"{self.value:032x}"

    def __add__(self, other: Digest) -> Digest:
        """The digest of the sum of two Z-sets."""
        return Digest(self.value + other.value)

    def __sub__(self, other: Digest) -> Digest:
        """The digest of the difference of two Z-sets."""
        return Digest(self.value - other.value)

    def __neg__(self) -> Digest:
        """The digest of the negated Z-set."""
        return Digest(-self.value)

    def __str__(self) -> str:
        """The same as `hex`."""
        return self.hex
