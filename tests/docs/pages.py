"""Reads and runs the pages of the documentation.

What a page shows in fences is done in the order of the page, in a folder of its own:

    ```sql title="views/totals.sql"     is written to that file (any language with a title)
    ```python                           is executed; one namespace a page
    ```console                          lines behind `$ ` are run; what follows is what they print
    ```text                             right behind one of python: what that has printed

`…` in what is printed stands for anything, on a line of its own for any lines. What is indented instead of fenced is not run.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ivm_core.cli.main import main

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'title="([^"]+)"')
PROMPT = "$ "


@dataclass(frozen=True)
class Block:
    """A fence of a page."""

    language: str
    title: str | None
    text: str
    line: int
    follows: bool
    """Nothing but a blank line is between it and the one before."""


def blocks_of(page: Path) -> list[Block]:
    """The fences of a page."""
    text = page.read_text(encoding="utf-8")
    found, end = [], -1
    for match in FENCE.finditer(text):
        title = TITLE.search(match[2])
        between = text[end : match.start()].strip() if end >= 0 else "-"
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(match[1], title[1] if title else None, match[3], line, not between))
        end = match.end()
    return found


class Reader:
    """Someone who does what a page says."""

    def __init__(self, page: Path, names: dict[str, Any] | None = None) -> None:
        """`names` are known to the page's Python from the start."""
        self.page = page
        self._names: dict[str, Any] = {"__name__": page.stem, **(names or {})}
        self._printed = ""

    def follow(self) -> None:
        """Do all of it; AssertionError where something else is printed than the page says."""
        for block in blocks_of(self.page):
            where = f"{self.page.name}, line {block.line}"
            if block.title is not None:
                file = Path(block.title)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text, encoding="utf-8")
            elif block.language == "python":
                self._printed = self._execute(block, where)
            elif block.language == "text" and block.follows:
                assert_prints(self._printed, block.text, where)
            elif block.language == "console":
                for command, expected in commands_of(block):
                    printed = run(command, where)
                    if expected.strip():
                        assert_prints(printed, expected, f"{where}: {command}")

    def _execute(self, block: Block, where: str) -> str:
        out = io.StringIO()
        code = compile("\n" * block.line + block.text, where, "exec")
        with contextlib.redirect_stdout(out):
            exec(code, self._names)
        return out.getvalue()


def commands_of(block: Block) -> list[tuple[str, str]]:
    """The commands of a console block, each with what it prints."""
    found: list[tuple[str, str]] = []
    for line in block.text.splitlines():
        if line.startswith(PROMPT):
            found.append((line.removeprefix(PROMPT), ""))
        elif found:
            command, printed = found[-1]
            found[-1] = (command, f"{printed}{line}\n")
    return found


def run(command: str, where: str) -> str:
    """Run one command of the tool in this process, where Spark is up; what it printed."""
    words = shlex.split(command, comments=True)
    assert words[0] == "tideview", f"{where}: only tideview's commands are shown as console"
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main(words[1:])
    assert code in (0, 1), f"{where}: {command} ended with {code}"
    return out.getvalue()


def assert_prints(printed: str, expected: str, where: str) -> None:
    """Whether it printed what the page says, `…` standing for anything."""
    lines = _lines(expected)
    pattern = "".join(
        "(?:.*\n)*?" if line == "…" else ".*?".join(map(re.escape, line.split("…"))) + "\n"
        for line in lines
    )
    got = "".join(f"{line}\n" for line in _lines(printed))
    assert re.fullmatch(pattern, got), f"{where}: printed\n{got}\ninstead of\n{expected}"


def _lines(text: str) -> list[str]:
    """The lines; how wide a table's columns are depends on how long things took."""
    return [
        re.sub(r" {2,}", "  ", re.sub(r"-{2,}", "--", line.rstrip()))
        for line in text.strip("\n").splitlines()
    ]
