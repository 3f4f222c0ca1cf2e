"""A tick's certificate as Dagster metadata: numbers as numbers, so that the UI plots them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dagster import MetadataValue, TableColumn, TableSchema

from ivm_core.model.schema import parse_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ivm_core import SourceSummary, StepSummary
    from ivm_core.api.frontier import ViewFrontier
    from ivm_core.engine.explanation import Explanation


def view_metadata(
    name: str, summary: StepSummary, frontier: ViewFrontier, explanation: Explanation
) -> dict[str, Any]:
    """What a tick did to a view."""
    view = summary.views[name]
    steps = {each.step for each in explanation.steps}
    shared = {
        node: way
        for each in summary.shared.values()
        for node, way in each.ways.items()
        if node in steps
    }
    return {
        "tick": summary.tick,
        "logical_time": summary.logical_time.isoformat(),
        "rows_out": view.rows_out,
        "deletions": view.deletions,
        "rows": view.rows,
        "skipped": view.skipped,
        "duration_ms": view.duration_ms,
        "tick_duration_ms": summary.duration_ms,
        "tick_rows_in": summary.rows_in,
        "statements": summary.statements,
        "digest": view.state_digest,
        "delta_digest": view.digest,
        "plan_fingerprint": frontier.fingerprint,
        "frontier": {source: each.version for source, each in frontier.versions.items()},
        "ways": MetadataValue.md(
            "\n".join(f"- `{node}`: {way}" for node, way in {**shared, **view.ways}.items())
        ),
        "compiled_sql": MetadataValue.md(sql_blocks(explanation.statements)),
        "dagster/row_count": view.rows,
        "dagster/column_schema": column_schema(frontier.schema),
    }


def source_metadata(source: SourceSummary) -> dict[str, Any]:
    """What a tick read of a source."""
    return {"version": source.version, "rows_in": source.rows_in, "way": source.way}


def column_schema(ddl: str) -> TableSchema:
    """Columns as the UI shows them."""
    columns = [TableColumn(each.name, each.type.ddl) for each in parse_schema(ddl)]
    return TableSchema(columns=columns)


def sql_blocks(statements: Sequence[str]) -> str:
    """SQL as markdown, one block a statement."""
    return "\n\n".join(f"```sql\n{statement}\n```" for statement in statements)


def rows_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as a markdown table; nothing for none."""
    if not rows:
        return ""
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([_cell(row[name]) for name in names] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(value: object) -> str:
    return "NULL" if value is None else str(value).replace("|", "\\|").replace("\n", " ")
