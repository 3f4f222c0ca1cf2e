"""`tideview datalog`: facts from files, answers as text and JSON, strata without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Tool

PROGRAM = """
.decl road(x: symbol, y: symbol, km: float) .input road
.decl far(x: symbol, km: float) .output far
far(x, max(km)) :- road(x, _, km).
"""


def test_a_program_is_evaluated_over_files_of_facts(tmp_path: Path, tideview: Tool) -> None:
    program, facts = tmp_path / "far.dl", tmp_path / "facts"
    program.write_text(PROGRAM)
    facts.mkdir()
    strata = tideview("datalog", program, "--strata")
    assert strata.code == 0
    assert "stratum 1: far" in strata.out
    assert tideview("datalog", program, "--strata", "--json").json["strata"] == [
        {"relations": ["far"], "recursive": False}
    ]
    (facts / "road.facts").write_text("a\tb\t2.5\na\tc\t7\nb\tc\t1e0\n")
    found = tideview("datalog", program, "--facts", facts)
    assert found.out == "far: 2 facts\na\t7.0\nb\t1.0\n"
    found = tideview("datalog", program, "--facts", facts, "--json")
    assert found.json["relations"] == {"far": [["a", 7.0], ["b", 1.0]]}


def test_wrong_programs_and_facts_are_told_with_their_place(tmp_path: Path, tideview: Tool) -> None:
    program = tmp_path / "far.dl"
    assert tideview("datalog", program).code == 3
    program.write_text(PROGRAM + "far(x) :- road(x, _, _).")
    told = tideview("datalog", program)
    assert told.code == 3
    assert "line 5, column 1" in told.err
    program.write_text(PROGRAM + "far(x, sum(k)) :- far(x, k).")
    assert tideview("datalog", program).code == 4
    program.write_text(PROGRAM)
    assert tideview("datalog", program, "--facts", tmp_path / "none").code == 3
    for line, what in (("a\tb", "3 values"), ("a\tb\tc", "a float")):
        (tmp_path / "road.facts").write_text(f"a\tb\t1\n{line}\n")
        told = tideview("datalog", program, "--facts", tmp_path)
        assert told.code == 3
        assert what in told.err
        assert "line 2 of" in told.err


def test_an_empty_file_has_no_facts(tmp_path: Path, tideview: Tool) -> None:
    program, facts = tmp_path / "all.dl", tmp_path / "facts"
    program.write_text(".decl a(x: symbol) .input a .decl p(x: symbol) .output p p(x) :- a(x).")
    facts.mkdir()
    (facts / "a.facts").write_text("")
    assert tideview("datalog", program, "--facts", facts).out == "p: 0 facts\n"
