"""What a Delta table says about itself (columns, properties, protocol), as actions of a commit."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema

from ivm_core.store.delta_actions import read_actions
from ivm_core.store.location import Location

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa


def described(table: DeltaTable, schema_json: str, properties: Mapping[str, str]) -> dict[str, Any]:
    """The table as an action says it, with these columns and properties."""
    known = table.metadata()
    body = {
        "id": str(known.id),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_json,
        "partitionColumns": [],
        "createdTime": known.created_time,
        "configuration": dict(properties),
    }
    return {"metaData": body}


def with_columns(
    table: DeltaTable, schema: pa.Schema, properties: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The actions that give a table other columns; what readers must know follows from them."""
    with tempfile.TemporaryDirectory(prefix="tideview-") as folder:
        other = DeltaTable.create(folder, DeltaSchema.from_arrow(schema))
        protocol = read_actions(Location(folder), 0)
        text = other.schema().to_json()
    needs = [each for each in protocol if "protocol" in each]
    return [described(table, text, properties), *needs]
