"""Whether the driver can tell what a stage computes, asked of tables without rows.

What it can't tell of any rows costs a tick nothing then: no row is looked at for it. What depends
on the rows, a sum that overflows or too many pairs, turns out in the tick.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from ivm_core.engine.layout import weighted
from ivm_core.operators.accumulator import OnlySpark, told_on_driver
from ivm_core.operators.arrow_types import arrow_schema
from ivm_core.operators.delta_on_driver import DeltaOnDriver
from ivm_core.operators.operator import Form

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import pyarrow as pa

    from ivm_core.model.schema import Schema
    from ivm_core.model.types import DataType
    from ivm_core.plan.nodes import Node


class Told(Enum):
    """What the driver needs."""

    NEVER = auto()
    FROM_CHANGE = auto()
    WITH_LOOKUPS = auto()
    """Rows that were there before, as a statement would read them."""


def told(
    node: Node,
    then: Callable[[pa.Table], Any],
    schema_of: Callable[[str], Schema],
    types_of: Callable[[Node], Mapping[str, DataType]],
    *,
    dirty: frozenset[str],
    empty: frozenset[str],
    elsewhere: Collection[str],
) -> Told:
    """What the delta of a node needs, and what is done with it `then`.

    Relations `elsewhere` never have rows on the driver.
    """
    looked_up = False

    def rows_of(name: str, form: Form) -> pa.Table:
        nonlocal looked_up
        if name in elsewhere:
            raise OnlySpark(f"{name} is part of a statement")
        looked_up |= form is Form.OLD
        return arrow_schema(weighted(schema_of(name))).empty_table()

    try:
        with told_on_driver():
            then(DeltaOnDriver(rows_of, types_of, dirty, empty).change(node))
    except OnlySpark:
        return Told.NEVER
    return Told.WITH_LOOKUPS if looked_up else Told.FROM_CHANGE
