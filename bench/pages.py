"""`python -m bench.pages [RESULTS.json …]`: report, documentation, pictures from recorded figures.

Without files those in bench/measured are taken, where `python -m bench --keep` puts them. Several
files are put together: of two that have one program with the same options the later one counts.
Machine and versions are those of the last file; commits are named for each program.
"""

from __future__ import annotations

import argparse
import json
import sys
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.html_report import html
from bench.losses import Content, bar_text, losses, nowhere, unmeasured
from bench.measured import kept
from bench.sizing import sizing
from bench.svg import line_chart

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "bench" / "results" / "report.html"
DOCS = ROOT / "docs"
PREFIX = "bench-"
RUNNING = """
## Run it yourself

    make bench                                      # all of it, long: table, JSON and report in bench/results
    make bench BENCH_ARGS=--quick                   # smaller and fewer: verdicts are a hint only
    python -m bench --only dag --only throughput    # some programs; --help lists them all, and the sizes they take
    python -m bench --only tpch --scale 10          # the five queries with the largest full refresh
    python -m bench --only flat --scales 0.1,1,10   # the same change at three scales
    python -m bench --spark cluster --only fixed    # a master and two workers; connect: a Connect server; or a URL
    python -m bench.peers.environment               # installs DuckDB and Pathway, in an environment of their own
    python -m bench.profile warehouse --change 1    # where the time of a tick goes
    python -m bench --only dag --keep               # its figures go to bench/measured,
    python -m bench.pages --docs                    # from which this page is made

A peer that isn't installed is reported as absent. Results are compared in every program; a wrong one is an exit code of 1,
and so is a missed bar with `--strict`.
"""  # noqa: E501


def main(words: list[str] | None = None) -> int:
    """Write the pages."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages", description=__doc__)
    parser.add_argument("results", nargs="*", type=Path, metavar="RESULTS.json")
    parser.add_argument("--html", type=Path, default=REPORT, help="the report's file")
    parser.add_argument(
        "--docs",
        action="store_true",
        help="also docs/benchmarks.md, its pictures, and docs/sizing.md",
    )
    options = parser.parse_args(words)
    files = options.results or kept()
    content = together([json.loads(each.read_text("utf-8")) for each in files])
    options.html.parent.mkdir(parents=True, exist_ok=True)
    options.html.write_text(html(content), encoding="utf-8")
    print(options.html)
    if options.docs:
        for path in write_docs(content, DOCS):
            print(path)
    return 0


def together(contents: Sequence[Content]) -> Content:
    """One content of several runs."""
    sections: dict[tuple[str, ...], Any] = {}
    for each in contents:
        told = {"started": each["started"][:10], "commit": each["versions"].get("commit", "")}
        spark = each["plan"].get("spark", "local")
        for section in each["sections"]:
            key = (section["key"], section.get("options", ""), spark)
            sections.pop(key, None)
            sections[key] = {**_told_apart(section, spark), "about": {**told, "spark": spark}}
    local = [each for each in contents if each["plan"].get("spark", "local") == "local"]
    last = (local or contents)[-1]
    is_full = all(each["plan"]["is_full"] for each in local or contents)
    commits = {each["versions"].get("commit", "") for each in contents}
    return {
        **last,
        "versions": {**last["versions"], "commit": ", ".join(sorted(commits))},
        "seconds": sum(each["seconds"] for each in contents),
        "plan": {**last["plan"], "is_full": is_full},
        "sections": list(sections.values()),
    }


def _told_apart(section: Mapping[str, Any], spark: str) -> dict[str, Any]:
    """What another Spark than a local one measured says so in every name that is read alone."""
    if spark == "local":
        return dict(section)
    spark = spark.partition(":")[0]  # of a URL, which is no name of a file
    named = {
        kind: [{**each, "name": f"{spark}: {each['name']}"} for each in section.get(kind, ())]
        for kind in ("bars", "ratios")
    }
    plots = [{**each, "key": f"{each['key']}-{spark}"} for each in section.get("plots", ())]
    return {**section, **named, "plots": plots, "title": f"{section['title']} (Spark: {spark})"}


def write_docs(content: Content, docs: Path) -> list[Path]:
    """The pages and their pictures; pictures of former runs go."""
    pictures = docs / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    for old in pictures.glob(f"{PREFIX}*.svg"):
        old.unlink()
    pages = {"benchmarks.md": markdown(content), "sizing.md": sizing(content)}
    for name, text in pages.items():
        (docs / name).write_text(text, encoding="utf-8")
    written = [docs / name for name in pages]
    for section in content["sections"]:
        for plot in section.get("plots", ()):
            target = pictures / f"{PREFIX}{plot['key']}.svg"
            target.write_text(line_chart(plot), encoding="utf-8")
            written.append(target)
    return written


def markdown(content: Content) -> str:
    """The documentation's page on speed."""
    machine, versions = content["machine"], content["versions"]
    settings = content["settings"]
    lines = [
        "# Benchmarks",
        "",
        "Made by `python -m bench.pages --docs` from `bench/measured`, "
        "where `python -m bench --keep` puts its figures; do not edit. Every",
        "comparison was made in one run: same machine, same data, same Spark, warmed, repeated; "
        "seconds are medians. Read",
        "the ratios: they are what carries over to another machine.",
        "",
        f"{machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory_bytes'] / 2**30:.0f} GiB; {settings['spark.master']}, heap "
        f"{settings['spark.driver.memory']}; Python {versions['python']}, Java {versions['java']}, "
        f"Spark {versions['pyspark']}, Delta {versions['delta-spark']}, "
        f"deltalake {versions['deltalake']}.",
        "",
    ]
    if not content["plan"]["is_full"]:
        lines += ["Less was measured than the bars ask for: verdicts are a hint only.", ""]
    lines += ["## Where we lose", ""]
    sections = content["sections"]
    lines += [f"- {_md(each)}" for each in losses(sections)] or [nowhere(sections)]
    if left_out := unmeasured(sections):
        lines += ["", f"Not measured here: {', '.join(left_out)}."]
    for section in sections:
        lines += ["", *_section(section)]
    return "\n".join(lines) + "\n" + RUNNING


