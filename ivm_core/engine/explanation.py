"""An explanation of a view as one value: text for people, a dict or JSON for machines.

The keys of `to_dict` are the names of the fields here. They are stable: a later version adds keys
and keeps those that are there. docs/command-line.md lists them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ivm_core.compile.steps import CHANGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ivm_core.compile.steps import Read
    from ivm_core.model.errors import Refusal
    from ivm_core.plan.lineage import Origin


@dataclass(frozen=True)
class KeptTrace:
    """State that a node keeps between ticks."""

    trace: str
    """Its folder below the flow's."""
    holds: str
    """`rows` or `accumulators`."""
    keys: tuple[str, ...]
    stored_rows: int | None = None
    """Rows in its files, history among them; None before the first tick."""
    files: int | None = None

    def __str__(self) -> str:
        by = f" by {', '.join(self.keys)}" if self.keys else ""
        size = "" if self.files is None else f", {self.stored_rows} rows in {self.files} files"
        return f"{self.holds}{by} in {self.trace}{size}"

    def to_dict(self) -> dict[str, Any]:
        """Its fields by name."""
        return {
            "trace": self.trace,
            "holds": self.holds,
            "keys": list(self.keys),
            "stored_rows": self.stored_rows,
            "files": self.files,
        }


@dataclass(frozen=True)
class Step:
    """One step of the view's tick: what it computes, reads, keeps and runs."""

    step: str
    node: str
    keys: tuple[str, ...]
    state: tuple[KeptTrace, ...]
    reads: tuple[Read, ...]
    last: str
    """The way it took in the view's last tick, and why; empty before any."""
    statements: tuple[str, ...]
    shared_with: tuple[str, ...] = ()
    """The other views that read it, where it is a step of a shared node."""

    def to_dict(self) -> dict[str, Any]:
        """Its fields by name."""
        return {
            "step": self.step,
            "node": self.node,
            "keys": list(self.keys),
            "state": [each.to_dict() for each in self.state],
            "reads": [_read_dict(each) for each in self.reads],
            "last": self.last,
            "statements": list(self.statements),
            "shared_with": list(self.shared_with),
        }


@dataclass(frozen=True)
class ExplainedNode:
    """One node of the plan: how it is maintained, what it keeps, what it did last."""

    node: str
    verdict: str
    reason: str
    keys: tuple[str, ...]
    steps: tuple[str, ...]
    state: tuple[KeptTrace, ...]
    reads: tuple[Read, ...]
    """For a scan: how its relation is read, by every step that does."""
    last: tuple[str, ...]
    depth: int
    inputs: tuple[ExplainedNode, ...]
    shared_with: tuple[str, ...] = ()
    """The other views for which the flow keeps this very node."""

    def walk(self) -> Iterator[ExplainedNode]:
        """The node and all below it, in the order in which they are shown."""
        yield self
        for each in self.inputs:
            yield from each.walk()

    def lines(self) -> list[str]:
        """For people, indented by depth."""
        indent = "  " * (self.depth + 1)
        shown = [f"{indent}{self.node}: {self.verdict} ({self.reason})"]
        details: list[str] = []
        if self.state and self.keys:
            details.append(f"keys {', '.join(self.keys)}")
        details += [f"keeps {each}" for each in self.state]
        if self.shared_with:
            details.append(f"one node for this view and {', '.join(self.shared_with)}")
        details += [f"reads {each}" for each in self.reads if each.how != CHANGE]
        details += [f"last: {each}" for each in self.last]
        shown += [f"{indent}    {each}" for each in details]
        return shown + [line for each in self.inputs for line in each.lines()]

    def to_dict(self) -> dict[str, Any]:
        """Its fields by name, its inputs within."""
        return {
            "node": self.node,
            "verdict": self.verdict,
            "reason": self.reason,
            "keys": list(self.keys),
            "steps": list(self.steps),
            "state": [each.to_dict() for each in self.state],
            "reads": [_read_dict(each) for each in self.reads],
            "last": list(self.last),
            "shared_with": list(self.shared_with),
            "inputs": [each.to_dict() for each in self.inputs],
        }


