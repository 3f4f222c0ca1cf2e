"""A tick's certificate as Dagster metadata: numbers as numbers, so that the UI plots them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from dagster import MetadataValue, TableColumn, TableColumnDep, TableColumnLineage, TableSchema

from ivm_core.model.names import WEIGHT
from ivm_core.model.schema import parse_schema
from tideview.assets.markdown import rows_table, sql_blocks
from tideview.assets.names import asset_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ivm_core import IncrementalFlow, SourceSummary, StepSummary
    from ivm_core.api.frontier import ViewFrontier
    from ivm_core.engine.alter_report import AlterReport
    from ivm_core.engine.explanation import Explanation
    from tideview.resources.pipeline_spec import Pipeline

SHOWN_ROWS = 10
READ_ROWS = 100_000
"""A change with more rows is counted by the certificate alone, and not shown."""


@dataclass(frozen=True)
class Changed:
    """The rows of a view's change by kind, and some of them."""

    inserted: int
    deleted: int
    updated: int | None
    """Keys whose row is another one now; None where rows have no key. They count as neither."""
    sample: Sequence[dict[str, object]] = ()


def changed_rows(
    flow: IncrementalFlow, name: str, summary: StepSummary, key: tuple[str, ...] | None
) -> Changed:
    """What a tick did to a view's rows."""
    view = summary.views[name]
    if view.skipped or not view.rows_out or view.rows_out > READ_ROWS:
        return Changed(view.rows_out - view.deletions, view.deletions, None)
    table = flow.tick_change(name, summary.tick)
    came, went = (pc.sum(each).as_py() or 0 for each in _came_and_went(table))
    updated = _updated(table, key)
    both = updated or 0
    return Changed(came - both, went - both, updated, table.slice(0, SHOWN_ROWS).to_pylist())


def _came_and_went(table: pa.Table) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    zero = pa.scalar(0, pa.int64())
    weights = table[WEIGHT]
    return pc.max_element_wise(weights, zero), pc.max_element_wise(pc.negate(weights), zero)


def _updated(table: pa.Table, key: tuple[str, ...] | None) -> int | None:
    if not key or any(pa.types.is_nested(table.schema.field(name).type) for name in key):
        return None
    came, went = _came_and_went(table)
    kinds = table.select(list(key)).append_column("_came", came).append_column("_went", went)
    groups = kinds.group_by(list(key)).aggregate([("_came", "sum"), ("_went", "sum")])
    both = pc.min_element_wise(groups["_came_sum"], groups["_went_sum"])
    return int(pc.sum(both).as_py() or 0)


def view_metadata(
    pipeline: Pipeline,
    name: str,
    summary: StepSummary,
    frontier: ViewFrontier,
    explained: Mapping[str, Explanation],
    changed: Changed,
) -> dict[str, Any]:
    """What a tick did to a view; all views of the tick are explained."""
    view, explanation = summary.views[name], explained[name]
    steps = {each.step for each in explanation.steps}
    shared = {
        node: way
        for each in summary.shared.values()
        for node, way in each.ways.items()
        if node in steps
    }
    sources = pipeline.sources_of(name)
    kept = [trace for step in explanation.steps for trace in step.state]
    phases = {f"phase_{phase}_ms": took for phase, took in summary.phases_ms.items()}
    return {
        "tick": summary.tick,
        "logical_time": MetadataValue.timestamp(summary.logical_time),
        "rows_in": sum(each.rows_in for n, each in summary.sources.items() if n in sources),
        "rows_out": view.rows_out,
        "deletions": view.deletions,
        "rows_inserted": changed.inserted,
        "rows_deleted": changed.deleted,
        **({} if changed.updated is None else {"rows_updated": changed.updated}),
        "rows": view.rows,
        "skipped": view.skipped,
        "duration_ms": view.duration_ms,
        "tick_duration_ms": summary.duration_ms,
        **phases,
        "phase_commit_ms": max(summary.duration_ms - sum(summary.phases_ms.values()), 0.0),
        "tick_rows_in": summary.rows_in,
        "statements": summary.statements,
        "state_rows": sum(each.stored_rows or 0 for each in kept),
        "state_files": sum(each.files or 0 for each in kept),
        "digest": view.state_digest,
        "delta_digest": view.digest,
        "plan_fingerprint": frontier.fingerprint,
        "verdict": explanation.verdict,
        "frontier": {source: each.version for source, each in frontier.versions.items()},
        "ways": MetadataValue.md(
            "\n".join(f"- `{node}`: {way}" for node, way in {**shared, **view.ways}.items())
        ),
        "changed_rows": MetadataValue.md(rows_table(changed.sample) or "none shown"),
        "compiled_sql": MetadataValue.md(sql_blocks(explanation.statements)),
        "dagster/row_count": view.rows,
        "dagster/column_schema": column_schema(frontier.schema),
        "dagster/column_lineage": column_lineage(pipeline, name, explained),
    }


def source_metadata(source: SourceSummary) -> dict[str, Any]:
    """What a tick read of a source."""
    return {"version": source.version, "rows_in": source.rows_in, "way": source.way}


def rollout_metadata(report: AlterReport) -> dict[str, Any]:
    """What another definition made of a view."""
    return {
        "definition_change": MetadataValue.md(f"```\n{report}\n```"),
        "definition_tick": report.tick or 0,
        "definition_rows_inserted": report.inserted,
        "definition_rows_deleted": report.deleted,
        "definition_rows_before": report.rows_before,
        "definition_changed_rows": MetadataValue.md(rows_table(report.sample) or "none"),
    }


def column_schema(ddl: str) -> TableSchema:
    """Columns as the UI shows them."""
    columns = [TableColumn(each.name, each.type.ddl) for each in parse_schema(ddl)]
    return TableSchema(columns=columns)


def column_lineage(
    pipeline: Pipeline, name: str, explained: Mapping[str, Explanation]
) -> TableColumnLineage:
    """Which columns of sources and views each column of a view is computed from.

    Views that it reads in a circle are passed through: what they read from outside counts.
    """
    circle = {name, *next(view.circle for view in pipeline.views if view.name == name)}
    known = {source.name for source in pipeline.sources} | {view.name for view in pipeline.views}

    def origins(column: str) -> list[tuple[str, str]]:
        found: dict[tuple[str, str], None] = {}
        waiting, seen = [(name, column)], set()
        while waiting:
            view, wanted = waiting.pop(0)
            if (view, wanted) in seen:
                continue
            seen.add((view, wanted))
            for origin in explained[view].origins.get(wanted, ()):
                if origin[0] in circle:
                    waiting.append(origin)
                elif origin[0] in known:
                    found[origin] = None
        return list(found)

    return TableColumnLineage(
        {
            column: [TableColumnDep(asset_key(pipeline, of), each) for of, each in origins(column)]
            for column in explained[name].origins
        }
    )
