"""A run as one HTML page that needs nothing else: no script, no style sheet, no picture apart."""

from __future__ import annotations

from html import escape
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.losses import Content, bar_text, losses, nowhere, unmeasured
from bench.svg import line_chart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

STYLE = """
body { font: 15px/1.45 sans-serif; color: #1f2937; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: .6rem 0 1.2rem }
th, td { padding: .15rem .7rem .15rem 0; text-align: right; border-bottom: 1px solid #e5e7eb;
  font-variant-numeric: tabular-nums; white-space: nowrap }
th:first-child, td:first-child { text-align: left; white-space: normal }
.met { color: #15803d } .missed { color: #b91c1c; font-weight: bold }
.losses { background: #fef2f2; border-left: 4px solid #b91c1c; padding: .3rem 1rem }
.none { background: #f0fdf4; border-left: 4px solid #15803d; padding: .3rem 1rem }
svg { max-width: 100%; height: auto } code { background: #f3f4f6; padding: 0 .25rem }
details { margin: .4rem 0 1rem } h2 { margin-top: 2.4rem; border-bottom: 2px solid #00796b }
"""  # noqa: E501
FACTS = ("statements", "jobs", "commits")


def html(content: Content) -> str:
    """The page of one run; `content` is its JSON."""
    sections = content["sections"]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>Tideview bench</title><style>{STYLE}</style></head><body>",
        "<h1>Tideview bench</h1>",
        *_about(content),
        "<h2>Where we lose</h2>",
        *_losses(sections),
        "<h2>Bars</h2>",
        *_caution(content),
        _table(("", "ratio", "bar", "verdict"), _bar_rows(sections)),
    ]
    for section in sections:
        parts += _section(section)
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _about(content: Content) -> Iterator[str]:
    machine = content["machine"]
    memory = machine["memory_bytes"] / 2**30
    load = " → ".join(
        f"{each[0]:.1f}"
        for each in (machine["load_average"], content.get("load_average_at_the_end"))
        if each
    )
    yield f"<p>{escape(content['started'])}, {content['seconds']:.0f} s.</p>"
    yield _pairs(
        "Machine",
        {
            "system": machine["system"],
            "processor": machine["processor"],
            "cores": machine["cores"],
            "memory": f"{memory:.0f} GiB",
            "load, first to last": load,
        },
    )
    yield _pairs("Versions", content["versions"])
    yield _pairs("Settings", content["settings"])
    yield _pairs("How much was measured", content["plan"])


def _pairs(title: str, pairs: Mapping[str, Any]) -> str:
    rows = [(name, str(value)) for name, value in pairs.items()]
    opened = " open" if title == "Machine" else ""
    return f"<details{opened}><summary>{escape(title)}</summary>{_table((), rows)}</details>"


def _losses(sections: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    found = losses(sections)
    if not found:
        yield f'<p class="none">{nowhere(sections)}</p>'
    else:
        yield '<ul class="losses">'
        yield from (f"<li>{escape(each)}</li>" for each in found)
        yield "</ul>"
    if left_out := unmeasured(sections):
        yield f"<p>Not measured here: {', '.join(left_out)}.</p>"


def _caution(content: Content) -> list[str]:
    if content["plan"]["is_full"]:
        return []
    return ["<p>Less was measured than the bars ask for: verdicts are a hint only.</p>"]


def _bar_rows(sections: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[str]]:
    for section in sections:
        for bar in section["bars"]:
            verdict = "met" if bar["met"] else "missed"
            yield bar["name"], f"{bar['ratio']:.2f}×", bar_text(bar), verdict


def _section(section: Mapping[str, Any]) -> Iterator[str]:
    yield f'<h2 id="{escape(section["key"])}">{escape(section["title"])}</h2>'
    yield f"<p><code>python -m bench --only {escape(section['key'])}</code></p>"
    if section["error"]:
        yield f'<p class="missed">FAILED: {escape(section["error"])}</p>'
    for name, why in section.get("absent", {}).items():
        yield f'<p class="missed">Absent: {escape(name)}. {escape(why)}</p>'
    if section["bars"]:
        yield _table(("", "ratio", "bar", "verdict"), _bar_rows([section]))
    if section.get("ratios"):
        rows = [(each["name"], f"{each['ratio']:.2f}×") for each in section["ratios"]]
        yield _table(("no bar: theirs / ours, below 1 they are faster", "ratio"), rows)
    yield from (line_chart(plot) for plot in section.get("plots", ()))
    if section["samples"]:
        header = ("", "median s", "min – max", "p99", "n", *FACTS)
        yield _table(header, map(_sample_row, section["samples"]))
    yield from _more_facts(section["samples"])
    if section["notes"]:
        yield f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in section['notes'])}</ul>"
    wrong = sum(not equal for equal in section["checks"].values())
    yield f"<p>{len(section['checks'])} results compared, {wrong} differ.</p>"


def _sample_row(sample: Mapping[str, Any]) -> Sequence[str]:
    slowest = sample.get("p99_s", sample["max_s"])
    return (
        sample["name"],
        f"{sample['median_s']:.3f}",
        f"{sample['min_s']:.3f} – {sample['max_s']:.3f}",
        f"{slowest:.3f}",
        str(len(sample["seconds"])),
        *(_middle(sample["facts"].get(fact)) for fact in FACTS),
    )


def _more_facts(samples: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Counts beyond those that every tick has, where there are any."""
    names = list(dict.fromkeys(name for each in samples for name in each["facts"]))
    names = [name for name in names if name not in FACTS]
    if names:
        rows = [
            (each["name"], *(_middle(each["facts"].get(name)) for name in names))
            for each in samples
            if any(name in each["facts"] for name in names)
        ]
        header = ("medians of", *(name.replace("_", " ") for name in names))
        yield f"<details><summary>More counts</summary>{_table(header, rows)}</details>"


def _middle(values: Sequence[float] | None) -> str:
    return "" if not values else f"{median(values):,.4g}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    parts = ["<table>"]
    if header:
        parts.append("<tr>" + "".join(f"<th>{escape(each)}</th>" for each in header) + "</tr>")
    for row in rows:
        cells = "".join(
            f'<td class="{cell}">{cell}</td>'
            if cell in ("met", "missed")
            else f"<td>{escape(cell)}</td>"
            for cell in row
        )
        parts.append(f"<tr>{cells}</tr>")
    return "\n".join([*parts, "</table>"])
