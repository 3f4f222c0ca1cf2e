"""Where things are: the store's folder, and locations with variables in them.

`${store}` is the folder of the store that a run is given, `${LAKE}` a variable of the environment,
and `${LAKE:-/data/lake}` says what holds where that isn't set.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ivm_core.model.errors import UserError

STORE_VARIABLE = "TIDEVIEW_STORE"
_STORE = "${store}"
_VARIABLE = re.compile(
    r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(:-(?P<default>([^{}]|\$\{store\})*))?\}"
)


def default_store() -> Path:
    """`TIDEVIEW_STORE`, else `.tideview/store` in the checkout or in the working directory."""
    chosen = os.environ.get(STORE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    checkout = Path(__file__).resolve().parents[2]
    root = checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()
    return root / ".tideview" / "store"


def located(text: str, folder: Path | None) -> str:
    """The location as seen from a folder, variables left as they are."""
    is_relative = not (text.startswith(("/", "~", "$")) or "://" in text or text[:5] == "file:")
    return os.path.abspath(folder / text) if folder is not None and is_relative else text


def names_store(text: str) -> bool:
    """Whether a location depends on which store a run is given."""
    return _STORE in text


def expanded(text: str, store: Path | None = None, where: str = "") -> str:
    """The location with its variables filled in; `UserError` for one that isn't set."""

    def value(found: re.Match[str]) -> str:
        name = found["name"]
        if name == "store":
            return str(store or default_store())
        given = os.environ.get(name)
        if given is None and found["default"] is not None:
            return found["default"].replace(_STORE, str(store or default_store()))
        if given is None:
            raise UserError(
                f"the variable {name} is not set",
                where=where or text,
                fix=f"set it, or say what holds without: ${{{name}:-…}}",
            )
        return given

    found = _VARIABLE.sub(value, text)
    return str(Path(found).expanduser()) if found.startswith("~") else found
