from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core import DuplicateName, InvalidName, IvmError, SqlError, UnknownName, Unsupported
from ivm_core.api.view_file import read_header
from tests.dagster.conftest import DECLARATION, VIEWS, write_pipeline
from tideview.resources.pipeline_folder import load_pipeline

if TYPE_CHECKING:
    from pathlib import Path


def test_views_come_inputs_first_with_their_columns(tmp_path: Path) -> None:
    pipeline = load_pipeline(write_pipeline(tmp_path / "till", DECLARATION, VIEWS))
    assert [view.name for view in pipeline.views] == ["totals", "big", "places"]
    assert [view.columns for view in pipeline.views] == [
        ("customer", "total", "n"),
        ("customer", "total"),
        ("city", "customers"),
    ]
    assert pipeline.sources_of("big") == {"sales"}
    assert {source.name: source.primary_key for source in pipeline.sources} == {
        "sales": ("id",),
        "cities": ("customer",),
    }


def test_a_view_says_in_its_comment_what_it_must_be(tmp_path: Path) -> None:
    views = {
        "a": "-- Who is where.\n-- require: incremental\nSELECT customer FROM cities",
        "b": "-- require: speed\nSELECT customer FROM cities",
    }
    folder = write_pipeline(tmp_path / "till", DECLARATION, {"a": views["a"]})
    [view] = load_pipeline(folder).views
    assert view.require == "incremental"
    assert read_header(view.sql).description == "Who is where."
    folder = write_pipeline(tmp_path / "other", DECLARATION, views)
    with pytest.raises(IvmError, match=r"b\.sql, line 1") as refused:
        load_pipeline(folder)
    assert "require='speed'" in str(refused.value)


def test_a_cte_hides_a_view_of_its_name(tmp_path: Path) -> None:
    views = {
        "a": "WITH b AS (SELECT customer FROM cities) SELECT customer FROM b",
        "b": "SELECT customer FROM a",
    }
    pipeline = load_pipeline(write_pipeline(tmp_path / "till", DECLARATION, views))
    assert [(view.name, view.reads) for view in pipeline.views] == [
        ("a", ("cities",)),
        ("b", ("a",)),
    ]


@pytest.mark.parametrize(
    ("declaration", "told"),
    [
        ("name: till\nsources: {", ["pipeline.yaml, line 2", "not YAML"]),
        ("name: till", ["key sources", "nothing found"]),
        ("sources: {}", ["key name", "text expected"]),
        ("name: the till\nsources: {}", ["key name", "'the till'", "the_till"]),
        (
            "name: till\ntables: {}\nsources: {}",
            ["line 2", "'tables' is not a key", "the keys are", "sources"],
        ),
        ("name: till\nsources: {a: {schema: 7}}", ["key sources.a.schema", "7 found"]),
        ("name: till\nsources: {a: {schema: id NUMBER}}", ["key sources.a.schema", "NUMBER"]),
        (
            "name: till\nsources: {a: {schema: id INT, primary_key: [key]}}",
            ["key sources.a.primary_key", "line 2", "names key, which is no column"],
        ),
    ],
)
def test_a_wrong_declaration_names_file_and_key(
    tmp_path: Path, declaration: str, told: list[str]
) -> None:
    folder = write_pipeline(tmp_path / "till", declaration, VIEWS)
    with pytest.raises(IvmError) as refused:
        load_pipeline(folder)
    assert str(folder / "pipeline.yaml") in str(refused.value)
    for each in told:
        assert each in str(refused.value)


@pytest.mark.parametrize(
    ("views", "error", "told"),
    [
        ({"a": "SELECT customer FROM"}, SqlError, ["a.sql", "line 1"]),
        ({"a": "SELECT customer FROM nowhere"}, UnknownName, ["a.sql, line 1", "nowhere"]),
        ({"a": "SELECT age FROM cities"}, UnknownName, ["a.sql", "age"]),
        (
            {"a": "SELECT customer FROM cities TABLESAMPLE (5 ROWS)"},
            Unsupported,
            ["a.sql, line 1", "TABLESAMPLE"],
        ),
        ({"a": " \n"}, IvmError, ["a.sql", "empty"]),
        ({"a b": "SELECT customer FROM cities"}, InvalidName, ["a b.sql", "'a b'"]),
        ({"Cities": "SELECT customer FROM sales"}, DuplicateName, ["Cities.sql", "source cities"]),
        (
            {"a": "SELECT customer FROM b", "b": "SELECT customer FROM a"},
            IvmError,
            ["a.sql", "the columns of a, b can't be told"],
        ),
        ({}, IvmError, ["no views"]),
    ],
)
def test_a_wrong_view_names_its_file(
    tmp_path: Path, views: dict[str, str], error: type[IvmError], told: list[str]
) -> None:
    folder = write_pipeline(tmp_path / "till", DECLARATION, views)
    with pytest.raises(error) as refused:
        load_pipeline(folder)
    for each in told:
        assert each in str(refused.value)


def test_a_folder_without_declaration(tmp_path: Path) -> None:
    with pytest.raises(IvmError, match="no such file"):
        load_pipeline(tmp_path)
