"""Timing: samples with their median and spread, bars with their verdict, sections of both.

What a section holds ends up in JSON as it is; tables, report and documentation are made from that.
"""

from __future__ import annotations

import math
import re
import sys
import time
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

Result = TypeVar("Result")

STARTED = time.perf_counter()


def progress(text: str) -> None:
    """Say on stderr what is going on, with the time since the start."""
    elapsed = time.perf_counter() - STARTED
    print(f"[{elapsed:7.1f} s] {text}", file=sys.stderr, flush=True)


@dataclass
class Samples:
    """Seconds of one thing, measured again and again; `facts` are counts seen on the way."""

    name: str
    seconds: list[float] = field(default_factory=list)
    facts: dict[str, list[float]] = field(default_factory=dict)

    def time(self, work: Callable[..., Result], *given: Any, keep: bool = True) -> Result:
        """Call and time; `keep=False` is a warm-up."""
        started = time.perf_counter()
        result = work(*given)
        elapsed = time.perf_counter() - started
        if keep:
            self.seconds.append(elapsed)
        return result

    def note(self, **facts: float) -> None:
        """Add counts that belong to the last sample."""
        for name, value in facts.items():
            self.facts.setdefault(name, []).append(value)

    @property
    def median(self) -> float:
        """The middle sample; there has to be one."""
        return median(self.seconds)

    @property
    def per_sample(self) -> dict[str, float]:
        """The middle value of every count."""
        return {name: median(values) for name, values in self.facts.items() if values}

    def percentile(self, share: float) -> float:
        """The sample that so large a share is not above: 0.99 for all but the slowest."""
        return percentile(self.seconds, share)

    def as_json(self) -> dict[str, Any]:
        """Raw numbers and what follows from them."""
        return {
            "name": self.name,
            "median_s": self.median,
            "min_s": min(self.seconds),
            "max_s": max(self.seconds),
            "p99_s": self.percentile(0.99),
            "seconds": self.seconds,
            "facts": self.facts,
        }


@dataclass(frozen=True)
class Bar:
    """A ratio and the limit it is held to."""

    name: str
    ratio: float
    limit: float
    sense: Literal["<=", ">="]

    @property
    def met(self) -> bool:
        """Whether the ratio is on the right side."""
        return self.ratio <= self.limit if self.sense == "<=" else self.ratio >= self.limit

    def as_json(self) -> dict[str, Any]:
        """All of it, with the verdict."""
        return {
            "name": self.name,
            "ratio": self.ratio,
            "limit": self.limit,
            "sense": self.sense,
            "met": self.met,
        }


@dataclass(frozen=True)
class Ratio:
    """Somebody else's time by ours, held to no limit: below 1 they are the faster."""

    name: str
    ratio: float

    def as_json(self) -> dict[str, Any]:
        """Both."""
        return {"name": self.name, "ratio": self.ratio}


@dataclass(frozen=True)
class Plot:
    """Points to be drawn: lines by name, or one bar a name."""

    key: str
    title: str
    x: str
    y: str
    series: dict[str, list[tuple[float, float]]]
    log_x: bool = False
    log_y: bool = False

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return dict(vars(self))


@dataclass
class Section:
    """What one of the programs found."""

    key: str
    title: str
    samples: list[Samples] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    """Peers that could not take part, and why."""
    checks: dict[str, bool] = field(default_factory=dict)
    """Whether results were equal to Spark's."""
    notes: list[str] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    options: str = ""
    """What it takes beside `--only` to measure it so, where that is not what is usual."""

    def sample(self, name: str) -> Samples:
        """A new row of the table."""
        made = Samples(name)
        self.samples.append(made)
        return made

    def bar(self, name: str, ratio: float, sense: Literal["<=", ">="], limit: float) -> None:
        """Hold a ratio to a limit."""
        self.bars.append(Bar(name, ratio, limit, sense))

    def compare(self, name: str, theirs: float, ours: float) -> None:
        """Put somebody else's time beside ours, without a limit."""
        self.ratios.append(Ratio(name, theirs / ours))

    def plot(
        self,
        key: str,
        title: str,
        x: str,
        y: str,
        series: Mapping[str, Iterable[tuple[float, float]]],
        *,
        log_x: bool = False,
        log_y: bool = False,
    ) -> None:
        """Add a picture; lines without points are left out."""
        drawn = {name: list(points) for name, points in series.items()}
        drawn = {name: points for name, points in drawn.items() if points}
        if drawn:
            named = "-".join([self.key, *re.findall(r"[\w.]+", self.options), key])
            self.plots.append(Plot(named, title, x, y, drawn, log_x, log_y))

    def check(self, name: str, equal: bool) -> None:
        """Record that a result was compared; once unequal, a name stays so."""
        self.checks[name] = equal and self.checks.get(name, True)
        if not equal:
            progress(f"WRONG RESULT: {name}")

    @property
    def is_right(self) -> bool:
        """Whether it ran to its end with equal results."""
        return not self.error and all(self.checks.values())

    def as_json(self) -> dict[str, Any]:
        """Everything that was found."""
        return {
            "key": self.key,
            "title": self.title,
            "samples": [each.as_json() for each in self.samples if each.seconds],
            "bars": [each.as_json() for each in self.bars],
            "ratios": [each.as_json() for each in self.ratios],
            "plots": [each.as_json() for each in self.plots],
            "absent": self.absent,
            "checks": self.checks,
            "notes": self.notes,
            "raw": self.raw,
            "error": self.error,
            "options": self.options,
        }


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    rows: tuple[int, ...]
    """Sizes of `orders`, ascending."""
    repeats: int = 7
    warm_ups: int = 3
    ticks: int = 200
    """Length of the long run."""
    scale: float = 1.0
    """Of TPC-H."""
    queries: tuple[str, ...] = ()
    """Those of TPC-H and Nexmark that are measured; all if none is named."""
    shares: tuple[float, ...] = (0.00001, 0.001, 0.1)
    """Of TPC-H's orders, changed by one tick."""
    scales: tuple[float, ...] = (0.1, 1.0)
    """Of TPC-H, where one change is made to data of several sizes."""
    state_ticks: int = 500
    """After which the bytes of a view are counted."""
    events: int = 1_000_000
    """Of Nexmark, before the first tick."""
    tick_events: tuple[int, ...] = (1_000_000, 5_000_000)
    """Of a stream, taken by one tick."""
    is_quick: bool = False
    refreshes: int = 2
    refresh_ticks: int = 3

    @property
    def smallest(self) -> int:
        """The size that the largest one is compared with."""
        return self.rows[0]

    @property
    def largest(self) -> int:
        """The size at which the full refresh and hydration are measured."""
        return self.rows[-1]

    @property
    def rounds(self) -> list[bool]:
        """One entry a round: whether its samples are kept."""
        return [False] * self.warm_ups + [True] * self.repeats


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that so large a share is not above."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def size_text(rows: int) -> str:
    """A number of rows as people say it: 100k, 10M."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if rows >= unit and rows % unit == 0:
            return f"{rows // unit}{name}"
    return str(rows)
