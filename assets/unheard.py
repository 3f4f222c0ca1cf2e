"""Ticks that Dagster has not heard of, told with the run that comes after them.

A run that is killed in the middle of a tick leaves it to the next one, which finishes it first, for
all its views; and a flow may be ticked by other programs. What such a tick did to a view is told as
a materialization of its own, so that no rows are missing in a view's plots and nothing is stale
that is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagster import AssetMaterialization

from ivm_core import OutOfRange
from tideview.assets.names import DATA_VERSION_TAG, asset_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from dagster import DagsterInstance

    from ivm_core import IncrementalFlow
    from ivm_core.api.frontier import Frontier
    from tideview.resources.pipeline_spec import Pipeline

MOST = 20
"""Ticks that are told; of those before only what they added up to is seen."""


def unheard_ticks(
    instance: DagsterInstance,
    pipeline: Pipeline,
    flow: IncrementalFlow,
    frontier: Frontier,
    told: Collection[int],
    inputs_of: Callable[[str], dict[str, str]],
) -> Iterator[AssetMaterialization]:
    """Materializations of ticks up to the newest, but for those that are `told` elsewhere.

    `inputs_of` has the tags that say what a view has read as of its newest tick.
    """
    heard = {view.name: _heard(instance, pipeline, view.name) for view in pipeline.views}
    first = max(min(heard.values(), default=0), frontier.tick - MOST) + 1
    for tick in range(first, frontier.tick + 1):
        if tick in told:
            continue
        try:
            summary = flow.summary(tick)
        except OutOfRange:
            continue  # folded into those after it
        for view in pipeline.views:
            found = summary.views.get(view.name)
            if found is None or found.skipped or tick <= heard[view.name]:
                continue
            is_newest = frontier.views[view.name].tick == tick
            yield AssetMaterialization(
                asset_key(pipeline, view.name),
                description=f"tick {tick}, which ended without a run of its own",
                metadata={
                    "tick": tick,
                    "rows_out": found.rows_out,
                    "deletions": found.deletions,
                    "rows": found.rows,
                    "duration_ms": found.duration_ms,
                    "digest": found.state_digest,
                    "delta_digest": found.digest,
                },
                tags={
                    DATA_VERSION_TAG: found.state_digest,
                    **(inputs_of(view.name) if is_newest else {}),
                },
            )


def _heard(instance: DagsterInstance, pipeline: Pipeline, view: str) -> int:
    """The newest tick that a materialization of a view was about; 0 for none."""
    event = instance.get_latest_materialization_event(asset_key(pipeline, view))
    found = event.asset_materialization if event is not None else None
    tick = found.metadata.get("tick") if found is not None else None
    return tick.value if tick is not None and isinstance(tick.value, int) else 0
