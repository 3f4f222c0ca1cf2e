"""Evaluating the views of a tick side by side: one begins when those that it reads are done.

A small statement keeps Spark's planner busy, not its executors, so two views at once use two cores
where one would leave the second idle. What a view emits depends on its inputs alone, so the order
in which views finish never shows: results come in the order of the tasks, and of several failures
the first in that order is told.
"""

from __future__ import annotations

import heapq
import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

R = TypeVar("R")
MOST_WORKERS = 4


class SideBySide:
    """A few threads that live as long as their flow is open."""

    def __init__(self, workers: int | None = None) -> None:
        """As many threads as there are cores, up to four; they start when first needed."""
        self._workers = workers or min(MOST_WORKERS, os.cpu_count() or 1)
        self._pool: ThreadPoolExecutor | None = None

    def run(
        self,
        tasks: Mapping[str, Callable[[], R]],
        after: Mapping[str, Collection[str]],
        expected: Mapping[str, float] | None = None,
    ) -> dict[str, R]:
        """Run every task, each behind those that `after` names for it; results by name.

        Of those that can begin the one goes first that most is left to do behind, by what each is
        `expected` to take: a long task that begins last would keep one core busy at the end. Where
        one fails nothing more is begun, and its error is raised when no other runs.
        """
        if len(tasks) == 1 or self._workers == 1:
            return {name: task() for name, task in tasks.items()}
        done, failed = self._outcomes(_Board(tasks, after, expected or {}), len(tasks))
        if not failed:
            return {name: done[name] for name in tasks}
        error = next(failed[name] for name in tasks if name in failed)
        try:
            raise error
        finally:
            # this frame is part of the error's traceback: it must not keep the error in turn
            del error, failed

    def _outcomes(
        self, board: _Board[R], most: int
    ) -> tuple[dict[str, R], dict[str, BaseException]]:
        workers = [self._threads.submit(board.work) for _ in range(min(self._workers, most))]
        try:
            wait(workers)
        finally:
            board.stop()
            wait(workers)
        # a failure has the board in its traceback, which must not have the failure in turn
        failed, board.failed = board.failed, {}
        return board.done, failed

    @property
    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="tideview-view")
        return self._pool

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


class _Board(Generic[R]):
    """What is to be done, for threads that each take the next task when they are done with one."""

    def __init__(
        self,
        tasks: Mapping[str, Callable[[], R]],
        after: Mapping[str, Collection[str]],
        expected: Mapping[str, float],
    ) -> None:
        self.done: dict[str, R] = {}
        self.failed: dict[str, BaseException] = {}
        self._tasks = tasks
        self._missing = {
            name: {each for each in after.get(name, ()) if each in tasks} for name in tasks
        }
        self._behind: dict[str, list[str]] = {name: [] for name in tasks}
        for name, missing in self._missing.items():
            for each in missing:
                self._behind[each].append(name)
        left = self._left(expected)
        self._rank = {name: (-left[name], place) for place, name in enumerate(tasks)}
        self._ready = [(self._rank[name], name) for name in tasks if not self._missing[name]]
        heapq.heapify(self._ready)
        self._running = 0
        self._changed = threading.Condition()

    def _left(self, expected: Mapping[str, float]) -> dict[str, float]:
        """What is still to be done from the beginning of each task on, one after the other."""
        left: dict[str, float] = {}
        for name in reversed(list(self._tasks)):
            longest = max((left.get(each, 0.0) for each in self._behind[name]), default=0.0)
            left[name] = expected.get(name, 0.0) + longest
        return left

    def work(self) -> None:
        """Do tasks until there is none left to begin."""
        while (name := self._next()) is not None:
            try:
                result = self._tasks[name]()
            except BaseException as error:
                self._fail(name, error)
            else:
                self._finish(name, result)

    def stop(self) -> None:
        """Begin nothing more."""
        with self._changed:
            self._ready.clear()
            self._behind.clear()
            self._changed.notify_all()

    def _next(self) -> str | None:
        with self._changed:
            self._changed.wait_for(lambda: self._ready or not self._running)
            if not self._ready:
                return None
            self._running += 1
            return heapq.heappop(self._ready)[1]

    def _finish(self, name: str, result: R) -> None:
        with self._changed:
            self._running -= 1
            self.done[name] = result
            for each in self._behind.get(name, ()):
                self._missing[each].discard(name)
                if not self._missing[each]:
                    heapq.heappush(self._ready, (self._rank[each], each))
            self._changed.notify_all()

    def _fail(self, name: str, error: BaseException) -> None:
        with self._changed:
            self._running -= 1
            self.failed[name] = error
        self.stop()
