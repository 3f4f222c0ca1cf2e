from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ivm_core import IncrementalFlow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.cli.conftest import Tool


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def orders(tideview: Tool, shop: Path) -> set[tuple[Any, ...]]:
    told = tideview("snapshot", shop, "orders", "--json").json
    return {(row["id"], row["customer"], row["amount"]) for row in told["rows"]}


def test_files_of_every_form_are_taken(tideview: Tool, shop: Path, tmp_path: Path) -> None:
    lines = written(
        tmp_path,
        "a.jsonl",
        '{"id": 4, "customer": "cy", "amount": 1}\n\n'
        '{"id": 1, "customer": "ann", "amount": 20, "_weight": -1}\n',
    )
    answer = tideview("tick", shop, f"orders={lines}", "--json")
    assert answer.code == 0
    assert (answer.json["tick"], answer.json["rows_in"]) == (3, 2)
    assert answer.json["views"]["totals"]["rows"] == 3
    upserts = written(tmp_path, "b.csv", 'id,customer,amount\n4,"c, ""y""",2\n5,,\n6,"",7\n')
    pq.write_table(pa.table({"id": [2]}), tmp_path / "c.parquet")
    shown = tideview(
        "tick",
        shop,
        "--upsert",
        f"orders={upserts}",
        "--delete-keys",
        f"Orders={tmp_path / 'c.parquet'}",
    )
    assert shown.code == 0, shown.err
    assert "tick 4: 5 rows in" in shown.out
    assert orders(tideview, shop) == {(3, "bob", 9), (4, 'c, "y"', 2), (5, None, None), (6, "", 7)}


def test_stdin_and_a_batch_id(tideview: Tool, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = '{"id": 7, "customer": "di", "amount": 5}\n'
    for note in ("", "batch b1 was taken by tick 3 already"):
        monkeypatch.setattr("sys.stdin", io.StringIO(row))
        answer = tideview("tick", shop, "orders=-", "--batch-id", "b1")
        assert answer.code == 0
        assert note in answer.err
    assert tideview("status", shop, "--json").json["tick"] == 3


def test_every_type_comes_back_as_it_went_in(
    tideview: Tool, tmp_path: Path, spark: SparkSession
) -> None:
    place = tmp_path / "types"
    ddl = (
        "b BOOLEAN, i BIGINT, d DECIMAL(20,4), f DOUBLE, s STRING, x BINARY, day DATE, "
        "at TIMESTAMP, clock TIMESTAMP_NTZ, xs ARRAY<DECIMAL(4,1)>, p STRUCT<a: DATE, n: DOUBLE>, "
        "m MAP<STRING, DATE>, dm MAP<DATE, DECIMAL(4,1)>"
    )
    row = {
        "b": True,
        "i": 2**62,
        "d": Decimal("12.5000"),
        "f": float("-inf"),
        "s": "ü\n,",
        "x": b"\x00\xff",
        "day": date(2024, 2, 29),
        "at": datetime(2024, 1, 31, 12, tzinfo=UTC),
        "clock": datetime(2024, 1, 31, 12, 0, 0, 5),
        "xs": [Decimal("1.5"), None],
        "p": {"a": date(2024, 1, 1), "n": 0.1},
        "m": {"b": date(2024, 1, 1), "a": None},
        "dm": [(date(2024, 1, 1), Decimal("1.5"))],
    }
    with IncrementalFlow.open(place, spark) as flow:
        flow.register_source("t", ddl)
        flow.tick("t", [row])
    first = tideview("snapshot", place, "t", "--json").json["rows"]
    again = written(tmp_path, "again.jsonl", json.dumps(first[0]) + "\n")
    assert tideview("tick", place, f"t={again}").code == 0
    both = tideview("snapshot", place, "t", "--json").json["rows"]
    assert both == first * 2
    fields = [each if isinstance(each, str) else json.dumps(each) for each in first[0].values()]
    quoted = ",".join('"' + each.replace('"', '""') + '"' for each in fields)
    gone = written(tmp_path, "gone.csv", f"{','.join(first[0])}\n{quoted}\n")
    answer = tideview("tick", place, "--delete", f"t={gone}")
    assert answer.code == 0, answer.err
    assert tideview("snapshot", place, "t", "--json").json["rows"] == first


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.jsonl", '{"id": 4}\n{"id": 5,, }\n', ["a.jsonl, line 2, column 10", "not JSON"]),
        ("a.jsonl", "[1]\n", ["a.jsonl, line 1", "one object"]),
        ("a.jsonl", '{"id": 4, "customer": "x"}\n', ["a.jsonl, line 1", "missing: amount"]),
        (
            "a.jsonl",
            '\n{"id": 4, "customer": "x", "amount": "5"}\n',
            ["a.jsonl, line 2", "column: amount", "expected: INT", "got: str '5'"],
        ),
        ("a.csv", "id,customer,amount\n4,x,5\n5,y,6z\n", ["a.csv, line 3, column amount", "6z"]),
        ("a.csv", "id,customer,amount\n4,x\n", ["a.csv", "Expected 3 columns, got 2"]),
        ("a.csv", "id,name,amount\n4,x,5\n", ["a.csv", "missing: customer; extra: name"]),
        ("a.parquet", "id", ["a.parquet", "not Parquet"]),
        ("a.xlsx", "", ["a.xlsx", "name it .jsonl, .csv or .parquet"]),
        ("a.jsonl", '{"id": 3, "customer": "x", "amount": 5}\n', ["primary key (id)", "keys: 3"]),
    ],
)
def test_a_broken_file_names_line_and_column_and_changes_nothing(
    tideview: Tool, shop: Path, tmp_path: Path, name: str, text: str, told: list[str]
) -> None:
    answer = tideview("tick", shop, f"orders={written(tmp_path, name, text)}")
    assert answer.code == 3
    for each in told:
        assert each in answer.err
    assert tideview("status", shop, "--json").json["tick"] == 2


def test_what_is_not_there_is_told(tideview: Tool, shop: Path, tmp_path: Path) -> None:
    for arguments, told in (
        (("orders=none.jsonl",), "there is no such file"),
        (("orders",), "is not SOURCE=FILE"),
        ((f"ordrs={written(tmp_path, 'a.jsonl', '{}')}",), "did you mean orders?"),
        (("--logical-time", "noon"), "'noon' is no time"),
        (("--view", "totl"), "did you mean totals?"),
    ):
        answer = tideview("tick", shop, *arguments)
        assert answer.code == 3
        assert told in answer.err
    assert tideview("status", shop, "--json").json["tick"] == 2
