"""Where the time of a piece of work goes: stacks of all threads, looked at again and again."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from bench.background import Background

if TYPE_CHECKING:
    from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
OURS = str(ROOT / "ivm_core")
EVERY_S = 0.002
WAITING = {"wait", "_wait_for_tstate_lock", "acquire", "select", "poll", "get", "result"}
"""Functions of threads that have nothing to do."""


class StackSampler(Background):
    """Counts, while it is open, which of our functions were at work and what for.

    A place is counted with what it waits for: `Spark` (a call into the JVM is under way), another
    library by its name, or nothing but itself.
    """

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self.places: Counter[tuple[str, str]] = Counter()
        self.looks = 0

    def _watch(self) -> None:
        mine = threading.get_ident()
        while not self._done.wait(EVERY_S):
            self.looks += 1
            for thread, frame in sys._current_frames().items():  # noqa: SLF001
                if thread != mine:
                    place = _place(frame)
                    if place is not None:
                        self.places[place] += 1

    def shares(self) -> list[tuple[float, str, str]]:
        """Part of the looks, our place and what it was at; most first."""
        return [
            (count / max(1, self.looks), place, what)
            for (place, what), count in self.places.most_common()
        ]


def _place(frame: FrameType) -> tuple[str, str] | None:
    """Our innermost function on a stack, and the library below it; None for an idle thread."""
    top = frame.f_code
    below = ""
    at: FrameType | None = frame
    while at is not None:
        file = at.f_code.co_filename
        if file.startswith(OURS):
            idle = below == "threading" and top.co_name in WAITING
            name = f"{Path(file).relative_to(ROOT)}:{at.f_code.co_name}"
            return None if idle else (name, below or "itself")
        below = _library(file) or below
        at = at.f_back
    return None


def _library(file: str) -> str:
    path = Path(file)
    if "site-packages" in path.parts:
        name = path.parts[path.parts.index("site-packages") + 1]
        return "Spark" if name in ("py4j", "pyspark") else name.removesuffix(".py")
    return "Spark" if "py4j" in file else path.stem
