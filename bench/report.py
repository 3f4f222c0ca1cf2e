"""The results as a table for people and as JSON for programs."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from bench.losses import losses, nowhere, unmeasured

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bench.measure import Samples, Section

Cells = tuple[str, ...]


def table(sections: Sequence[Section], about: dict[str, Any]) -> str:
    """Everything that was measured, then the verdicts together."""
    lines = [*_head(about)]
    for section in sections:
        lines += ["", section.title, "-" * len(section.title)]
        if section.error:
            lines.append(f"FAILED: {section.error}")
            continue
        rows = [_sample_cells(each) for each in section.samples if each.seconds]
        header = ("", "median s", "min – max", "n", "statements", "jobs", "commits")
        lines += aligned([header, *rows])
        lines += [f"  {name}: absent, {why}" for name, why in section.absent.items()]
        lines += [f"  {each.name}: {each.ratio:.2f}×, no bar" for each in section.ratios]
        lines += [f"  {note}" for note in section.notes]
        wrong = [name for name, equal in section.checks.items() if not equal]
        lines.append(f"  {len(section.checks)} results compared with Spark's, {len(wrong)} differ")
        lines += [f"  WRONG: {name}" for name in wrong]
    lines += ["", "Bars", "----", *_caution(about), *aligned(list(_bar_cells(sections)))]
    lines += ["", "Where we lose", "-------------"]
    content = [each.as_json() for each in sections]
    lines += [f"  {each}" for each in losses(content) or [nowhere(content)]]
    if left_out := unmeasured(content):
        lines += ["", f"Not measured here: {', '.join(left_out)}."]
    return "\n".join(lines)


def _head(about: dict[str, Any]) -> list[str]:
    versions, machine = about["versions"], about["machine"]
    memory = machine["memory_bytes"] / 2**30
    settings = about["settings"]
    return [
        "Tideview bench"
        + (f" at {versions['commit']}" if versions["commit"] else "")
        + f", {about['started']}, {about['seconds']:.0f} s",
        f"{machine['processor']}, {machine['cores']} cores, {memory:.0f} GiB, "
        f"load {machine['load_average'][0]:.1f} at the start; "
        f"{settings['spark.master']}, heap {settings['spark.driver.memory']}",
        f"Python {versions['python']}, Java {versions['java']}, Spark {versions['pyspark']}, "
        f"Delta {versions['delta-spark']}, deltalake {versions['deltalake']}",
    ]


def _caution(about: dict[str, Any]) -> list[str]:
    if about["plan"]["is_full"]:
        return []
    return ["  (fewer rows, repeats or ticks than the bars ask for: verdicts are a hint only)"]


def _sample_cells(samples: Samples) -> Cells:
    return (
        samples.name,
        f"{samples.median:.3f}",
        f"{min(samples.seconds):.3f} – {max(samples.seconds):.3f}",
        str(len(samples.seconds)),
        *(_count(samples.facts.get(fact)) for fact in ("statements", "jobs", "commits")),
    )


def _count(values: list[float] | None) -> str:
    return "" if not values else f"{median(values):g}"


def _bar_cells(sections: Iterable[Section]) -> Iterable[Cells]:
    yield ("", "ratio", "bar", "verdict")
    for section in sections:
        if section.error:
            yield (section.title, "", "", "FAILED")
        for bar in section.bars:
            sign = "≤" if bar.sense == "<=" else "≥"
            verdict = "met" if bar.met else "missed"
            if not section.is_right:
                verdict += ", but results differ"
            yield (bar.name, f"{bar.ratio:.2f}×", f"{sign} {bar.limit:g}×", verdict)


def aligned(rows: list[Cells]) -> list[str]:
    """Columns of equal width, words to the left and figures to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines
