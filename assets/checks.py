"""The checks of a pipeline's views, as one step that opens the flow once for those selected.

    determinism        the newest ticks again, their rows in another order and other partitions
    replay_equality    the view beside its query, run from scratch on the sources it has seen
    certificate_chain  the digests of all ticks add up, and the newest change has its digest

All of them only read: they keep no writer out.
"""

from collections.abc import Iterator

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSpec,
    multi_asset_check,
)

from ivm_core import CorruptStore, IvmError, SparkLost
from tideview.assets.certificate_chain import certificate_chain
from tideview.assets.determinism import determinism
from tideview.assets.failures import told_in_our_words
from tideview.assets.names import CHECKS_TAG, COMPLETE, asset_key
from tideview.assets.replay_equality import replay_equality
from tideview.assets.resource_keys import USUAL, ResourceKeys
from tideview.assets.verdicts import Asked, frontier_of, not_checked, not_ticked, verdict
from tideview.assets.way_out import in_dagster
from tideview.resources.pipeline_spec import Pipeline

DESCRIPTIONS = {
    "determinism": "The newest tick gives the same digests again, whatever the order of rows.",
    "replay_equality": "The view equals its query, run from scratch on the sources it has seen.",
    "certificate_chain": "The digests that the ticks recorded add up.",
}
CHECKS = {
    "determinism": determinism,
    "replay_equality": replay_equality,
    "certificate_chain": certificate_chain,
}


def view_checks(pipeline: Pipeline, keys: ResourceKeys = USUAL) -> list[AssetChecksDefinition]:
    """The checks that the views' policies ask for; none where they ask for none."""
    specs = [
        AssetCheckSpec(
            name,
            asset=asset_key(pipeline, view.name),
            description=DESCRIPTIONS[name],
            blocking=name in pipeline.checks_of(view).blocking,
        )
        for view in pipeline.views
        for name in CHECKS
        if name in pipeline.checks_of(view).run
    ]
    if not specs:
        return []

    @multi_asset_check(
        name=f"{pipeline.name}_checks",
        specs=specs,
        can_subset=True,
        required_resource_keys=keys.both,
    )
    def checks(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        flows, spark = keys.store(context), keys.session(context)
        with told_in_our_words():
            frontier = frontier_of(pipeline, flows)
        is_complete = context.run.tags.get(CHECKS_TAG) == COMPLETE
        wanted: dict[str, list[str]] = {name: [] for name in CHECKS}
        for view in pipeline.views:
            for name in CHECKS:
                key = AssetCheckSpec(name, asset=asset_key(pipeline, view.name)).key
                if key not in context.selected_asset_check_keys:
                    continue
                seen = frontier.views.get(view.name)
                if seen is None or not seen.tick:
                    yield not_ticked(pipeline, view.name, name)
                else:
                    wanted[name].append(view.name)
        if not any(wanted.values()):
            return
        with told_in_our_words(), flows.read(pipeline, spark.session(pipeline.spark)) as flow:
            repeated = tuple(wanted["determinism"])
            asked = Asked(pipeline, flow, frontier, context.instance, is_complete, repeated)
            for name, ready in wanted.items():
                for each in ready:
                    yield _checked(asked, name, each)

    return [checks]


def _checked(asked: Asked, check: str, view: str) -> AssetCheckResult:
    """A check's verdict; one that can't be made is told, and keeps no other from being made."""
    try:
        return CHECKS[check](asked, view)
    except SparkLost:
        raise
    except CorruptStore as error:
        return verdict(asked.pipeline, view, check, passed=False, told=in_dagster(str(error)))
    except IvmError as error:
        return not_checked(asked.pipeline, view, check, in_dagster(str(error)))
