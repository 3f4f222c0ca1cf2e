"""The columns of a Delta table, from its log: no Spark, no JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.model.errors import UserError
from ivm_core.store.followed import FollowedTable
from ivm_core.store.location import Location

if TYPE_CHECKING:
    from os import PathLike

    from ivm_core.model.schema import Schema


def table_schema(table: str | PathLike[str], where: str = "") -> Schema:
    """The newest columns of a table at a path or URI; `UserError` where there is none."""
    location = Location(table)
    if not location.exists("_delta_log"):
        raise UserError(
            f"there is no Delta table at {location.uri}",
            where=where,
            fix="correct the location, or declare the table's schema until it is there",
        )
    return FollowedTable(location).schema()
