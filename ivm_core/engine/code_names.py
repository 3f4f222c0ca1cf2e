"""The names that compiled code uses, itself and in the functions inside of it."""

from __future__ import annotations

import dis
import importlib.util
from types import CodeType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code and those inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def names_in(code: CodeType) -> frozenset[str]:
    """Every name that a code uses: of globals, modules and attributes."""
    return frozenset(name for each in _codes(code) for name in each.co_names)


def globals_in(code: CodeType) -> set[str]:
    """The names that a code looks up in its module."""
    return {
        step.argval
        for each in _codes(code)
        for step in dis.get_instructions(each)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }


def imports_in(code: CodeType, package: str | None) -> set[str]:
    """The modules that a code imports when it runs, and names that may be modules inside them."""
    found: set[str] = set()
    for each in _codes(code):
        steps = list(dis.get_instructions(each))
        for at, step in enumerate(steps):
            if step.opname != "IMPORT_NAME":
                continue
            level, members = steps[at - 2].argval, steps[at - 1].argval or ()
            if level and not package:
                continue
            name = importlib.util.resolve_name("." * level + step.argval, package or "")
            found |= {name, name.partition(".")[0], *(f"{name}.{member}" for member in members)}
    return found
