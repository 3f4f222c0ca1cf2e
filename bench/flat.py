"""The same thousand changed rows at several scales of TPC-H: what a tick grows with the data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bench.measure import Plan, Samples, Section, progress
from bench.ticking import timed_tick
from bench.tpch.changes import Changes, Where
from bench.tpch.queries import queries

if TYPE_CHECKING:
    from bench.tpch.stock import Stocks

LIMITS: dict[Where, float] = {"clustered": 1.5, "scattered": 2.5}
"""Growth a tenfold of data; clustered changes are those that fall in recent data."""
ORDERS = 100
"""Deleted, and as many inserted: with their lines a thousand rows."""
VIEWS = ("q01", "q03", "q18")


def run(stocks: Stocks, plan: Plan) -> Section:
    """Scale by scale; the views are in one flow and tick alone, one after the other."""
    told = ", ".join(f"{scale:g}" for scale in plan.scales)
    section = Section("flat", f"a thousand changed rows at TPC-H's scales {told}")
    if plan.scales != Plan.scales:
        section.options = f"--scales {told.replace(' ', '')}"
    found: dict[tuple[str, Where], dict[float, Samples]] = {}
    for scale in plan.scales:
        for view in plan.queries or VIEWS:
            _measure(section, stocks, plan, scale, view, found)
        if scale != plan.scale and scale > 1:
            stocks.forget(scale)
    for (view, where), by_scale in found.items():
        small, large = min(by_scale), max(by_scale)
        if small == large:
            continue
        growth = by_scale[large].median / by_scale[small].median
        tenfold = growth ** (1 / math.log10(large / small))
        section.bar(f"{view}, {where}: growth a tenfold of data", tenfold, "<=", LIMITS[where])
    section.plot(
        "scale",
        "A tick of a thousand changed rows against the size of the data",
        "scale of TPC-H",
        "seconds a tick",
        {
            f"{view}, {where}": [(scale, sample.median) for scale, sample in by_scale.items()]
            for (view, where), by_scale in found.items()
        },
        log_x=True,
    )
    return section


def _measure(
    section: Section,
    stocks: Stocks,
    plan: Plan,
    scale: float,
    view: str,
    found: dict[tuple[str, Where], dict[float, Samples]],
) -> None:
    stock = stocks.of(scale)
    progress(f"flat: {view} at scale {scale:g}")
    changes = Changes(stock.held, 0.0)
    with stock.open_copy("flat") as flow:
        flow.register_view(view, queries(scale)[view], hydrate=True)
        samples = {}
        for where in LIMITS:
            samples[where] = section.sample(f"{view}, scale {scale:g}: tick, {where}")
            found.setdefault((view, where), {})[scale] = samples[where]
        for keep in plan.rounds:
            for where, sample in samples.items():
                timed_tick(sample, flow, changes.next(where, ORDERS), keep=keep)
        section.check(f"{view}, scale {scale:g}, equals its query", flow.check(view).equal)
    stock.remove("flat")
