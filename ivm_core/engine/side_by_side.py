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
        self, tasks: Mapping[str, Callable[[], R]], after: Mapping[str, Collection[str]]
    ) -> dict[str, R]:
        """Run every task, each behind those that `after` names for it; results by name.

        Where one fails nothing more is begun, and its error is raised when no other runs.
        """
        if len(tasks) == 1 or self._workers == 1:
            return {name: task() for name, task in tasks.items()}
        done, failed = self._done_and_failed(tasks, after)
        if not failed:
            return {name: done[name] for name in tasks}
        error = next(failed[name] for name in tasks if name in failed)
        failed.clear()
        try:
            raise error
        finally:
            # an error that is held here would keep the flow, and its lock, beyond the flow's end
            del error

    def _done_and_failed(
        self, tasks: Mapping[str, Callable[[], R]], after: Mapping[str, Collection[str]]
    ) -> tuple[dict[str, R], dict[str, BaseException]]:
        """What tasks gave and raised, when none runs any more."""
        waiting = dict(tasks)
        running: dict[Future[R], str] = {}
        done: dict[str, R] = {}
        failed: dict[str, BaseException] = {}
        try:
            while waiting or running:
                ready = [n for n in waiting if not _missing(after.get(n, ()), tasks, done)]
                for name in ready:
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


def _missing(names: Collection[str], tasks: Collection[str], done: Collection[str]) -> bool:
    return any(name in tasks and name not in done for name in names)
