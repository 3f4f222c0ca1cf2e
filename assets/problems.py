"""What can't be used of a pipeline, as assets that say why: file, line, and the way out.

Nothing wrong in one pipeline keeps the others from loading, and nothing wrong stays unseen: the
asset's description is the error, materializing it fails with the error, and so does its check.
"""

import logging
import re
from collections.abc import Collection, Iterator, Sequence

from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    Definitions,
    Failure,
    MaterializeResult,
    multi_asset,
)

from tideview.resources.pipeline_spec import Problem

CHECK = "can_be_used"
PROBLEM_TAG = "tideview/problem"
LOG = logging.getLogger("tideview")


def problem_definitions(
    group: str, problems: Sequence[Problem], taken: Collection[str] = ()
) -> Definitions:
    """One asset and one check for every problem of a pipeline, and a line each in the log.

    `taken` are the relations of the pipeline that have assets of their own.
    """
    for problem in problems:
        LOG.error("%s %s of %s can't be used: %s", problem.kind, problem.name, group, problem)
    keyed: dict[AssetKey, Problem] = {}
    for problem in problems:
        name = "pipeline_yaml" if problem.kind == "pipeline" else plain(problem.name)
        if name in taken or AssetKey([group, name]) in keyed:
            name = f"{name}_problem_{len(keyed) + 1}"
        keyed[AssetKey([group, name])] = problem
    return Definitions(assets=[_problem_assets(group, keyed)] if keyed else [])


def _problem_assets(pipeline: str, problems: dict[AssetKey, Problem]) -> AssetsDefinition:
    @multi_asset(
        name=f"{pipeline}_problems",
        specs=[_spec(pipeline, key, problem) for key, problem in problems.items()],
        check_specs=[
            AssetCheckSpec(CHECK, asset=key, description="Its definition is one.")
            for key in problems
        ],
        can_subset=True,
    )
    def tell(
        context: AssetExecutionContext,
    ) -> Iterator[MaterializeResult[None] | AssetCheckResult]:
        told = []
        for key, problem in problems.items():
            if any(each.asset_key == key for each in context.selected_asset_check_keys):
                yield AssetCheckResult(
                    passed=False,
                    asset_key=key,
                    check_name=CHECK,
                    severity=AssetCheckSeverity.ERROR,
                    description=str(problem),
                    metadata={"where": problem.where},
                )
            if key in context.selected_asset_keys:
                told.append(str(problem))
        if told:
            raise Failure(description="\n\n".join(told), allow_retries=False)

    return tell


def _spec(pipeline: str, key: AssetKey, problem: Problem) -> AssetSpec:
    return AssetSpec(
        key,
        description=f"**This {problem.kind} can't be used.**\n\n```text\n{problem}\n```",
        group_name=pipeline,
        kinds={"sql"} if problem.kind == "view" else {"delta"},
        tags={PROBLEM_TAG: problem.kind},
        metadata={"where": problem.where},
        skippable=True,
    )


def plain(name: str) -> str:
    """The name of a folder as Dagster takes names."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"
