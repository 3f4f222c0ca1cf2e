"""Results become a table, a page and pictures; no Spark is needed for any of it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from bench.html_report import html
from bench.losses import losses, nowhere
from bench.measure import Section, percentile
from bench.pages import main, markdown, together, write_docs
from bench.report import table
from bench.sizing import sizing
from bench.svg import line_chart

if TYPE_CHECKING:
    from pathlib import Path

    from bench.losses import Content

ABOUT = {
    "started": "2030-01-01T00:00:00+00:00",
    "seconds": 12.0,
    "versions": {
        "python": "3.11.0", "java": "17", "pyspark": "4.2.0", "delta-spark": "4.4.0",
        "deltalake": "1.6.6", "commit": "abc",
    },
    "machine": {
        "system": "Linux", "processor": "some <processor>", "cores": 2, "memory_bytes": 2**33,
        "load_average": [0.1, 0.1, 0.1],
    },
    "settings": {"spark.master": "local[2]", "spark.driver.memory": "8g"},
    "plan": {"rows": [1], "is_full": True},
}  # fmt: skip


def a_section() -> Section:
    section = Section("change", "a change & what it costs")
    ticks = section.sample("tick")
    for second in (0.1, 0.3, 0.2):
        ticks.seconds.append(second)
        ticks.note(jobs=1, files_written=3)
    section.bar("refresh / tick", 9.0, ">=", 5.0)
    section.check("rows", True)
    section.plot(
        "size", "Cost <against> size", "rows", "s", {"tick": [(10, 0.1), (1_000, 0.2)]}, log_x=True
    )
    return section


def a_content(*sections: Section) -> Content:
    content: Content = json.loads(
        json.dumps({**ABOUT, "sections": [each.as_json() for each in sections]})
    )
    return content


def test_nothing_is_lost_where_all_bars_are_met() -> None:
    section = a_section()
    assert losses([section.as_json()]) == []
    assert nowhere([section.as_json()]) == "Nowhere: every bar that was measured is met."
    section.compare("Spark / tick", theirs=0.4, ours=0.2)
    assert (
        nowhere([section.as_json()])
        == "Nowhere: every bar that was measured is met, and nobody was faster."
    )


def test_programs_that_were_left_out_are_named() -> None:
    content = a_content(a_section())
    for text in (html(content), markdown(content), table([a_section()], content)):
        assert "Not measured here: fixed, dag" in text
        assert "tpch --scale 10, flat --scales 0.1,1,10." in text


def test_every_kind_of_loss_is_named() -> None:
    section = a_section()
    section.bar("late / early", 2.0, "<=", 1.5)
    section.bar("ours / theirs", 1.2, "<=", 1.5)
    section.bar("after / before", 0.9, "<=", 1.5)
    section.compare("DuckDB / tick", theirs=0.1, ours=0.2)
    section.compare("Spark / tick", theirs=0.4, ours=0.2)
    section.check("sums", False)
    failed = Section("x", "another", error="ValueError: no")
    assert losses([section.as_json(), failed.as_json()]) == [
        "another: failed, ValueError: no",
        "a change & what it costs: wrong result, sums",
        "late / early: 2.00×, the bar is ≤ 1.5×",
        "DuckDB / tick: 0.50×, so they are the faster",
        "ours / theirs: 1.20×, within the bar of ≤ 1.5×",
    ]


def test_the_page_needs_nothing_else_and_escapes_what_it_shows() -> None:
    page = html(a_content(a_section()))
    assert "some &lt;processor&gt;" in page
    assert not re.search(r"<script|<link|<img|@import|url\(|src=", page)
    assert "Nowhere: every bar that was measured is met" in page
    assert "<svg" in page
    assert page.index("Where we lose") < page.index("Bars")


def test_an_absent_peer_is_on_every_page() -> None:
    section = a_section()
    section.absent["Pathway"] = "pathway is not installed"
    content = a_content(section)
    for text in (html(content), markdown(content), table([section], content)):
        assert "Pathway" in text
        assert "is not installed" in text


def test_results_of_before_have_pages_too() -> None:
    content = a_content(a_section())
    for section in content["sections"]:
        for key in ("ratios", "plots", "absent"):
            del section[key]
        for sample in section["samples"]:
            del sample["p99_s"]
    assert "0.300" in html(content)
    assert "| tick | 0.200 | 0.100 – 0.300 | 3 |" in markdown(content)


def test_a_later_run_of_a_program_counts() -> None:
    first, second = a_section(), a_section()
    second.samples[0].seconds = [5.0]
    other = Section("other", "other")
    merged = together([a_content(first, other), a_content(second)])
    assert [each["key"] for each in merged["sections"]] == ["other", "change"]
    assert merged["sections"][1]["samples"][0]["median_s"] == 5.0


def test_docs_are_written_with_their_pictures_and_old_ones_go(tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "bench-old.svg").write_text("")
    (pictures / "tick.svg").write_text("")
    write_docs(a_content(a_section()), tmp_path)
    assert {each.name for each in pictures.iterdir()} == {"bench-change-size.svg", "tick.svg"}
    text = (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    assert "pictures/bench-change-size.svg" in text
    assert "python -m bench --only change" in text
    assert "`change`" not in (tmp_path / "sizing.md").read_text(encoding="utf-8")


def test_sizing_has_constants_of_what_was_measured_only() -> None:
    section = Section("dag", "ten views")
    section.sample("tick of one row").seconds.append(0.5)
    page = sizing(a_content(section))
    assert "| tick of one row | 0.500 s | `dag` |" in page
    assert "`kernel`" not in page


def test_the_command_writes_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results.json"
    results.write_text(json.dumps(a_content(a_section())), encoding="utf-8")
    assert main([str(results), "--html", str(tmp_path / "report.html")]) == 0
    assert "report.html" in capsys.readouterr().out
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("log", [False, True])
def test_a_plot_is_whole_and_inside_its_frame(log: bool) -> None:
    series = {"a": [(1.0, 0.001), (10.0, 5.0)], "b": [(3.0, 0.2)]}
    plot = {"title": "a & b", "x": "x", "y": "y", "series": series, "log_x": log, "log_y": log}
    root = ElementTree.fromstring(line_chart(plot))
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    circles = root.findall("{http://www.w3.org/2000/svg}circle")
    assert len(circles) == 3
    for each in circles:
        assert 0 <= float(each.attrib["cx"]) <= width
        assert 0 <= float(each.attrib["cy"]) <= height


def test_a_logarithmic_plot_leaves_out_what_it_cannot_show() -> None:
    plot = {
        "title": "t",
        "x": "x",
        "y": "y",
        "series": {"a": [(0.0, 1.0), (5.0, 1.0)]},
        "log_x": True,
    }
    assert line_chart(plot).count("<circle") == 1


def test_percentiles_are_samples() -> None:
    values = [float(n) for n in range(1, 101)]
    assert percentile(values, 0.5) == 50.0
    assert percentile(values, 0.99) == 99.0
    assert percentile([3.0], 0.99) == 3.0
