"""Every refused statement of `refusals/*.sql`: the class, the text, the place; nothing registered.

    -- refused: Unsupported | LEFT JOIN | line 2, column 1
    SELECT …;

The class is exact; every part behind it is found in the error's text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ivm_core import IncrementalFlow, IvmError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

HEADER = re.compile(r"^-- refused: (.*)$", re.MULTILINE)
SOURCES = {
    "t": "id INT, x INT, s STRING, ts TIMESTAMP, xs ARRAY<INT>, p STRUCT<a: INT, b: STRING>",
    "u": "id INT, y INT",
}


def statements() -> Iterator[object]:
    for path in sorted(Path(__file__).with_name("refusals").glob("*.sql")):
        pieces = HEADER.split(path.read_text(encoding="utf-8"))
        for header, body in zip(pieces[1::2], pieces[2::2], strict=True):
            sql = "\n".join(line for line in body.split("\n") if not line.startswith("--"))
            # up to the last semicolon, which may not be the first
            text = sql.strip("\n").rsplit(";", 1)[0]
            yield pytest.param(header, text, id=f"{path.stem}: {text[:60]}")


@pytest.fixture(scope="module")
def flow(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Iterator[IncrementalFlow]:
    with IncrementalFlow.open(tmp_path_factory.mktemp("refusals") / "flow", spark) as flow:
        for name, ddl in SOURCES.items():
            flow.register_source(name, ddl)
        yield flow


@pytest.mark.xdist_group("refusals")
@pytest.mark.parametrize(("header", "sql"), list(statements()))
def test_refused(header: str, sql: str, flow: IncrementalFlow) -> None:
    kind, *parts = (part.strip() for part in header.split(" | "))
    with pytest.raises(IvmError) as caught:
        flow.register_view("refused", sql)
    assert type(caught.value).__name__ == kind, str(caught.value)
    for part in parts:
        assert part in str(caught.value)
    assert "view refused" in str(caught.value)
    assert flow.views == ()
    assert flow.current_tick == 0
