"""Rows of a view or fed source on the driver, as Arrow: no Spark, no JVM, no lock.

For tools that show rows. A program that goes on computing with them wants `flow.snapshot`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ivm_core.engine.core import Engine
from ivm_core.engine.definitions import DELTA
from ivm_core.engine.reading import Reader
from ivm_core.model.errors import Unsupported
from ivm_core.model.names import WEIGHT
from ivm_core.operators.netting import net
from ivm_core.store.location import Location

if TYPE_CHECKING:
    from os import PathLike


class StoredRows:
    """Reads what a flow has committed."""

    def __init__(self, path: str | PathLike[str]) -> None:
        """Look at the flow at a path or URI; `NotAFlow` where there is none."""
        self._engine = Engine(Location(path), None, read_only=True)
        self._reader = Reader(self._engine)

    def snapshot(self, name: str, at: int | None = None) -> tuple[int, pa.Table]:
        """The tick that is meant and the rows as of it, each as often as it is there.

        An unknown name is `UnknownName`, a tick that is not there `OutOfRange`; a followed table
        is its own snapshot: `Unsupported`.
        """
        stored, _ = self._reader.relation(name)
        source = self._engine.history.sources.get(stored)
        if source is not None and source.kind == DELTA:
            raise Unsupported(
                f"a snapshot of the followed table {stored}",
                reason="the flow keeps no rows of it",
                rewrite=f"read the Delta table {source.options['table']}",
            )
        tick = self._reader.checked(at, "at")
        trace, schema = self._reader.trace(stored, tick)
        names = [*schema.names, WEIGHT]
        table = net(trace.read(self._engine.history.committed, tick, None, names), schema)
        weights = table.column(WEIGHT).to_pylist()
        if any(weight != 1 for weight in weights):
            places = [place for place, weight in enumerate(weights) for _ in range(weight)]
            table = table.take(pa.array(places, pa.int64()))
        return tick, table.select(list(schema.names))

    def types(self, name: str) -> dict[str, str]:
        """The columns of a view or source, and their types."""
        _, schema = self._reader.relation(name)
        return {each.name: each.type.ddl for each in schema}
