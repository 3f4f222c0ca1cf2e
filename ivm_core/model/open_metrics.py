"""The text of OpenMetrics 1.0: families of samples, and how they are written down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True)
class Sample:
    """One value of a family; `suffix` is what its type adds to the family's name."""

    value: float
    suffix: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Family:
    """Samples of one name."""

    name: str
    type: str
    """`counter`, `gauge` or `summary`."""
    about: str
    samples: list[Sample]
    unit: str = ""
    """The name ends with it."""


def open_metrics(families: Iterable[Family]) -> str:
    """The families as a text with its end mark."""
    lines = []
    for family in families:
        lines.append(f"# TYPE {family.name} {family.type}")
        if family.unit:
            lines.append(f"# UNIT {family.name} {family.unit}")
        lines.append(f"# HELP {family.name} {_escaped(family.about)}")
        for sample in family.samples:
            labels = ",".join(f'{name}="{_escaped(at)}"' for name, at in sample.labels.items())
            shown = f"{{{labels}}}" if labels else ""
            lines.append(f"{family.name}{sample.suffix}{shown} {sample.value}")
    return "\n".join([*lines, "# EOF", ""])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
