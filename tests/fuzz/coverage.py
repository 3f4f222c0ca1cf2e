"""What random stories compared with Spark, and what was refused on the way."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Coverage:
    """Adds up over stories, and goes through JSON from one process to another."""

    stories: int = 0
    combinations: int = 0
    """Views × ticks that were compared with Spark."""
    nonempty: int = 0
    """Of those, the ones where the view had rows."""
    failing_ticks: int = 0
    """Ticks that had to fail, because Spark's recompute does."""
    differences: int = 0
    constructs: Counter[str] = field(default_factory=Counter)
    """Views that have them."""
    refusals: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    """The shortest refused text for each reason."""

    def refuse(self, reason: str, text: str) -> None:
        self.refusals[reason] += 1
        known = self.examples.get(reason)
        if known is None or len(text) < len(known):
            self.examples[reason] = text

    def __iadd__(self, other: Coverage) -> Coverage:
        self.stories += other.stories
        self.combinations += other.combinations
        self.nonempty += other.nonempty
        self.failing_ticks += other.failing_ticks
        self.differences += other.differences
        self.constructs += other.constructs
        self.refusals += other.refusals
        self.examples = {**other.examples, **self.examples}
        return self

    @classmethod
    def of(cls, held: dict[str, Any]) -> Coverage:
        counted = {name: Counter(held[name]) for name in ("constructs", "refusals")}
        return cls(**{**held, **counted})

    def __str__(self) -> str:
        refused = ", ".join(f"{reason} × {n}" for reason, n in self.refusals.most_common())
        return (
            f"{self.combinations} views × ticks ({self.nonempty} with rows), "
            f"{self.differences} differences, {len(self.constructs)} constructs, "
            f"{self.failing_ticks} ticks that must fail, refused: {refused or 'nothing'}"
        )

    def told(self) -> str:
        """At length, for the end of a run."""
        lines = [f"{self.stories} stories: {self}"]
        lines.append(", ".join(f"{name} × {n}" for name, n in self.constructs.most_common()))
        lines += [f"refused, {reason}: {text}" for reason, text in sorted(self.examples.items())]
        return "\n".join(lines)
