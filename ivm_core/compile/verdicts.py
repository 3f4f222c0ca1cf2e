"""How each node of a plan is maintained, in words: the verdict, the reason, the keys.

The verdict is the worst that a change can cause. A MIN without GROUP BY folds every insertion, and
is still `recomputed`: the deletion of its least value asks for all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivm_core.plan.nodes import (
    Aggregate,
    Constant,
    Distinct,
    Filter,
    Generate,
    Join,
    Kept,
    Listed,
    Match,
    Project,
    Scan,
    SetOperation,
)
from ivm_core.plan.partitioned import Grouped, Partitioned, Top, Windowed

if TYPE_CHECKING:
    from ivm_core.operators.window_extent import Extent
    from ivm_core.plan.nodes import Node

INCREMENTAL = "incremental"
AFFECTED = "affected keys only"
IN_FULL = "read in full"
"""The verdict of a scan that no key limits; the others are those of every node."""
RECOMPUTED = "recomputed"
WORST_LAST = (INCREMENTAL, AFFECTED, IN_FULL, RECOMPUTED)

_LINEAR = "linear: applied to the change"
_SIMPLE: dict[type[Node], str] = {
    Scan: "gives its change",
    Constant: "never changes",
    Listed: "never changes",
    Filter: _LINEAR,
    Project: _LINEAR,
    Generate: _LINEAR,
    Join: "bilinear: one term a changed input",
    Distinct: "counts per row, changed rows only",
    Match: "a join with the matching keys, each once, added or subtracted",
    SetOperation: "counts per row on both sides, changed rows only",
}
_OUTER = {"LEFT": "left join", "SEMI": "semi join", "ANTI": "anti join"}


@dataclass(frozen=True)
class Verdict:
    """How a node is maintained, and why so."""

    verdict: str
    reason: str


def worst(verdicts: list[str]) -> str:
    """The verdict of several nodes together."""
    return max(verdicts, key=WORST_LAST.index, default=INCREMENTAL)


def verdict_of(node: Node, extent: Extent | None = None) -> Verdict:
    """How one node is maintained; `extent` is how far a change reaches in one partition."""
    if isinstance(node, Aggregate):
        return _of_aggregate(node)
    if isinstance(node, Top) and not node.partition:
        return Verdict(
            RECOMPUTED,
            "the change is compared with the first rows; where one of them goes, those that may "
            "move up are all rows",
        )
    if isinstance(node, Partitioned):
        if extent is not None:
            return Verdict(AFFECTED, f"there is one partition, {extent}")
        if not node.partition:
            return Verdict(RECOMPUTED, "there is one partition, of all rows")
        return Verdict(AFFECTED, f"recomputed for changed {', '.join(node.partition)}")
    for kind, reason in _SIMPLE.items():
        if isinstance(node, kind):
            return Verdict(INCREMENTAL, reason)
    return Verdict(INCREMENTAL, "linear: the changes of its branches, one after the other")


def keys_of(node: Node) -> tuple[str, ...]:
    """The columns by which a node tells which of its rows a change reaches."""
    if isinstance(node, Aggregate):
        return tuple(column for _, column in node.keys)
    if isinstance(node, Partitioned):
        return node.partition
    if isinstance(node, Distinct | SetOperation):
        return node.columns
    if isinstance(node, Join | Match):
        return tuple(condition.sql for condition in node.conditions)
    return ()


def label_of(node: Node) -> str:
    """A node in one line, without its inputs."""
    if isinstance(node, Scan):
        return f"scan {node.relation}"
    if isinstance(node, Filter):
        return f"filter {node.predicate.sql}"
    if isinstance(node, Project):
        return f"project {', '.join(node.columns)}"
    if isinstance(node, Aggregate):
        keys = ", ".join(name for name, _ in node.keys)
        return _by("aggregate", keys, ", ".join(call.text for call in node.calls))
    if isinstance(node, Join):
        conditions = " AND ".join(condition.sql for condition in node.conditions)
        return f"join on {conditions}" if conditions else "cross join"
    if isinstance(node, Match):
        conditions = " AND ".join(condition.sql for condition in node.conditions) or "true"
        return f"{_OUTER[node.kind]} on {conditions}"
    if isinstance(node, SetOperation):
        return node.kind.lower()
    if isinstance(node, Generate):
        return f"generate {node.generator.sql} as {', '.join(node.names)}"
    if isinstance(node, Partitioned):
        return _label_of_parts(node)
    if isinstance(node, Kept):
        keys = f" by {', '.join(node.keys)}" if node.keys else ""
        return f"rows that several nodes read{keys}"
    if isinstance(node, Listed):
        return f"{len(node.rows):,} rows that are written out"
    return {"UnionAll": "union all", "Constant": "one row"}.get(
        type(node).__name__, type(node).__name__.lower()
    )


def _label_of_parts(node: Partitioned) -> str:
    keys = ", ".join(node.partition)
    if isinstance(node, Top):
        count = "all" if node.limit is None else f"first {node.limit}"
        after = f" after {node.offset}" if node.offset else ""
        order = ", ".join(scalar.sql for scalar in node.order)
        return f"{count}{after} rows by {order}" + (f" of each {keys}" if keys else "")
    calls = node.calls if isinstance(node, Windowed | Grouped) else ()
    word = "window" if isinstance(node, Windowed) else "aggregate"
    return _by(word, keys, ", ".join(f"{name}={scalar.sql}" for name, scalar in calls))


def _by(word: str, keys: str, calls: str) -> str:
    label = f"{word} by {keys or 'nothing'}"
    return f"{label}: {calls}" if calls else label


def _of_aggregate(node: Aggregate) -> Verdict:
    names = sorted({call.function for call in node.calls if call.function in ("MIN", "MAX")})
    if not names:
        return Verdict(INCREMENTAL, "accumulators fold the change, changed groups only")
    extremes = " and ".join(names)
    if node.keys:
        return Verdict(
            AFFECTED, f"folded; {extremes} recomputed for groups whose extreme is deleted"
        )
    return Verdict(RECOMPUTED, f"folded; {extremes} recomputed from all rows where it is deleted")
