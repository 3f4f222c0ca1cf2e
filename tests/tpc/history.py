"""A stream's ticks, made once and shared by all queries; the tables after each as Parquet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from tests.tpc.stream import Stream, TableChange


@dataclass
class History:
    """Tick 0 is the first load; the others are made when they are asked for."""

    name: str
    schemas: dict[str, str]
    keys: dict[str, tuple[str, ...]]
    stream: Stream
    folder: Path
    first: dict[str, pa.Table] = field(init=False)
    _ticks: list[dict[str, TableChange]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.first = dict(self.stream.tables)
        self._write(0)

    def changes(self, tick: int) -> dict[str, TableChange]:
        while len(self._ticks) < tick:
            self._ticks.append(self.stream.next())
            self._write(len(self._ticks))
        return self._ticks[tick - 1]

    def path(self, tick: int, table: str) -> Path:
        """The table's rows after a tick, by the stream's own account."""
        return self.folder / str(tick) / f"{table}.parquet"

    def _write(self, tick: int) -> None:
        (self.folder / str(tick)).mkdir(parents=True)
        for name, table in self.stream.tables.items():
            pq.write_table(table, self.path(tick, name))
