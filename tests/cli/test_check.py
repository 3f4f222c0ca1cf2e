from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.processes import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Tool
SOURCES = {
    "sources": {"orders": {"schema": "id BIGINT, customer STRING, amount INT"}, "t": "x INT"}
}
FILES = {
    "totals": "SELECT customer, SUM(amount) AS s FROM orders GROUP BY customer",
    "largest": "-- The most.\n-- require: incremental\nSELECT MAX(s) AS s FROM totals",
    "ranks": "SELECT id, ntile(3) OVER (ORDER BY amount) AS r FROM orders",
    "drawn": "SELECT rand() AS r FROM orders",
    "over_drawn": "SELECT r FROM drawn",
    "broken": "SELECT id,\nFROM orders",
    "lost": "SELECT nothing FROM orders",
    "blank": "",
    "odd": "-- require: speed\nSELECT 1 AS x",
}


def folder_of(place: Path, files: dict[str, str]) -> Path:
    place.mkdir()
    for name, sql in files.items():
        (place / f"{name}.sql").write_text(sql, encoding="utf-8")
    return place


def schema_of(place: Path, content: object = SOURCES, name: str = "sources") -> Path:
    file = place / f"{name}.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def test_every_file_gets_its_verdict(tideview: Tool, tmp_path: Path) -> None:
    folder, schema = folder_of(tmp_path / "sql", FILES), schema_of(tmp_path)
    answer = tideview("check", folder, "--schema", schema, "--json")
    assert answer.code == 1
    found = {each["view"]: each for each in answer.json["views"]}
    assert {name: (each["verdict"], each["passes"]) for name, each in found.items()} == {
        "totals": ("incremental", True),
        "largest": ("recomputed", False),
        "ranks": ("recomputed", True),
        "drawn": ("refused", False),
        "over_drawn": ("not judged", False),
        "broken": ("wrong", False),
        "lost": ("wrong", False),
        "blank": ("wrong", False),
        "odd": ("wrong", False),
    }
    assert "the file is empty" in found["blank"]["error"]
    assert "odd.sql, line 1" in found["odd"]["error"]
    assert "line 2" in found["broken"]["error"]
    assert "MAX" in found["largest"]["why_not"][0]["construct"]
    shown = tideview("check", folder, "--schema", schema).out
    assert f"{folder / 'drawn.sql'}\n  rand() can't be kept as a view" in shown
    assert "2 of 9 views can be registered" in shown


def test_a_folder_that_passes_may_be_held_to_more(tideview: Tool, tmp_path: Path) -> None:
    good = {name: FILES[name] for name in ("totals", "ranks")}
    folder, schema = folder_of(tmp_path / "sql", good), schema_of(tmp_path)
    assert tideview("check", folder, "--schema", schema).code == 0
    strict = tideview("check", folder, "--schema", schema, "--require", "incremental")
    assert strict.code == 1
    assert "PARTITION BY a column" in strict.out


def test_a_flow_says_what_files_may_read(tideview: Tool, shop: Path, tmp_path: Path) -> None:
    files = {
        "large": "SELECT id, amount FROM orders WHERE amount >= 5",
        "sums": "SELECT l.amount, t.total FROM large l JOIN totals t ON l.amount = t.n",
    }
    answer = tideview("check", folder_of(tmp_path / "sql", files), "--flow", shop)
    assert answer.code == 0, answer.out
    assert tideview("status", shop, "--json").json["tick"] == 2


def test_a_pipelines_folder_brings_its_own_sources(tideview: Tool) -> None:
    answer = tideview("check", ROOT / "pipelines" / "shop")
    assert answer.code == 0
    assert "7 of 7 views can be registered" in answer.out


def test_what_is_wrong_around_the_files_is_told(tideview: Tool, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "sql", {"totals": FILES["totals"]})
    for arguments, told in (
        ((tmp_path / "none",), "there is no such folder"),
        ((folder,), "give --schema FILE or --flow FLOW"),
        ((folder, "--flow", tmp_path), "there is no flow here"),
        ((folder, "--schema", schema_of(tmp_path, '{"sources": \n {,}}')), "line 2, column 3"),
        (
            (folder, "--schema", schema_of(tmp_path, {"sources": {"a": "x NUMBER"}}, "odd")),
            "NUMBER",
        ),
        ((folder_of(tmp_path / "empty", {}), "--flow", folder), "there are no .sql files"),
    ):
        answer = tideview("check", *arguments)
        assert answer.code == 3
        assert told in answer.err
