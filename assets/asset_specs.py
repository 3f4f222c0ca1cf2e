"""What Dagster shows of sources and views before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dagster import AssetSpec, AutomationCondition, FreshnessPolicy

from tideview.assets.certificate_metadata import column_schema
from tideview.assets.markdown import block, sql_blocks
from tideview.assets.names import asset_key

if TYPE_CHECKING:
    from tideview.resources.pipeline_spec import (
        Automation,
        Freshness,
        Pipeline,
        SourceSpec,
        ViewSpec,
    )

VIEW_KINDS = {"spark", "delta", "sql"}
DERIVED_KINDS = {"spark", "delta", "datalog"}
SOURCE_KINDS = {"delta"}


def view_spec(pipeline: Pipeline, view: ViewSpec) -> AssetSpec:
    """A view; its dependencies and code version come from the SQL.

    Dagster's assets have no circles: views that read each other depend on what all of them read.
    """
    parts = (view.description, block(view.rules, "prolog"), sql_blocks([view.sql]))
    return AssetSpec(
        asset_key(pipeline, view.name),
        deps=[asset_key(pipeline, read) for read in view.inputs],
        description="\n\n".join(part for part in parts if part),
        group_name=view.group or pipeline.name,
        owners=list(dict.fromkeys((*pipeline.owners, *view.owners))),
        tags={**pipeline.tags, **view.tags},
        code_version=view.fingerprint,
        kinds=DERIVED_KINDS if view.rules else VIEW_KINDS,
        metadata=_table_metadata(pipeline, view.name),
        automation_condition=automation_condition(view.automation),
        freshness_policy=freshness_policy(view.freshness),
    )


def source_spec(pipeline: Pipeline, source: SourceSpec) -> AssetSpec:
    """A source: something that others write and the flow follows."""
    return AssetSpec(
        asset_key(pipeline, source.name),
        description=source.description or None,
        group_name=source.group or pipeline.name,
        owners=list(dict.fromkeys((*pipeline.owners, *source.owners))),
        tags={**pipeline.tags, **source.tags},
        kinds=SOURCE_KINDS,
        metadata={
            **_table_metadata(pipeline, source.name),
            "dagster/column_schema": column_schema(source.schema.ddl),
            **({"primary_key": list(source.primary_key)} if source.primary_key else {}),
        },
    )


def _table_metadata(pipeline: Pipeline, name: str) -> dict[str, Any]:
    return {"dagster/table_name": f"{pipeline.name}.{name}", "dagster/storage_kind": "delta"}


def automation_condition(wanted: Automation | None) -> AutomationCondition[Any] | None:
    """Dagster's own condition; None for ticks that sensor and schedules ask for."""
    if wanted is None:
        return None
    if wanted.kind == "eager":
        return AutomationCondition.eager()
    return AutomationCondition.on_cron(wanted.cron, wanted.timezone)


def freshness_policy(wanted: Freshness | None) -> FreshnessPolicy | None:
    """How old a view may be, as Dagster says it."""
    if wanted is None:
        return None
    if wanted.cron and wanted.lookback is not None:
        return FreshnessPolicy.cron(wanted.cron, wanted.lookback, wanted.timezone)
    if wanted.fail_after is None:
        return None
    return FreshnessPolicy.time_window(wanted.fail_after, wanted.warn_after)
