"""One tick, timed, with what it took beside: the same for all programs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from bench.machine import jobs_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.measure import Samples
    from ivm_core import IncrementalFlow, StepSummary


def timed_tick(
    samples: Samples,
    flow: IncrementalFlow,
    *given: Any,
    keep: bool = True,
    **options: Any,
) -> StepSummary:
    """`flow.tick(*given, **options)`; `keep=False` is a warm-up."""
    before = jobs_run(flow.spark)
    summary = samples.time(partial(flow.tick, *given, **options), keep=keep)
    if keep:
        samples.note(
            statements=summary.statements,
            jobs=jobs_run(flow.spark) - before,
            commits=summary.commits,
            rows_in=summary.rows_in,
            rows_out=summary.rows_out,
        )
    return summary


def ways_taken(summary: StepSummary) -> dict[str, str]:
    """How the nodes of every view were evaluated that was not skipped."""
    found: dict[str, str] = {}
    for each in _evaluated(summary).values():
        found.update(each.ways)
    return found


def _evaluated(summary: StepSummary) -> Mapping[str, Any]:
    every = {**summary.views, **summary.shared}
    return {name: each for name, each in every.items() if not each.skipped}
