"""One check a view: that it equals its query, run from scratch at the view's frontier."""

from collections.abc import Iterator

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    MetadataValue,
    multi_asset_check,
)

from ivm_core import NotAFlow
from ivm_core.api.frontier import read_frontier
from ivm_core.engine.checking import Comparison
from tideview.assets.certificate_metadata import rows_table
from tideview.assets.failures import told_in_our_words
from tideview.assets.names import REPLAY_EQUALITY, asset_key
from tideview.resources.flow_store import FlowStore
from tideview.resources.local_spark import LocalSpark
from tideview.resources.pipeline_folder import Pipeline

DESCRIPTION = "The view equals its query, run from scratch by Spark on the sources it has seen."


def replay_equality_checks(pipeline: Pipeline) -> AssetChecksDefinition:
    """The checks of all views, as one step that runs those selected."""
    specs = [
        AssetCheckSpec(
            REPLAY_EQUALITY,
            asset=asset_key(pipeline, view.name),
            description=DESCRIPTION,
            blocking=False,
        )
        for view in pipeline.views
    ]

    @multi_asset_check(name=f"{pipeline.name}_replay_equality", specs=specs, can_subset=True)
    def replay_equality(
        context: AssetCheckExecutionContext, flows: FlowStore, spark: LocalSpark
    ) -> Iterator[AssetCheckResult]:
        selected = {key.asset_key for key in context.selected_asset_check_keys}
        names = [v.name for v in pipeline.views if asset_key(pipeline, v.name) in selected]
        ticked = _ticked(pipeline, flows)
        for name in names:
            if name not in ticked:
                yield _not_ticked(pipeline, name)
        ready = [name for name in names if name in ticked]
        if not ready:
            return
        with told_in_our_words(), flows.read(pipeline, spark.session(pipeline.spark)) as flow:
            for name in ready:
                yield _result(pipeline, flow.check(name))

    return replay_equality


def _ticked(pipeline: Pipeline, flows: FlowStore) -> set[str]:
    try:
        frontier = read_frontier(flows.flow_path(pipeline))
    except NotAFlow:
        return set()
    return {name for name, view in frontier.views.items() if view.tick}


def _result(pipeline: Pipeline, found: Comparison) -> AssetCheckResult:
    differing = f"{found.missing} rows are missing, {found.extra} are too many"
    return AssetCheckResult(
        passed=found.equal,
        asset_key=asset_key(pipeline, found.view),
        check_name=REPLAY_EQUALITY,
        severity=AssetCheckSeverity.ERROR,
        description=f"equal at tick {found.tick}" if found.equal else differing,
        metadata={
            "tick": found.tick,
            "rows": found.rows,
            "missing": found.missing,
            "extra": found.extra,
            "differing_rows": MetadataValue.md(rows_table(found.sample) or "none"),
        },
    )


def _not_ticked(pipeline: Pipeline, view: str) -> AssetCheckResult:
    return AssetCheckResult(
        passed=False,
        asset_key=asset_key(pipeline, view),
        check_name=REPLAY_EQUALITY,
        severity=AssetCheckSeverity.WARN,
        description="the view has no rows yet to compare: materialize it first",
    )
