"""A flow's metrics from its log alone: no Spark, no JVM, no lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ivm_core.engine.history import History
from ivm_core.engine.layout import Layout
from ivm_core.engine.metrics import metric_rows, open_metrics_text
from ivm_core.engine.opening import FORMAT
from ivm_core.store.location import Location
from ivm_core.store.ticklog import TickLog

if TYPE_CHECKING:
    from os import PathLike


class FlowMetrics:
    """What the log said when it was read."""

    def __init__(self, flow: str, log: TickLog) -> None:
        """Fold the log."""
        self.flow = flow
        self._entries = log.entries
        self._history = History()
        self._history.catch_up(log.entries)

    @property
    def tick(self) -> int:
        """The newest committed tick."""
        return self._history.tick

    def rows(self, since: int = 0) -> list[dict[str, Any]]:
        """A row for each tick after `since`, and in it for each source, shared node and view."""
        return metric_rows(self._history, self._entries, since)

    def open_metrics(self) -> str:
        """All counters and durations as an OpenMetrics text."""
        return open_metrics_text(self._history, self._entries)


def read_metrics(path: str | PathLike[str]) -> FlowMetrics:
    """The metrics of the flow at a path or URI; `NotAFlow` where there is none."""
    root = Location(path)
    return FlowMetrics(root.uri, TickLog.open(Layout(root).log, FORMAT))