@dataclass(frozen=True)
class TickCost:
    """What a tick did to the view, from its certificate."""

    tick: int
    logical_time: str
    duration_ms: float
    rows_out: int
    deletions: int
    rows: int
    skipped: bool
    hydrated: bool

    def __str__(self) -> str:
        if self.skipped:
            return f"tick {self.tick}: skipped"
        how = " (hydrated)" if self.hydrated else ""
        return (
            f"tick {self.tick}{how}: {self.duration_ms:,.0f} ms, {self.rows_out} rows out, "
            f"{self.deletions} of them deletions, {self.rows} rows now"
        )

    def to_dict(self) -> dict[str, Any]:
        """Its fields by name."""
        return dict(vars(self))


@dataclass(frozen=True)
class WhyNot:
    """Why something is refused, or costs more than its change: what, where, why, what instead."""

    verdict: str
    """`refused`, `recomputed` or `read in full`."""
    construct: str
    position: str
    reason: str
    rewrite: str
    text: str = field(compare=False)

    @classmethod
    def of(cls, verdict: str, refusal: Refusal) -> WhyNot:
        """The parts of a refusal."""
        return cls(
            verdict,
            refusal.construct,
            refusal.position,
            refusal.reason,
            refusal.rewrite,
            str(refusal),
        )

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Its fields by name."""
        return dict(vars(self))


@dataclass(frozen=True)
class Explanation:
    """Everything about a view; `str` shows it, `to_dict` and `to_json` give it to programs."""

    view: str
    fingerprint: str
    require: str
    """`incremental`, where the view was declared so."""
    verdict: str
    """The worst of its nodes' verdicts."""
    normalised: str
    tree: ExplainedNode
    steps: tuple[Step, ...]
    last: tuple[TickCost, ...]
    """The newest tick that saw the view, and before it the newest that had something to do."""
    why_not: tuple[WhyNot, ...]
    """What costs more than the change; empty for a view that is incremental throughout."""
    origins: Mapping[str, tuple[Origin, ...]]
    """By column of the view, the columns of relations that its value is computed from."""
    key: tuple[str, ...] | None
    """Columns that tell its rows apart; None where none are known to."""

    @property
    def nodes(self) -> tuple[ExplainedNode, ...]:
        """The nodes of the plan, from the view down."""
        return tuple(self.tree.walk())

    @property
    def is_incremental(self) -> bool:
        """Whether no change makes it read or recompute everything."""
        return not self.why_not

    @property
    def reads(self) -> tuple[str, ...]:
        """How relations are read, in words; those of which only the change is read left out."""
        reads = (each for step in self.steps for each in step.reads if each.how != CHANGE)
        return tuple(dict.fromkeys(str(each) for each in reads)) or ("its changes only",)

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements of a tick in which every input changes."""
        return tuple(each for step in self.steps for each in step.statements)

    def to_dict(self) -> dict[str, Any]:
        """Everything, in types that JSON has."""
        return {
            "format": 1,
            "view": self.view,
            "fingerprint": self.fingerprint,
            "require": self.require,
            "verdict": self.verdict,
            "incremental": self.is_incremental,
            "normalised": self.normalised,
            "tree": self.tree.to_dict(),
            "steps": [each.to_dict() for each in self.steps],
            "last": [each.to_dict() for each in self.last],
            "why_not": [each.to_dict() for each in self.why_not],
            "origins": {
                column: [f"{relation}.{field}" for relation, field in found]
                for column, found in self.origins.items()
            },
            "key": None if self.key is None else list(self.key),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def __str__(self) -> str:
        """For people."""
        required = f", required to be {self.require}" if self.require else ""
        lines = [f"view {self.view}, plan {self.fingerprint}: {self.verdict}{required}"]
        lines += ["", "means", _indent(self.normalised)]
        lines += ["", "is maintained", *self.tree.lines()]
        lines += ["", "reads", *(f"  {line}" for line in self.reads)]
        if self.why_not:
            lines += ["", "costs more than its change"]
            lines += [_indent(str(each)) for each in self.why_not]
        if self.last:
            lines += ["", "did in its last tick", *(f"  {each}" for each in self.last)]
            lines += [f"  {each.step}: {each.last}" for each in self.steps if each.last]
        lines += ["", "statements of a tick in which every input changes"]
        for statement in self.statements:
            lines += [_indent(statement), ""]
        return "\n".join(lines)


def _read_dict(read: Read) -> dict[str, Any]:
    return {
        "relation": read.relation,
        "how": read.how,
        "limits": list(read.limits),
        "reason": read.reason,
        "when": read.when,
    }


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
