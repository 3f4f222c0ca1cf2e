"""Views as files: one SELECT in each, its name the file's, what is said of it at the top.

    -- What every customer has spent.
    -- require: incremental
    SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer

The `--` lines at the top say what the view is; `require:` is the one option that they know. For
more there is front matter, YAML in a comment that every reader of SQL skips:

    /*---
    description: What every customer has spent.
    owners: [team:sales]
    require: incremental
    ---*/
    SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.api.declaration import rules_of
from ivm_core.api.document_rules import check_document
from ivm_core.api.documents import Document, from_yaml
from ivm_core.api.outline import ViewText
from ivm_core.engine.requiring import checked_requirement
from ivm_core.model.errors import UserError
from ivm_core.model.schema import parse_schema

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OPENS, CLOSES = "/*---", "---*/"
_REQUIRE = re.compile(r"require\s*:\s*(.*)", re.IGNORECASE)


@dataclass(frozen=True)
class ViewHeader:
    """What the comment at the top of a view's text says."""

    description: str = ""
    require: str = ""


@dataclass(frozen=True)
class ViewFile:
    """A view's file: its text without the front matter, and the front matter."""

    text: ViewText
    description: str
    front: Document
    """Checked; its content is a dict, empty where the file has none."""


def read_header(sql: str, where: str = "") -> ViewHeader:
    """The leading `--` lines; an option with a value that there isn't is a `UserError`."""
    words: list[str] = []
    require = ""
    blank = len(sql) - len(sql.lstrip())
    first = sql[:blank].count("\n") + 1
    for number, line in enumerate(sql.strip().splitlines(), first):
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


def read_text(file: Path) -> str:
    """A file without its byte order mark; `UserError` for one that can't be read, or is no text."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"the file is not UTF-8 text: byte {error.start} is none", where=str(file)
        ) from error
    except OSError as error:
        raise UserError(f"the file can't be read: {error.strerror}", where=str(file)) from error


def read_view(file: Path) -> ViewFile:
    """One view; a file that is empty, no text, or wrong at the top is a `UserError`."""
    front, sql = apart(read_text(file), str(file), "view")
    if not sql.strip():
        raise UserError("the file is empty", where=str(file), fix="write one SELECT")
    header = read_header(sql, str(file))
    require = front.content.get("require", header.require)
    description = front.content.get("description", header.description).strip()
    columns = front.content.get("columns", "").strip()
    if columns:
        parse_schema(columns, front.where(("columns",)))
    return ViewFile(ViewText(file.stem, sql, str(file), require, columns), description, front)


def read_view_file(file: Path) -> ViewText:
    """The text alone; errors as `read_view`."""
    return read_view(file).text


def view_files(folder: Path) -> Iterator[Path]:
    """The `.sql` files of a folder, in order of their names."""
    yield from sorted(folder.glob("*.sql"))


def program_files(folder: Path) -> Iterator[Path]:
    """The `.dl` files of a folder, in order of their names."""
    yield from sorted(folder.glob("*.dl"))


def passed_over(folder: Path) -> Iterator[Path]:
    """Files below a folder that look like views and are none: deeper, or with another ending.

    What is hidden, as what editors leave behind, is nobody's view.
    """
    taken = {*view_files(folder), *program_files(folder)}
    for file in sorted(folder.rglob("*")):
        is_hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        looks_like_one = file.suffix.lower() in (".sql", ".dl") and file.is_file()
        if looks_like_one and not is_hidden and file not in taken:
            yield file


def apart(content: str, file: str, rules: str) -> tuple[Document, str]:
    """Front matter held to its rules, and what follows on the lines that it has in the file."""
    if not content.lstrip().startswith(OPENS):
        return Document(file, {}), content.rstrip()
    start = content.index(OPENS) + len(OPENS)
    end = content.find(CLOSES, start)
    line = content[:start].count("\n") + 1
    if end < 0:
        raise UserError(
            f"the front matter has no end: {CLOSES} is missing",
            where=f"{file}, line {line}",
            fix=f"put {CLOSES} on a line of its own, above the text",
        )
    front = from_yaml(content[start:end], file, line)
    if front.content is None:
        front = Document(file, {}, front.lines)
    check_document(front, rules_of(rules))
    above = content[: end + len(CLOSES)].count("\n")
    return front, "\n" * above + content[end + len(CLOSES) :].rstrip()
