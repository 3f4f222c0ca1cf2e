from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Tool


def test_a_view_is_explained_to_people_and_programs(tideview: Tool, shop: Path) -> None:
    shown = tideview("explain", shop, "cities")
    assert shown.code == 0
    for words in ("is maintained", "join on", "scan customers", "did in its last tick", "SELECT"):
        assert words in shown.out
    told = tideview("explain", shop, "cities", "--json").json
    assert (told["format"], told["view"], told["verdict"]) == (1, "cities", "incremental")
    assert told["incremental"] is True
    assert told["tree"]["inputs"]
    assert told["steps"][-1]["step"] == "cities"
    assert told["last"][0]["tick"] == 2


@pytest.mark.parametrize(
    ("sql", "code", "told"),
    [
        ("SELECT customer, SUM(amount) AS s FROM orders GROUP BY customer", 0, "nothing"),
        (
            "SELECT id,\n ntile(2) OVER (ORDER BY amount) AS r FROM orders",
            1,
            "line 2, column 2\n  reason: there is one partition, of all rows\n  rewrite: PARTITION BY",
        ),
        ("SELECT o.id FROM orders o, customers c", 1, "the scan of customers is not incremental"),
        ("SELECT rand() AS r FROM orders", 4, "rand() can't be kept as a view"),
    ],
)
def test_why_not_has_construct_place_reason_and_rewrite(
    tideview: Tool, shop: Path, tmp_path: Path, sql: str, code: int, told: str
) -> None:
    answer = tideview("explain", shop, "--sql", sql, "--why-not")
    assert (answer.code, told in answer.out) == (code, True), answer.out
    file = tmp_path / "query.sql"
    file.write_text(sql, encoding="utf-8")
    found = tideview("explain", shop, "--file", file, "--why-not", "--json").json["why_not"]
    assert bool(found) == bool(code)
    for each in found:
        assert each["verdict"] in ("refused", "recomputed", "read in full")
        assert all(each[key] for key in ("construct", "position", "reason", "rewrite"))


def test_refused_and_broken_sql_end_with_their_codes(tideview: Tool, shop: Path) -> None:
    refused = tideview("explain", shop, "--sql", "SELECT uuid() AS u FROM orders", "--json")
    assert refused.code == 4
    assert refused.json["error"]["kind"] == "NotIncremental"
    assert refused.json["error"]["rewrite"]
    broken = tideview("explain", shop, "--sql", "SELECT id\nFORM orders WHERE")
    assert broken.code == 3
    assert "line 2" in broken.err
    assert tideview("explain", shop, "--file", shop / "none.sql").code == 3
    assert tideview("status", shop, "--json").json["tick"] == 2


@pytest.mark.parametrize(
    "arguments",
    [(), ("explain",), ("explain", "f"), ("explain", "f", "v", "--sql", "x"), ("dance",)],
)
def test_a_wrong_command_line_ends_with_2(tideview: Tool, arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        tideview(*arguments)
    assert ended.value.code == 2


@pytest.mark.parametrize(
    "command",
    [
        "explain",
        "status",
        "tick",
        "snapshot",
        "changes",
        "watch",
        "replay",
        "alter",
        "drop",
        "rename",
        "publish",
        "compact",
        "repair",
        "check",
        "datalog",
    ],
)
def test_help_has_examples_and_exit_codes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    from ivm_core.cli.main import main

    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert f"tideview {command} " in said
    assert "exit codes:" in said
    assert "--json" in said
