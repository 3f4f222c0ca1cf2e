"""What a check of a view is given, and how its verdict is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dagster import AssetCheckResult, AssetCheckSeverity

from ivm_core import NotAFlow
from ivm_core.api.frontier import Frontier, read_frontier
from tideview.assets.names import asset_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dagster import DagsterInstance

    from ivm_core import IncrementalFlow
    from ivm_core.engine.replaying import Replay
    from tideview.resources.flow_store import FlowStore
    from tideview.resources.pipeline_spec import CheckPolicy, Pipeline


@dataclass
class Asked:
    """One run's checks of a pipeline: the flow to read, and how much of it."""

    pipeline: Pipeline
    flow: IncrementalFlow
    frontier: Frontier
    instance: DagsterInstance
    is_complete: bool
    """Whether all rows are to be compared, whatever their number."""
    repeated: tuple[str, ...] = ()
    """The views whose newest ticks the run repeats."""
    is_repeated: bool = False
    replay: Replay | None = None
    """What came of repeating them together, once that is tried."""

    def policy(self, view: str) -> CheckPolicy:
        """How the view is to be checked."""
        spec = next(each for each in self.pipeline.views if each.name == view)
        return self.pipeline.checks_of(spec)

    def rows_below(self, view: str) -> int:
        """Rows of the view, or of the largest source that it reads, if that has more."""
        sources = self.pipeline.sources_of(view)
        rows = [self.frontier.source_rows.get(source, 0) for source in sources]
        return max([self.frontier.views[view].rows, *rows])


def frontier_of(pipeline: Pipeline, flows: FlowStore) -> Frontier:
    """How far the pipeline's views have come; nowhere, where there is no flow yet."""
    try:
        return read_frontier(flows.flow_path(pipeline))
    except NotAFlow:
        return Frontier(0, {})


def verdict(
    pipeline: Pipeline,
    view: str,
    check: str,
    *,
    passed: bool,
    told: str,
    metadata: Mapping[str, Any] | None = None,
) -> AssetCheckResult:
    """A check that was made."""
    return AssetCheckResult(
        passed=passed,
        asset_key=asset_key(pipeline, view),
        check_name=check,
        severity=AssetCheckSeverity.ERROR,
        description=told,
        metadata=metadata,
    )


def not_checked(pipeline: Pipeline, view: str, check: str, why: str) -> AssetCheckResult:
    """A check that could not be made: a warning, not an error of the view."""
    return AssetCheckResult(
        passed=False,
        asset_key=asset_key(pipeline, view),
        check_name=check,
        severity=AssetCheckSeverity.WARN,
        description=why,
    )


def not_ticked(pipeline: Pipeline, view: str, check: str) -> AssetCheckResult:
    """A check of a view that no tick has seen."""
    why = "the view has no rows yet to compare: materialize it first"
    return not_checked(pipeline, view, check, why)
