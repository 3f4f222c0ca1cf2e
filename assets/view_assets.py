"""A pipeline's views as assets; materializing any of them is one tick."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from dagster import (
    AssetExecutionContext,
    AssetMaterialization,
    AssetObservation,
    AssetsDefinition,
    DataVersion,
    MaterializeResult,
    multi_asset,
)

from ivm_core.api.frontier import Frontier, read_frontier
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
    tick_step,
)
from tideview.assets.resource_keys import USUAL, ResourceKeys
from tideview.assets.rollout import Rollout, opened_for_a_tick
from tideview.assets.unheard import unheard_ticks
from tideview.assets.way_out import in_dagster
from tideview.resources.pipeline_spec import Pipeline


def tick_assets(pipeline: Pipeline, keys: ResourceKeys = USUAL) -> AssetsDefinition:
    """The views, as assets that one step brings up to date together.

    A run selects any of them: it makes one tick for the selection, which also advances the views
    that the selected ones read, and those of their circles; the others keep their frontier. Views
    without changes are reported with zero rows out and the data version they had. A view whose SQL
    has changed is altered first.
    """

    @multi_asset(
        name=tick_step(pipeline),
        specs=[view_spec(pipeline, view) for view in pipeline.views],
        can_subset=True,
        pool=pool(pipeline),
        required_resource_keys=keys.both,
    )
    def tick(
        context: AssetExecutionContext,
    ) -> Iterator[MaterializeResult[None] | AssetMaterialization]:
        flows, spark = keys.store(context), keys.session(context)
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
            try:
                summary = flow.tick(views=selected)
            except BaseException:
                # views that were altered are so, whatever becomes of the tick
                frontier = read_frontier(flows.flow_path(pipeline))
                yield from _swapped(pipeline, frontier, _swaps(rollout))
                raise
            frontier = read_frontier(flows.flow_path(pipeline))
            inputs_of = partial(_input_tags, pipeline, frontier)
            told = {summary.tick, *(each.tick or 0 for each in rollout.altered.values())}
            for unheard in unheard_ticks(
                context.instance, pipeline, flow, frontier, told, inputs_of
            ):
                context.log_event(unheard)
            metadata = {}
            explained = {name: flow.explain(name) for name in summary.views}
            for name in summary.views:
                changed = changed_rows(flow, name, summary, explained[name].key)
                seen = frontier.views[name]
                metadata[name] = view_metadata(pipeline, name, summary, seen, explained, changed)
        swaps = _swaps(rollout)
        for name in set(swaps) & set(metadata):
            metadata[name] |= swaps.pop(name)
        for event in _swapped(pipeline, frontier, swaps):
            context.log_event(event)
        for report in rollout.altered.values():
            context.log.info(str(report))
        context.log.info(str(summary))
        for note in (*rollout.notes, *summary.notes):
            context.log.warning(in_dagster(note))

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
            if view.name in selected:
                yield MaterializeResult(
                    asset_key=key,
                    metadata=metadata[view.name],
                    data_version=DataVersion(digest),
                    tags=inputs_of(view.name),
                )
            else:
                tags = {DATA_VERSION_TAG: digest}
                context.log_event(
                    AssetMaterialization(key, metadata=metadata[view.name], tags=tags)
                )

    return tick


def _input_tags(pipeline: Pipeline, frontier: Frontier, view: str) -> dict[str, str]:
    """What a view has read, which may be newer than what was known when the run began."""
    versions = frontier.views[view].versions
    inputs = next(each.inputs for each in pipeline.views if each.name == view)
    return {
        f"{INPUT_VERSION_TAG}{asset_key(pipeline, name).to_user_string()}": (
            source_data_version(versions[name]) if name in versions else frontier.views[name].digest
        )
        for name in inputs
    }


def _swaps(rollout: Rollout) -> dict[str, dict[str, Any]]:
    """What other definitions did to altered views, and to those downstream of them."""
    found: dict[str, dict[str, Any]] = {}
    for name, report in rollout.altered.items():
        rows = report.inserted + report.deleted
        found[name] = {**rollout_metadata(report), "definition_rows_out": rows}
    for report in rollout.altered.values():
        for reader, rows in report.downstream.items():
            swapped = {"definition_tick": report.tick or 0, "definition_rows_out": rows}
            found.setdefault(reader, swapped)
    return found


def _swapped(
    pipeline: Pipeline,
    frontier: Frontier,
    swaps: Mapping[str, dict[str, Any]],
) -> Iterator[AssetMaterialization]:
    """Events of views whose rows a swap has changed; those that no file declares have none."""
    for name in [view.name for view in pipeline.views if view.name in swaps]:
        told = swaps[name]
        of_tick = {"tick": told["definition_tick"], "rows_out": told["definition_rows_out"]}
        tags = {DATA_VERSION_TAG: frontier.views[name].digest}
        yield AssetMaterialization(
            asset_key(pipeline, name), metadata={**told, **of_tick}, tags=tags
        )
