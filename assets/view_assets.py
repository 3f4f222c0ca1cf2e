"""A pipeline's views as assets; materializing any of them is one tick."""

from collections.abc import Iterator

from dagster import (
    AssetExecutionContext,
    AssetMaterialization,
    AssetObservation,
    AssetsDefinition,
    DataVersion,
    MaterializeResult,
    multi_asset,
)

from ivm_core.api.frontier import read_frontier
from tideview.assets.asset_specs import view_spec
from tideview.assets.certificate_metadata import (
    changed_rows,
    rollout_metadata,
    source_metadata,
    view_metadata,
)
from tideview.assets.failures import told_in_our_words
from tideview.assets.names import (
    DATA_VERSION_TAG,
    INPUT_VERSION_TAG,
    asset_key,
    pool,
    source_data_version,
)
from tideview.assets.rollout import opened_for_a_tick
from tideview.resources.flow_store import FlowStore
from tideview.resources.local_spark import LocalSpark
from tideview.resources.pipeline_spec import Pipeline


def tick_assets(pipeline: Pipeline) -> AssetsDefinition:
    """The views, as assets that one step brings up to date together.

    A run selects any of them: it makes one tick for the selection, which also advances the views
    that the selected ones read, and those of their circles; the others keep their frontier. Views
    without changes are reported with zero rows out and the data version they had. A view whose SQL
    has changed is altered first.
    """

    @multi_asset(
        name=f"{pipeline.name}_tick",
        specs=[view_spec(pipeline, view) for view in pipeline.views],
        can_subset=True,
        pool=pool(pipeline),
    )
    def tick(
        context: AssetExecutionContext, flows: FlowStore, spark: LocalSpark
    ) -> Iterator[MaterializeResult[None]]:
        selected = [
            view.name
            for view in pipeline.views
            if asset_key(pipeline, view.name) in context.selected_asset_keys
        ]
        with (
            told_in_our_words(),
            opened_for_a_tick(flows, pipeline, spark.session(pipeline.spark), selected) as (
                flow,
                rollout,
            ),
        ):
            summary = flow.tick(views=selected)
            frontier = read_frontier(flows.flow_path(pipeline))
            metadata = {}
            explained = {name: flow.explain(name) for name in summary.views}
            for name in summary.views:
                changed = changed_rows(flow, name, summary, explained[name].key)
                seen = frontier.views[name]
                metadata[name] = view_metadata(pipeline, name, summary, seen, explained, changed)
        for name, report in rollout.altered.items():
            context.log.info(str(report))
            if name in metadata:
                metadata[name] |= rollout_metadata(report)
            for reader, rows in report.downstream.items():
                if reader not in summary.views:
                    swapped = {"tick": report.tick or 0, "rows_out": rows}
                    tags = {DATA_VERSION_TAG: frontier.views[reader].digest}
                    key = asset_key(pipeline, reader)
                    context.log_event(AssetMaterialization(key, metadata=swapped, tags=tags))
        context.log.info(str(summary))
        for note in (*rollout.notes, *summary.notes):
            context.log.warning(note)

        versions = frontier.views[selected[0]].versions
        ticked = [view for view in pipeline.views if view.name in summary.views]
        read_by_them = {name for view in ticked for name in view.reads}
        for name, source in summary.sources.items():
            if name not in read_by_them:
                continue  # it stays where it was, and something newer may have been seen of it
            context.log_event(
                AssetObservation(
                    asset_key(pipeline, name),
                    metadata=source_metadata(source),
                    tags={DATA_VERSION_TAG: source_data_version(versions[name])},
                )
            )
        for view in ticked:
            key = asset_key(pipeline, view.name)
            digest = summary.views[view.name].state_digest
            # what the tick has read, which may be newer than what was known when the run began
            read = {
                f"{INPUT_VERSION_TAG}{asset_key(pipeline, name).to_user_string()}": (
                    source_data_version(versions[name])
                    if name in versions
                    else frontier.views[name].digest
                )
                for name in view.inputs
            }
            if view.name in selected:
                yield MaterializeResult(
                    asset_key=key,
                    metadata=metadata[view.name],
                    data_version=DataVersion(digest),
                    tags=read,
                )
            else:
                tags = {DATA_VERSION_TAG: digest}
                context.log_event(
                    AssetMaterialization(key, metadata=metadata[view.name], tags=tags)
                )

    return tick
