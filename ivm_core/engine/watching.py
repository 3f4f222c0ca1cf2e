"""Watching a view: its changes tick by tick, for one consumer at its own pace."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Generic, TypeVar

from ivm_core.engine.definitions import DELTA
from ivm_core.engine.reading import Reader, another_view
from ivm_core.model.errors import UserError
from ivm_core.model.names import WEIGHT
from ivm_core.operators.netting import net
from ivm_core.store.leases import Lease

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from ivm_core.engine.core import Engine

B = TypeVar("B")
PAUSE = 0.05


class Watch(Generic[B]):
    """An iterator of (tick, changes), one per tick that changed the view.

    It ends when it has caught up, or has waited as long as it may; asked again later it goes on
    with what has come since. `since` is where a new watch would have to start.
    """

    def __init__(
        self,
        engine: Engine,
        view: str,
        since: int | None,
        wait: float | None,
        batch: Callable[[pa.Table], B],
    ) -> None:
        """Start after tick `since`; OutOfRange for one that isn't there."""
        self._engine = engine
        self._reader = Reader(engine)
        self.view, _ = self._reader.relation(view)
        source = engine.history.sources.get(self.view)
        if source is not None and source.kind == DELTA:
            raise UserError(
                f"{self.view} follows a Delta table, whose changes are not kept here",
                where=f"source {self.view}",
                fix="watch a view, or read the table's own change data feed",
            )
        self.since = self._reader.checked(since, "since")
        if since is not None:
            self._reader.same_view_since(self.view, self.since)
        self._reader.same_columns_since(self.view, self.since)
        self._folder = self._first_folder()
        self._wait = wait
        self._batch = batch
        self._lease = Lease(engine.layout.root, self.since)

    def __iter__(self) -> Watch[B]:
        return self

    def __next__(self) -> tuple[int, B]:
        deadline = None if self._wait is None else time.monotonic() + self._wait
        while True:
            self._engine.refresh()
            self.view, _ = self._reader.relation(self.view)
            if self._first_folder() != self._folder:
                raise another_view(self.view, self.since)
            while self.since < self._engine.history.tick:
                tick = self.since + 1
                table = self._changes(tick)
                self.since = tick
                if not self._engine.history.retention.keeps_all:
                    self._lease.move(tick)
                if table.num_rows:
                    return tick, self._batch(table)
            if deadline is not None and time.monotonic() >= deadline:
                raise StopIteration
            time.sleep(PAUSE)

    def _first_folder(self) -> str:
        """What tells a view from others of its name: no folder is used twice."""
        generations = self._engine.history.generations.get(self.view)
        return generations[0].folder if generations else ""

    def _changes(self, tick: int) -> pa.Table:
        schema = self._reader.same_columns_since(self.view, tick - 1)
        trace, _ = self._reader.trace(self.view, tick)
        names = [*schema.names, WEIGHT]
        rows = trace.read(self._engine.history.committed, tick, tick - 1, names)
        return net(rows, schema)
