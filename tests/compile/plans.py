"""Plans from SQL for tests, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivm_core.compile.rules import optimise
from ivm_core.frontend.sql import parse_view
from ivm_core.model.schema import parse_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.model.schema import Schema
    from ivm_core.plan.nodes import Node

CATALOG = {
    "a": parse_schema("x INT, y INT, s STRING, d DOUBLE"),
    "b": parse_schema("x INT, y INT, z BIGINT"),
    "c": parse_schema("y INT, z INT, s STRING"),
    "d": parse_schema("z INT, s STRING"),
    "e": parse_schema("t DATE, x INT"),
}


def parsed(sql: str, catalog: Mapping[str, Schema] = CATALOG) -> Node:
    return parse_view(sql, catalog, "view v").plan


def optimised(sql: str) -> Node:
    return optimise(parsed(sql), CATALOG)
