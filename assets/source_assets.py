"""A pipeline's sources as assets that Dagster observes and others write."""

import warnings
from collections.abc import Iterator

from dagster import (
    AssetExecutionContext,
    AssetsDefinition,
    BetaWarning,
    DataVersion,
    Failure,
    MetadataValue,
    ObserveResult,
    multi_observable_source_asset,
)

from tideview.assets.asset_specs import source_spec
from tideview.assets.names import asset_key, source_data_version
from tideview.assets.outlook import lookout
from tideview.assets.resource_keys import USUAL, ResourceKeys
from tideview.resources.pipeline_spec import Pipeline


def source_assets(pipeline: Pipeline, keys: ResourceKeys = USUAL) -> AssetsDefinition:
    """The sources: observing them reads the newest version from their logs, without Spark.

    The sensor reports the same versions by itself. A source that can't be read is told in the
    run's log, and is not observed; a flow that can't be looked at fails the run. Without sources
    there is nothing to observe.
    """
    if not pipeline.sources:
        return AssetsDefinition(specs=[])

    def observe(context: AssetExecutionContext) -> Iterator[ObserveResult]:
        flows = keys.store(context)
        outlook = lookout(pipeline, flows).look()
        if outlook.problem:
            told = f"nothing is observed: the flow can't be looked at: {outlook.problem}"
            raise Failure(description=told, allow_retries=False)
        places = flows.tables(pipeline)
        for name, news in outlook.news.items():
            key = asset_key(pipeline, name)
            if key not in context.selected_asset_keys:
                continue
            if news.newest is None:
                context.log.warning(f"{name}: {news}")
                continue
            yield ObserveResult(
                asset_key=key,
                data_version=DataVersion(source_data_version(news.newest)),
                metadata={
                    "version": news.newest.version,
                    "news": str(news),
                    "dagster/uri": MetadataValue.text(places[name]),
                },
            )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BetaWarning)
        made: AssetsDefinition = multi_observable_source_asset(
            name=f"{pipeline.name}_observe",
            specs=[source_spec(pipeline, source) for source in pipeline.sources],
            can_subset=True,
            required_resource_keys={keys.flows},
        )(observe)
    return made
