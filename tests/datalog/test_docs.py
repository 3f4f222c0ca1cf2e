"""Runs every example of docs/datalog.md, and compares what it prints."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).resolve().parents[2] / "docs" / "datalog.md"


def test_examples_of_the_page_print_what_it_says(spark: SparkSession) -> None:
    spark.createDataFrame([], "nothing INT")  # makes this session the active one
    text = PAGE.read_text()
    examples = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    report: list[str] = []
    outcome = doctest.DocTestRunner().run(examples, out=report.append)
    assert outcome.failed == 0, "".join(report)
    assert outcome.attempted == text.count(">>> ")
