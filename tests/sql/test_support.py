from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import IvmError
from ivm_core.frontend.recursion import circles
from ivm_core.frontend.sql import parse_statement, parse_view
from ivm_core.model.schema import parse_schema
from tests.sql.support import PAGE, SOURCES, constructs, page

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_every_construct_has_its_test_and_stands_on_the_page() -> None:
    written = PAGE.read_text(encoding="utf-8")
    catalog = {name: parse_schema(ddl) for name, ddl in SOURCES.items()}
    for each in constructs():
        assert each.path.exists(), each.path
        assert each.name.replace("|", "\\|") in written, f"{each.name}: write the page anew"
        if "WITH RECURSIVE" in each.sql and each.group != "Not maintained":
            # views of their own are made of them first; tests/sql/cases/recursion.sql ticks them
            assert circles(parse_statement(each.sql, each.name)) == [("r",)]
        elif each.group != "Not maintained":
            parse_view(each.sql, catalog, each.name)
        elif "parse_json(" not in each.sql:
            with pytest.raises(IvmError):
                parse_view(each.sql, catalog, each.name)


@pytest.mark.nightly
def test_the_page_says_what_the_compiler_says(spark: SparkSession) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(spark), "run python -m tests.sql.support"
