"""Tables as bags of rows, for comparison."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def bag(table: pa.Table) -> Counter[str]:
    """How often each row is there; `_weight` counts where there is one."""
    counted: Counter[str] = Counter()
    for row in table.to_pylist():
        weight = row.pop("_weight", 1)
        counted[str(sorted(row.items()))] += weight
    return Counter({row: weight for row, weight in counted.items() if weight})


def difference(new: Counter[str], old: Counter[str]) -> Counter[str]:
    """What has to be added to `old` to have `new`."""
    changed = {row: new[row] - old[row] for row in new.keys() | old.keys()}
    return Counter({row: weight for row, weight in changed.items() if weight})
