"""Asking many things at once and waiting so long and no longer.

A sensor runs in a process that others need too: a table on a store that doesn't answer must not
hold it up. Who has not answered is not asked again before an answer has come.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")


class Patience(Generic[T]):
    """Asks in threads of their own; remembers who still owes an answer."""

    def __init__(self, seconds: float) -> None:
        """Wait no longer than this for all answers together."""
        self._seconds = seconds
        self._owing: dict[str, threading.Thread] = {}

    def ask(self, questions: Mapping[str, Callable[[], T]]) -> dict[str, T | Exception]:
        """What each answers or raises; `TimeoutError` for those that don't in time."""
        answers: dict[str, T | Exception] = {}
        asked: dict[str, threading.Thread] = {}

        def put(name: str, question: Callable[[], T]) -> None:
            try:
                answers[name] = question()
            except Exception as error:
                answers[name] = error

        deadline = time.monotonic() + self._seconds
        for name, question in questions.items():
            earlier = self._owing.get(name)
            if earlier is None or not earlier.is_alive():
                asked[name] = threading.Thread(target=put, args=(name, question), daemon=True)
                asked[name].start()
        for name, thread in asked.items():
            thread.join(max(deadline - time.monotonic(), 0))
            if thread.is_alive():
                self._owing[name] = thread
        late = TimeoutError(f"no answer within {self._seconds:g} s")
        given = dict(answers)  # whoever answers from here on is late
        return {name: given.get(name, late) for name in questions}
