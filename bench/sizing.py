"""The documentation's page on sizing: what grows with what, and the constants that were measured.

A constant that no run has measured is not on the page: nothing is estimated.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from bench.losses import Content

    Found = Iterator[tuple[str, str]]

HEAD = """# Sizing

Made by `python -m bench.pages --docs`; do not edit. What a flow needs follows from a few
constants. Those below were measured, by the command beside each; nothing on this page is estimated. Measure
them on your own machines before you buy any: `--spark spark://HOST:PORT` runs the same programs on a cluster,
`--spark sc://HOST:PORT` over Spark Connect.

## What grows with what

| need | grows with | doesn't grow with |
|---|---|---|
| time of a tick | views that the change reaches, rows of the change, rows that they join with | views that are clean; little with rows that the change doesn't reach: growth is below |
| time of a hydration | rows that are read, as for Spark's own query | |
| driver's memory | the largest change whose rows are held on the driver (*low gear*); larger ones go from files to files | rows of sources and views |
| executors | rows of hydrations and of large changes (*high gear*) | small ticks: their jobs have few tasks, on rows that the driver sends along |
| disk of a view | its rows, its accumulators, the ticks that retention keeps apart | ticks that are folded together |
| commits | traces that a tick writes to, and two for the tick log | rows |

[What a tick costs](cost.md) says how to see which of these a view of yours is made of.
"""  # noqa: E501


OTHERS = {
    "cluster": (
        "A standalone master and two workers of one core each, all on this machine: what processes "
        "apart cost, and nothing of networks."
    ),
    "connect": "A Connect server on this machine, and a client that has no Spark of its own.",
}

ELSEWHERE = "A Spark that was there already; its size is not told here."


def sizing(content: Content) -> str:
    """The page, from the JSON of a run."""
    machine, settings = content["machine"], content["settings"]
    found: dict[str, dict[str, Mapping[str, Any]]] = {"local": {}}
    for each in content["sections"]:
        if not each.get("options") and not each["error"]:
            spark = each.get("about", {}).get("spark", "local")
            found.setdefault(spark, {})[each["key"]] = each
    lines = [
        HEAD,
        "## Constants",
        "",
        f"On {machine['processor']}, {machine['cores']} cores; {settings['spark.master']}, heap "
        f"{settings['spark.driver.memory']}; commits and days are on the page of "
        "[benchmarks](benchmarks.md).",
        *_table(found.pop("local"), "python -m bench --only"),
    ]
    for spark, sections in found.items():
        lines += ["", f"## On another Spark: {spark}", "", OTHERS.get(spark, ELSEWHERE)]
        lines += _table(sections, f"python -m bench --spark {spark} --only")
    return "\n".join(lines) + "\n"


def _table(sections: Mapping[str, Mapping[str, Any]], command: str) -> list[str]:
    rows = [
        f"| {name} | {value} | `{key}` |"
        for key, constants in CONSTANTS.items()
        if key in sections
        for name, value in constants(sections[key])
    ]
    return ["", f"| constant | measured | by `{command}` |", "|---|--:|---|", *rows]


def _bars(*parts: str) -> Callable[[Mapping[str, Any]], Found]:
    """Ratios whose name has all of these words."""

    def found(section: Mapping[str, Any]) -> Found:
        for bar in section["bars"]:
            if all(part in bar["name"] for part in parts):
                yield bar["name"], f"{bar['ratio']:.2f}×"

    return found


def _seconds(*parts: str) -> Callable[[Mapping[str, Any]], Found]:
    """Medians of samples whose name has all of these words."""

    def found(section: Mapping[str, Any]) -> Found:
        for sample in section["samples"]:
            if all(part in sample["name"] for part in parts):
                yield sample["name"], f"{sample['median_s']:.3f} s"

    return found


def _several(*ways: Callable[[Mapping[str, Any]], Found]) -> Callable[[Mapping[str, Any]], Found]:
    def found(section: Mapping[str, Any]) -> Found:
        for way in ways:
            yield from way(section)

    return found


def _kernel(section: Mapping[str, Any]) -> Found:
    wanted = {
        "commits": "Delta commits",
        "files_written": "files written",
        "bytes_written": "bytes written",
        "jobs": "Spark jobs",
        "tasks": "Spark tasks",
    }
    for sample in section["samples"]:
        for fact, told in wanted.items():
            if fact in sample["facts"]:
                yield f"{sample['name']}: {told}", f"{median(sample['facts'][fact]):,.0f}"
        if "peak_mb" in sample["facts"]:
            most = max(sample["facts"]["peak_mb"])
            yield f"{sample['name']}: most memory, driver and Python", f"{most:,.0f} MiB"


def _rates(section: Mapping[str, Any]) -> Found:
    for sample in section["samples"]:
        for rate in sample["facts"].get("events_per_second", ()):
            yield f"{sample['name']}: events a second", f"{rate:,.0f}"


def _bytes(section: Mapping[str, Any]) -> Found:
    for view, sizes in section["raw"].items():
        if isinstance(sizes, dict):
            plain = sizes["plain table"]
            for name, size in sizes.items():
                if name != "plain table":
                    yield f"{view}: {name} / plain Delta table", f"{size / plain:.2f}×"


CONSTANTS: dict[str, Callable[[Mapping[str, Any]], Found]] = {
    "fixed": _seconds(),
    "dag": _several(_seconds("tick"), _bars("clean")),
    "cold": _seconds("committed tick"),
    "change": _several(_bars("tick at"), _seconds("tick of")),
    "flat": _bars("tenfold"),
    "hydration": _bars("Spark"),
    "throughput": _rates,
    "kernel": _kernel,
    "state": _bytes,
    "long": _bars("after tick"),
}