def _section(section: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {_capital(section['title'])}"
    yield ""
    yield f"    {_command(section)}"
    if about := section.get("about"):
        yield from ("", f"{about['started']}, commit {about['commit'] or 'unknown'}.")
    if section["error"]:
        yield from ("", f"Failed: {_md(section['error'])}")
    for name, why in section.get("absent", {}).items():
        yield from ("", f"Absent: {name}. {_md(why)}")
    if section["bars"] or section.get("ratios"):
        yield from ("", "| | ratio | bar | verdict |", "|---|--:|--:|---|")
        for bar in section["bars"]:
            verdict = "met" if bar["met"] else "**missed**"
            yield f"| {_md(bar['name'])} | {bar['ratio']:.2f}× | {bar_text(bar)} | {verdict} |"
        for each in section.get("ratios", ()):
            verdict = "" if each["ratio"] >= 1 else "**they are faster**"
            yield f"| {_md(each['name'])} | {each['ratio']:.2f}× | none | {verdict} |"
    for plot in section.get("plots", ()):
        yield from ("", f"![{plot['title']}](pictures/{PREFIX}{plot['key']}.svg)")
    if section["samples"]:
        yield from ("", "| | median s | min – max | n |", "|---|--:|--:|--:|")
        for each in section["samples"]:
            spread = f"{each['min_s']:.3f} – {each['max_s']:.3f}"
            count = len(each["seconds"])
            yield f"| {_md(each['name'])} | {each['median_s']:.3f} | {spread} | {count} |"
    if section["notes"]:
        yield from ("", *(f"- {_md(note)}" for note in section["notes"]))


def _command(section: Mapping[str, Any]) -> str:
    words = ["python -m bench --only", section["key"], section.get("options", "")]
    spark = section.get("about", {}).get("spark", "local")
    if spark != "local":
        words.append(f"--spark {spark}")
    return " ".join(word for word in words if word)


def _md(text: str) -> str:
    """Text that Markdown takes as it is, in a table too."""
    return escape(text, quote=False).replace("|", "\\|").replace("*", "\\*")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


if __name__ == "__main__":
    sys.exit(main())
