"""A pipeline's sources and views as assets; materializing any of the views is one tick."""

from collections.abc import Iterator

from dagster import (
    AssetExecutionContext,
    AssetMaterialization,
    AssetObservation,
    AssetsDefinition,
    AssetSpec,
    DataVersion,
    MaterializeResult,
    multi_asset,
)

from ivm_core.api.frontier import read_frontier
from ivm_core.api.view_file import read_header
from tideview.assets.certificate_metadata import (
    column_schema,
    source_metadata,
    sql_blocks,
    view_metadata,
)
from tideview.assets.failures import told_in_our_words
from tideview.assets.names import DATA_VERSION_TAG, asset_key, pool
from tideview.resources.flow_store import FlowStore
from tideview.resources.local_spark import LocalSpark
from tideview.resources.pipeline_spec import Pipeline, SourceSpec, ViewSpec

VIEW_KINDS = {"spark", "delta", "sql"}
SOURCE_KINDS = {"delta"}


def source_specs(pipeline: Pipeline) -> list[AssetSpec]:
    """The sources: assets that others write and the flow follows."""
    return [_source_spec(pipeline, source) for source in pipeline.sources]


def tick_assets(pipeline: Pipeline) -> AssetsDefinition:
    """The views, as assets that one step brings up to date together.

    A run selects any of them: it makes one tick for the selection, which also advances the views
    that the selected ones read; the others keep their frontier. Views without changes are reported
    with zero rows out and the data version they had.
    """

    @multi_asset(
        name=f"{pipeline.name}_tick",
        specs=[_view_spec(pipeline, view) for view in pipeline.views],
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
        with told_in_our_words(), flows.open(pipeline, spark.session(pipeline.spark)) as flow:
            summary = flow.tick(views=selected)
            explained = {name: flow.explain(name) for name in summary.views}
        frontier = read_frontier(flows.flow_path(pipeline))
        context.log.info(
            f"tick {summary.tick}: {summary.rows_in} rows in, {summary.rows_out} rows out, "
            f"{len(summary.views)} views in {summary.duration_ms:,.0f} ms"
        )
        for note in summary.notes:
            context.log.warning(note)
        for name, source in summary.sources.items():
            seen = frontier.views[selected[0]].versions[name]
            context.log_event(
                AssetObservation(
                    asset_key(pipeline, name),
                    metadata=source_metadata(source),
                    tags={DATA_VERSION_TAG: f"{seen.table_id}@{seen.version}"},
                )
            )
        for name in (view.name for view in pipeline.views if view.name in summary.views):
            key = asset_key(pipeline, name)
            metadata = view_metadata(name, summary, frontier.views[name], explained[name])
            digest = summary.views[name].state_digest
            if name in selected:
                yield MaterializeResult(key, metadata=metadata, data_version=DataVersion(digest))
            else:
                tags = {DATA_VERSION_TAG: digest}
                context.log_event(AssetMaterialization(key, metadata=metadata, tags=tags))

    return tick


def _view_spec(pipeline: Pipeline, view: ViewSpec) -> AssetSpec:
    return AssetSpec(
        asset_key(pipeline, view.name),
        deps=[asset_key(pipeline, read) for read in view.reads],
        description="\n\n".join(
            part for part in (read_header(view.sql).description, sql_blocks([view.sql])) if part
        ),
        group_name=pipeline.name,
        code_version=view.fingerprint,
        kinds=VIEW_KINDS,
    )


def _source_spec(pipeline: Pipeline, source: SourceSpec) -> AssetSpec:
    return AssetSpec(
        asset_key(pipeline, source.name),
        description=source.description or None,
        group_name=pipeline.name,
        kinds=SOURCE_KINDS,
        metadata={"dagster/column_schema": column_schema(source.schema.ddl)},
    )
