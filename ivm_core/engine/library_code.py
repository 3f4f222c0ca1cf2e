"""Code that a user's function calls and that isn't the user's: known by its name and version."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

PYTHON = f"python {sys.version_info.major}.{sys.version_info.minor}"

_PACKAGES = {"site-packages", "dist-packages"}
_OURS = {"ivm_core", "tideview"}


def is_library(module: str | None) -> bool:
    """Whether a module is Python's or installed; one that isn't loaded counts as the user's.

    None is the module of what is built in.
    """
    if module is None or module not in sys.modules:
        return module is None
    return _is_library_file(module, getattr(sys.modules[module], "__file__", None))


def version_of(module: str | None) -> str:
    """The distribution and version that a library's module is of, or that of Python."""
    top = (module or "builtins").partition(".")[0]
    return _distribution(top)


def imported(module: str) -> ModuleType | str:
    """A user's module that code imports when it runs; a library's as name and version.

    One that can't be imported here is its name: nothing else is known of it.
    """
    if module in sys.modules:
        return sys.modules[module]
    top = module.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
        if spec is None:
            return module
        if _is_library_file(top, spec.origin):
            return f"{module} of {version_of(top)}"
        return importlib.import_module(module)
    except Exception:  # what a user's module raises when it is loaded
        return module


@functools.cache
def _is_library_file(module: str, file: str | None) -> bool:
    if module.partition(".")[0] in _OURS:
        return True
    if file is None or not Path(file).is_absolute():
        # built in, frozen, or a folder of a user's modules
        return module.partition(".")[0] in sys.stdlib_module_names
    path = Path(file)
    return not _PACKAGES.isdisjoint(path.parts) or any(
        path.is_relative_to(sysconfig.get_path(each)) for each in ("stdlib", "platstdlib")
    )


@functools.cache
def _distribution(top: str) -> str:
    if top in sys.stdlib_module_names:
        return PYTHON
    try:
        return f"{top} {importlib.metadata.version(top)}"
    except importlib.metadata.PackageNotFoundError:
        found = sorted(set(importlib.metadata.packages_distributions().get(top, [])))
        return ", ".join(f"{each} {importlib.metadata.version(each)}" for each in found) or top
