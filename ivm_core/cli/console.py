"""What the tool says and where: answers to stdout, everything else to stderr.

With `--json` stdout has JSON and nothing else: one document, or for `watch` one a line.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATIENCE = 1.0
"""Seconds after which someone who waits is told for what."""
EVERY = 5.0
"""Seconds between two lines about it, where the line before can't be overwritten."""


class ExitCode(IntEnum):
    """What the tool ends with."""

    OK = 0
    NO = 1
    USAGE = 2
    USER_ERROR = 3
    REFUSED = 4
    INTERNAL = 5


class Console:
    """One run's way to speak."""

    def __init__(self, *, as_json: bool, quiet: bool = False) -> None:
        """`quiet` leaves out progress and notes."""
        self.as_json = as_json
        self._quiet = quiet
        self._out = sys.stdout
        self._err = sys.stderr

    def answer(self, text: str, content: Any) -> None:
        """The answer: as text for people, or as JSON."""
        self.line(json.dumps(content, indent=2, ensure_ascii=False) if self.as_json else text)

    def record(self, text: str, content: Any) -> None:
        """One of many answers, at once: text, or one line of JSON."""
        self.line(json.dumps(content, ensure_ascii=False) if self.as_json else text)

    def line(self, text: str) -> None:
        """A line of the answer."""
        self._out.write(f"{text}\n")
        self._out.flush()

    def note(self, text: str) -> None:
        """Something beside the answer."""
        if not self._quiet:
            self._err.write(f"tideview: {text}\n")
            self._err.flush()

    def complain(self, text: str, content: Any) -> None:
        """An error: as text to stderr, and with `--json` as JSON to stdout."""
        self._err.write(f"tideview: {text}\n")
        self._err.flush()
        if self.as_json:
            self.line(json.dumps({"error": content}, indent=2, ensure_ascii=False))

    @contextmanager
    def progress(self, what: str) -> Iterator[Progress]:
        """Tell on stderr what is being done, if it takes more than a second."""
        shown = Progress(what, self._err)
        if not self._quiet:
            shown.start()
        try:
            yield shown
        finally:
            shown.stop()


class Progress:
    """A line about what is being done, from the second second on."""

    def __init__(self, what: str, stream: Any) -> None:
        """Say nothing yet."""
        self._what = what
        self._stream = stream
        self._is_terminal = bool(stream.isatty())
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._has_line = False

    def start(self) -> None:
        """Begin to count."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def step(self, what: str) -> None:
        """Something else is being done now."""
        self._what = what

    def stop(self) -> None:
        """Say no more."""
        self._done.set()
        if self._thread is not None:
            self._thread.join()
        if self._has_line and self._is_terminal:
            self._write("\r\033[K")

    def _run(self) -> None:
        started = time.monotonic()
        wait, told = PATIENCE, ""
        last = started
        while not self._done.wait(wait):
            now = time.monotonic()
            if self._is_terminal:
                self._write(f"\r\033[Ktideview: {self._what} … {now - started:.0f} s")
            elif self._what != told or now - last >= EVERY:
                self._write(f"tideview: {self._what} … {now - started:.0f} s\n")
                told, last = self._what, now
            self._has_line = True
            wait = PATIENCE

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under their names, aligned."""
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    lines = [names, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
