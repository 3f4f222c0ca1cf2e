"""Python functions that views may call, once their author vouches that they are deterministic."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True)
class Function:
    """A registered function; its fingerprint follows its code."""

    name: str
    code: Callable[..., Any]
    return_type: str

    @property
    def fingerprint(self) -> str:
        """Identity of the code, its constants and the names it uses."""
        digest = hashlib.sha256()
        _add_code(getattr(self.code, "__code__", None), digest)
        digest.update(repr(getattr(self.code, "__defaults__", None)).encode())
        digest.update(self.return_type.encode())
        return digest.hexdigest()[:16]


def called(functions: Iterable[Function], sql: str) -> list[Function]:
    """The functions that a text calls; one that is only mentioned in a string counts as well."""
    return [
        each
        for each in functions
        if re.search(rf"(?<!\w){re.escape(each.name)}`?\s*\(", sql, re.IGNORECASE)
    ]


def _add_code(code: Any, digest: Any) -> None:
    if code is None:
        return
    digest.update(code.co_code)
    digest.update(repr(code.co_names).encode())
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            _add_code(constant, digest)
        else:
            digest.update(repr(constant).encode())
