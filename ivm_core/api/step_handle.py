"""A step that runs in another thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ivm_core.api.fact_rows import StepDelta


class StepHandle:
    """What `Session.step_async` returns; any thread may ask it."""

    def __init__(self, future: Future[StepDelta]) -> None:
        """Use `Session.step_async`."""
        self._future = future

    def done(self) -> bool:
        """Whether the step is over, well or not."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> StepDelta:
        """What the step changed, or its error; `TimeoutError` if it takes longer than that."""
        return self._future.result(timeout)
