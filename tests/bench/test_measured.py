"""Figures that are kept, a file a program, and the pages that are made from them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bench.__main__ import FULL, is_full
from bench.measure import Section
from bench.measured import keep as keep_figures
from bench.measured import kept
from bench.pages import DOCS, markdown, together
from bench.sizing import sizing
from tests.bench.test_report import a_content, a_section

if TYPE_CHECKING:
    from pathlib import Path

    from bench.losses import Content


def measured(*sections: Section, spark: str = "local") -> Content:
    content = a_content(*sections)
    return {**content, "plan": {**content["plan"], "spark": spark}}


def test_a_program_replaces_its_own_figures_only(tmp_path: Path) -> None:
    first, large = a_section(), a_section()
    large.options = "--scale 10"
    list(keep_figures(measured(first, large), tmp_path))
    first.samples[0].seconds = [7.0]
    list(keep_figures(measured(first), tmp_path))
    list(keep_figures(measured(first, spark="spark://host:7077"), tmp_path))
    assert [path.stem for path in kept(tmp_path)] == [
        "change-scale-10",
        "change",
        "change-spark",
    ]
    found = {path.stem: json.loads(path.read_text("utf-8")) for path in kept(tmp_path)}
    medians = {name: each["sections"][0]["samples"][0]["median_s"] for name, each in found.items()}
    assert medians == {"change": 7.0, "change-scale-10": 0.2, "change-spark": 7.0}


def test_what_failed_or_is_wrong_is_not_kept(tmp_path: Path) -> None:
    wrong, failed = a_section(), a_section()
    wrong.check("rows", False)
    failed.error = "ValueError: no"
    assert list(keep_figures(measured(wrong, failed), tmp_path)) == []
    assert kept(tmp_path) == []


def test_sections_say_how_and_when_they_were_measured() -> None:
    large = a_section()
    large.options = "--scale 10"
    page = markdown(together([measured(a_section(), large)]))
    assert "    python -m bench --only change\n\n2030-01-01, commit abc." in page
    assert "    python -m bench --only change --scale 10\n" in page


def test_another_spark_is_told_apart_and_replaces_no_local_figures() -> None:
    section = Section("fixed", "fixed cost")
    section.sample("one order").seconds = [1.0]
    section.bar("one order / append", 9.0, "<=", 6.0)
    elsewhere = Section("fixed", "fixed cost")
    elsewhere.sample("one order").seconds = [5.0]
    elsewhere.bar("one order / append", 8.0, "<=", 6.0)
    found = together([measured(section), measured(elsewhere, spark="cluster")])
    page, sizes = markdown(found), sizing(found)
    assert "- one order / append: 9.00×" in page
    assert "- cluster: one order / append: 8.00×" in page
    assert (
        "## Fixed cost (Spark: cluster)\n\n    python -m bench --only fixed --spark cluster" in page
    )
    url = together([measured(elsewhere, spark="spark://host:7077")])
    assert url["sections"][0]["title"] == "fixed cost (Spark: spark)"
    first, others = sizes.split("## On another Spark: cluster")
    assert "| one order | 1.000 s | `fixed` |" in first
    assert "| one order | 5.000 s | `fixed` |" in others


def test_larger_scales_are_no_less_than_the_bars_ask_for() -> None:
    assert is_full(FULL)
    assert is_full(replace(FULL, scale=10.0, scales=(0.1, 1.0, 10.0)))
    assert not is_full(replace(FULL, scale=0.1))
    assert not is_full(replace(FULL, repeats=2))


@pytest.mark.parametrize(("page", "made"), [("benchmarks.md", markdown), ("sizing.md", sizing)])
def test_pages_are_those_of_the_figures_that_are_kept(page: str, made: object) -> None:
    content = together([json.loads(path.read_text("utf-8")) for path in kept()])
    assert callable(made)
    assert (DOCS / page).read_text(encoding="utf-8") == made(content)
