"""Evaluating the views of a tick side by side: one begins when those that it reads are done.

A small statement keeps Spark's planner busy, not its executors, so two views at once use two cores
where one would leave the second idle. What a view emits depends on its inputs alone, so the order
in which views finish never shows: results come in the order of the tasks, and of several failures
the first in that order is told.
"""

from __future__ import annotations

import os
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

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
        done, failed = self._outcomes(tasks, after, _left(tasks, after, expected or {}))
        if not failed:
            return {name: done[name] for name in tasks}
        error = next(failed[name] for name in tasks if name in failed)
        try:
            raise error
        finally:
            # this frame is part of the error's traceback: it must not keep the error in turn
            del error, failed

    def _outcomes(
        self,
        tasks: Mapping[str, Callable[[], R]],
        after: Mapping[str, Collection[str]],
        left: Mapping[str, float],
    ) -> tuple[dict[str, R], dict[str, BaseException]]:
        waiting = dict(tasks)
        running: dict[Future[R], str] = {}
        done: dict[str, R] = {}
        failed: dict[str, BaseException] = {}
        try:
            while waiting or running:
                ready = [n for n in waiting if not _missing(after.get(n, ()), tasks, done)]
                ready.sort(key=lambda name: -left[name])
                for name in ready[: self._workers - len(running)]:
                    running[self._threads.submit(waiting.pop(name))] = name
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    name = running.pop(future)
                    error = future.exception()
                    if error is None:
                        done[name] = future.result()
                    else:
                        failed[name] = error
                        waiting.clear()
        finally:
            wait(running)
        return done, failed

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


def _left(
    tasks: Collection[str], after: Mapping[str, Collection[str]], expected: Mapping[str, float]
) -> dict[str, float]:
    """What is still to be done from the beginning of each task on, one after the other."""
    behind: dict[str, list[str]] = {name: [] for name in tasks}
    for name in tasks:
        for below in after.get(name, ()):
            if below in behind:
                behind[below].append(name)
    left: dict[str, float] = {}
    for name in reversed(list(tasks)):
        least = max((left.get(each, 0.0) for each in behind[name]), default=0.0)
        left[name] = expected.get(name, 0.0) + least
    return left


def _missing(names: Collection[str], tasks: Collection[str], done: Collection[str]) -> bool:
    return any(name in tasks and name not in done for name in names)
