"""Views as files: one SELECT in each, its name the file's, its comment at the top.

    -- What every customer has spent.
    -- require: incremental
    SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer

The `--` lines at the top say what the view is. Those that begin with the name of an option and a
colon are the view's options; `require` is the only one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.api.outline import ViewText
from ivm_core.engine.requiring import checked_requirement
from ivm_core.model.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_REQUIRE = re.compile(r"require\s*:\s*(.*)", re.IGNORECASE)


@dataclass(frozen=True)
class ViewHeader:
    """What the comment at the top of a view's text says."""

    description: str = ""
    require: str = ""


def read_header(sql: str, where: str = "") -> ViewHeader:
    """The leading `--` lines; an option with a value that there isn't is a `UserError`."""
    words: list[str] = []
    require = ""
    for number, line in enumerate(sql.strip().splitlines(), 1):
        if not line.startswith("--"):
            break
        text = line.lstrip("-").strip()
        option = _REQUIRE.fullmatch(text)
        if option is None:
            words.append(text)
        else:
            place = f"{where}, line {number}" if where else f"line {number}"
            require = checked_requirement(option[1].strip() or "nothing", place)
    return ViewHeader(" ".join(words), require)


def read_view_file(file: Path) -> ViewText:
    """One view; a file that is empty or no text is a `UserError` that names it."""
    try:
        sql = file.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError as error:
        raise UserError(
            f"the file is not UTF-8 text: byte {error.start} is none", where=str(file)
        ) from error
    except OSError as error:
        raise UserError(f"the file can't be read: {error.strerror}", where=str(file)) from error
    if not sql:
        raise UserError("the file is empty", where=str(file), fix="write one SELECT")
    return ViewText(file.stem, sql, str(file), read_header(sql, str(file)).require)


def view_files(folder: Path) -> Iterator[Path]:
    """The `.sql` files of a folder, in order of their names."""
    yield from sorted(folder.glob("*.sql"))
