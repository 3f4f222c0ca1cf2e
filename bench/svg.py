"""Plots as SVG, drawn by hand: lines over two axes, each of them linear or logarithmic.

A picture stands for itself: no style sheet, no font file, nothing that a page would have to load.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 16, 44, 52
LEGEND_LINE = 18
COLOURS = ("#00796b", "#c2410c", "#1d4ed8", "#a21caf", "#4d7c0f", "#b45309", "#475569", "#be123c")
INK, FAINT = "#1f2937", "#e5e7eb"
MARKED = 60
"""Up to so many points of a line are marked."""

Point = tuple[float, float]


class Axis:
    """Maps values to places between two pixels, and says where its marks are."""

    def __init__(
        self, values: Iterable[float], first: float, last: float, *, log: bool, from_zero: bool
    ) -> None:
        """A logarithmic axis shows positive values only."""
        shown = [value for value in values if value > 0 or not log]
        low, high = min(shown, default=1.0), max(shown, default=1.0)
        self._log = log
        self._first, self._last = first, last
        if log:
            self._low, self._high = _decades(low, high)
        else:
            low = min(low, 0.0) if from_zero else low
            step = _step(high - low or abs(high) or 1.0)
            self._low = math.floor(low / step) * step
            self._high = max(math.ceil(high / step) * step, self._low + step)

    def at(self, value: float) -> float:
        """The pixel of a value."""
        if self._log:
            share = (math.log10(value) - math.log10(self._low)) / (
                math.log10(self._high) - math.log10(self._low)
            )
        else:
            share = (value - self._low) / (self._high - self._low)
        return self._first + share * (self._last - self._first)

    @property
    def marks(self) -> list[float]:
        """Round values along the axis."""
        if not self._log:
            step = _step(self._high - self._low)
            count = round((self._high - self._low) / step)
            return [self._low + step * number for number in range(count + 1)]
        first, last = round(math.log10(self._low)), round(math.log10(self._high))
        found = [10.0**power for power in range(first, last + 1)]
        if len(found) <= 3:
            found = sorted({*found, *(each * n for each in found[:-1] for n in (2.0, 5.0))})
        return found


def line_chart(plot: Mapping[str, Any]) -> str:
    """A plot as the JSON of results has it."""
    series: dict[str, list[Point]] = {
        name: [(float(x), float(y)) for x, y in points if _can_be_drawn(plot, x, y)]
        for name, points in plot["series"].items()
    }
    points = [point for line in series.values() for point in line]
    legend = TOP + LEGEND_LINE * len(series)
    height = HEIGHT + LEGEND_LINE * len(series)
    across = Axis(
        [x for x, _ in points], LEFT, WIDTH - RIGHT, log=plot.get("log_x", False), from_zero=False
    )
    up = Axis(
        [y for _, y in points],
        height - BOTTOM,
        legend,
        log=plot.get("log_y", False),
        from_zero=True,
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" font-family="sans-serif" font-size="12">',
        f"<title>{escape(plot['title'])}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(LEFT, 20, plot["title"], size=14, weight="bold"),
        *_grid(across, up, legend, height - BOTTOM),
        _text((LEFT + WIDTH - RIGHT) / 2, height - 10, plot["x"], anchor="middle"),
        _text(16, (legend + height - BOTTOM) / 2, plot["y"], anchor="middle", turned=True),
    ]
    for number, (name, line) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        place = TOP - 6 + LEGEND_LINE * number
        parts.append(f'<rect x="{LEFT}" y="{place - 9}" width="14" height="10" fill="{colour}"/>')
        parts.append(_text(LEFT + 20, place, name))
        parts += _line([(across.at(x), up.at(y)) for x, y in line], colour)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _can_be_drawn(plot: Mapping[str, Any], x: float, y: float) -> bool:
    return (x > 0 or not plot.get("log_x")) and (y > 0 or not plot.get("log_y"))


def _grid(across: Axis, up: Axis, top: float, bottom: float) -> list[str]:
    parts = []
    for value in across.marks:
        x = across.at(value)
        parts.append(_rule(x, top, x, bottom))
        parts.append(_text(x, bottom + 16, number_text(value), anchor="middle"))
    for value in up.marks:
        y = up.at(value)
        parts.append(_rule(LEFT, y, WIDTH - RIGHT, y))
        parts.append(_text(LEFT - 6, y + 4, number_text(value), anchor="end"))
    parts.append(_rule(LEFT, bottom, WIDTH - RIGHT, bottom, INK))
    parts.append(_rule(LEFT, top, LEFT, bottom, INK))
    return parts


def _line(places: Sequence[Point], colour: str) -> list[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>']
    if len(places) <= MARKED:
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
    return parts


def _rule(x1: float, y1: float, x2: float, y2: float, colour: str = FAINT) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    size: int = 12,
    weight: str = "normal",
    turned: bool = False,
) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
        f'font-weight="{weight}" fill="{INK}"{turn}>{escape(text)}</text>'
    )


def number_text(value: float) -> str:
    """Short: 10M, 2k, 0.05."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:.3g}" if abs(value) >= 1e-3 or value == 0 else f"{value:.0e}"


def _step(span: float) -> float:
    """A round distance that divides a span into some five parts."""
    rough = span / 5
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= rough * 0.999)


def _decades(low: float, high: float) -> tuple[float, float]:
    first = 10.0 ** math.floor(math.log10(low) + 1e-9)
    last = 10.0 ** math.ceil(math.log10(high) - 1e-9)
    return first, last if last > first else first * 10
