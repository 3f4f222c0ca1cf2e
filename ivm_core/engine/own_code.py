"""How earlier versions told functions apart: by their own code, without what it calls and reads.

Flows that they wrote hold such fingerprints, until `alter_view` takes the functions anew.
"""

from __future__ import annotations

import hashlib
from typing import Any


def own_code_fingerprint(code: object, return_type: str) -> str:
    """Identity of a function's code, its constants and the names it uses."""
    digest = hashlib.sha256()
    _add_code(getattr(code, "__code__", None), digest)
    digest.update(repr(getattr(code, "__defaults__", None)).encode())
    digest.update(return_type.encode())
    return digest.hexdigest()[:16]


def _add_code(code: Any, digest: Any) -> None:
    if code is None:
        return
    digest.update(code.co_code)
    digest.update(repr(code.co_names).encode())
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            _add_code(constant, digest)
        else:
            digest.update(_stable(constant).encode())


def _stable(constant: Any) -> str:
    """The text of a constant; the order of a set's members is another in every process."""
    if isinstance(constant, frozenset):
        return f"frozenset({sorted(map(_stable, constant))})"
    if isinstance(constant, tuple):
        return f"({', '.join(map(_stable, constant))})"
    return repr(constant)
